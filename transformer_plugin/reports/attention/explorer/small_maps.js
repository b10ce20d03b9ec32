"use strict";
/* Many heads at once, each a small map that a click opens: all heads of a layer, with their words,
   or an overview of all layers and heads. */

/* open(map) shows one head; say(text) tells what is pointed at. */
function allHeads(panel, say, open) {
  const found = make("div", undefined, "gallery");
  found.append(...panel.maps.map(map => smallMap(panel, map, {cell: 14, labels: true}, say, open)));
  return found;
}

/* Layers are rows, heads columns. chosen: {layer, head} of the one that was open; room: the width
   to fill, in pixels. */
function overview(panel, chosen, room, say, open) {
  const table = make("table", undefined, "overview"), head = table.createTHead().insertRow();
  const heading = (row, scope, text) => {
    const cell = make("th", text);
    cell.scope = scope;
    row.append(cell);
  };
  head.append(make("td"));
  for (const number of numbers(ABOUT.heads)) heading(head, "col", `head ${number}`);
  const body = table.createTBody(), grid = [];
  const width = Math.max(56, Math.min(110, (room - 80) / ABOUT.heads - 18));
  const cell = width / Math.max(panel.queries.length, panel.keys.length);
  for (const map of panel.maps) {
    if (map.head === 1) {
      heading(body.insertRow(), "row", `layer ${map.layer}`);
      grid.push([]);
    }
    const button = smallMap(panel, map, {cell, labels: false}, say, open);
    if (map.layer === chosen.layer && map.head === chosen.head) {
      button.setAttribute("aria-current", "true");
    }
    body.lastChild.insertCell().append(button);
    grid.at(-1).push(button);
  }
  rove(grid);
  return table;
}

function smallMap(panel, map, {cell, labels}, say, open) {
  const button = make("button"), {node, left, top, width, height} =
    mapDrawing(panel, map, {cell, labels, palette: SCREEN});
  button.type = "button";
  button.setAttribute("aria-label", map.name);
  button.title = `${map.name}: click to open`;
  const svg = makeSvg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": true});
  svg.append(node);
  if (labels) button.append(make("span", map.name));
  button.append(svg);
  button.addEventListener("click", () => open(map));
  button.addEventListener("focus", () => say(`${map.name}: Enter opens it`));
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const k = Math.floor(((event.clientX - box.left) * width / box.width - left) / cell);
    const q = Math.floor(((event.clientY - box.top) * height / box.height - top) / cell);
    const inside = panel.keys[k] && panel.queries[q];
    say(inside ? `${map.name}: ${inWords(panel, map, q, k)}` : map.name);
  });
  svg.addEventListener("pointerleave", () => say());
  return button;
}
