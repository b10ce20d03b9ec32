"use strict";
/* One head's weights as a table of shades, queries x keys. */

/* room: the width to fill, in pixels; say(text) tells what is pointed at. */
function heatMap(panel, room, say) {
  const {queries, keys, maps: [map], axes: [rowAxis, columnAxis], largest} = panel;
  const table = make("table", undefined, "map"), head = table.createTHead().insertRow();
  const body = table.createTBody();
  const label = widest(queries.map(({name}) => name), 13) + 20;
  table.style.setProperty("--cell", `${Math.max(16, Math.min(32, (room - label) / keys.length))}px`);
  const corner = make("td", undefined, "axes");
  corner.append(make("span", `keys: ${columnAxis} →`), make("span", `queries: ${rowAxis} ↓`));
  head.append(corner);
  const columns = keys.map(({name}) => {
    const cell = make("th");
    cell.scope = "col";
    cell.append(make("span", name));
    head.append(cell);
    return cell;
  });
  const rows = [], grid = [];
  queries.forEach(({name}, q) => {
    const row = body.insertRow(), header = make("th", name);
    header.scope = "row";
    row.append(header);
    rows.push(header);
    grid.push(keys.map((_, k) => {
      const cell = row.insertCell(), weight = map.weights[q * keys.length + k];
      if (panel.sees(q, k)) cell.style.background = heat(shade(weight, largest));
      else cell.className = "masked";
      cell.setAttribute("aria-label", panel.sees(q, k) ? formatWeight(weight) : "masked");
      return cell;
    }));
  });
  rove(grid);

  let marked = [];
  const mark = event => {
    const cell = event.target.closest("tbody td");
    marked.forEach(node => node.classList.remove("chosen"));
    marked = [];
    if (!cell) return say();
    const q = cell.parentNode.sectionRowIndex, k = cell.cellIndex - 1;
    marked = [rows[q], columns[k]];
    marked.forEach(node => node.classList.add("chosen"));
    say(inWords(panel, map, q, k));
  };
  body.addEventListener("pointerover", mark);
  body.addEventListener("focusin", mark);
  body.addEventListener("pointerleave", () => say());
  return table;
}
