"use strict";
/* Weights as a table of shades, queries x keys, and one small picture for each head. */

/* weights: Float32Array; say(text) tells what is pointed at; largest: what is darkest; names: of
   the queries and the keys. Shades are square roots, so that small weights show. */
function heatMap(weights, queries, keys, kind, largest, say, names) {
  const table = make("table", undefined, "map"), head = table.createTHead().insertRow();
  const body = table.createTBody(), columns = [], grid = [];
  const room = document.getElementById("picture").clientWidth - 130;
  table.style.setProperty("--cell", `${Math.max(15, Math.min(30, room / keys.length))}px`);
  const corner = make("td", undefined, "axes");
  corner.append(make("span", `${names[1]} →`), make("span", `${names[0]} ↓`));
  head.append(corner);
  for (const key of keys) {
    const cell = make("th");
    cell.scope = "col";
    cell.append(make("span", key));
    head.append(cell);
    columns.push(cell);
  }
  const rows = queries.map((query, q) => {
    const row = body.insertRow(), name = make("th", query);
    name.scope = "row";
    row.append(name);
    grid.push(keys.map((key, k) => {
      const cell = row.insertCell(), weight = weights[q * keys.length + k];
      if (masked(kind, q, k)) {
        cell.className = "masked";
        cell.setAttribute("aria-label", "masked");
      } else {
        cell.style.background = heat(Math.sqrt(weight / largest));
        cell.setAttribute("aria-label", shown(weight));
      }
      return cell;
    }));
    return name;
  });
  rove(grid);
  let marked = [];
  const mark = event => {
    const cell = event.target.closest("tbody td");
    marked.forEach(node => node.classList.remove("chosen"));
    marked = [];
    if (!cell) return say("");
    const q = cell.parentNode.sectionRowIndex, k = cell.cellIndex - 1;
    marked = [rows[q], columns[k]];
    marked.forEach(node => node.classList.add("chosen"));
    const weight = masked(kind, q, k) ? "may not be seen" : shown(weights[q * keys.length + k]);
    say(`${quoted(queries[q])} → ${quoted(keys[k])}: ${weight}`);
  };
  body.addEventListener("pointerover", mark);
  body.addEventListener("focusin", mark);
  body.addEventListener("pointerleave", () => say(""));
  return table;
}

/* all: the weights of each head; pick(head) shows only that head. */
function gallery(all, queries, keys, kind, largest, say, pick) {
  const found = make("div", undefined, "gallery");
  all.forEach((weights, head) => {
    const button = make("button", `head ${head + 1}`), canvas = make("canvas");
    button.type = "button";
    canvas.width = keys.length;
    canvas.height = queries.length;
    button.append(canvas);
    button.addEventListener("click", () => pick(head));
    canvas.addEventListener("pointermove", event => {
      const box = canvas.getBoundingClientRect();
      const part = (at, size, count) => Math.min(count - 1, Math.max(0, Math.floor(at / size * count)));
      const q = part(event.clientY - box.top, box.height, queries.length);
      const k = part(event.clientX - box.left, box.width, keys.length);
      const weight = masked(kind, q, k) ? "may not be seen" : shown(weights[q * keys.length + k]);
      say(`head ${head + 1}: ${quoted(queries[q])} → ${quoted(keys[k])}: ${weight}`);
    });
    canvas.addEventListener("pointerleave", () => say(""));
    found.append(button);
  });
  requestAnimationFrame(() => {  // the theme's colour is known only after insertion
    found.querySelectorAll("canvas").forEach((canvas, head) => {
      const pen = canvas.getContext("2d");
      pen.fillStyle = getComputedStyle(canvas).color;
      all[head].forEach((weight, i) => {
        pen.globalAlpha = Math.sqrt(Math.min(1, weight / largest));
        pen.fillRect(i % keys.length, Math.floor(i / keys.length), 1, 1);
      });
    });
  });
  return found;
}
