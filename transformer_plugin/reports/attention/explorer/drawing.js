"use strict";
/* A head's weights as a drawing: the small maps of the page, and those that are saved. */

const LEVELS = 40;  // shades of a drawing
const SMALL = 11, GAP = 6;  // size of the labels and their distance, in pixels

/* The map with its top left corner at 0, 0: {node, left, top, width, height}. Its cells, of `cell`
   pixels, begin at left, top. palette: SCREEN or PRINT; labels: whether to write queries and keys. */
function mapDrawing(panel, {weights}, {cell, palette, labels}) {
  const {queries, keys, axes: [rowAxis, columnAxis], largest} = panel;
  const room = units => 2 * SMALL + GAP + widest(units.map(({name}) => name), SMALL);
  const left = labels ? Math.max(room(queries), cell) : 0, top = labels ? room(keys) : 0;
  const width = cell * keys.length, height = cell * queries.length;
  const node = makeSvg("g", {"font-family": "sans-serif", "font-size": SMALL});
  const cells = cellsDrawing(weights, keys.length, largest, palette.heat);
  cells.setAttribute("transform", `translate(${left} ${top}) scale(${cell})`);
  node.append(cells, makeSvg("rect", {x: left, y: top, width, height, fill: "none",
    stroke: palette.line}));
  if (labels) {
    const at = (x, y, turned) =>
      ({transform: `translate(${x} ${y})${turned ? " rotate(-90)" : ""}`, dy: "0.35em"});
    const axis = {"text-anchor": "middle", fill: palette.quiet};
    node.append(
      ...queries.map(({name}, q) => makeSvg("text", {...at(left - GAP, top + cell * (q + 0.5)),
        "text-anchor": "end", fill: palette.ink}, name)),
      ...keys.map(({name}, k) => makeSvg("text", {...at(left + cell * (k + 0.5), top - GAP, true),
        fill: palette.ink}, name)),
      makeSvg("text", {...at(left + width / 2, SMALL / 2), ...axis}, columnAxis),
      makeSvg("text", {...at(SMALL / 2, top + height / 2, true), ...axis}, rowAxis));
  }
  return {node, left, top, width: left + width, height: top + height};
}

/* Cells of size 1. There is one path for each shade: a node for each cell would be slow. */
function cellsDrawing(weights, columns, largest, colour) {
  const paths = Array(LEVELS + 1).fill("");
  weights.forEach((weight, i) => {
    const level = Math.round(LEVELS * shade(weight, largest));
    if (level) paths[level] += `M${i % columns} ${Math.floor(i / columns)}h1v1h-1z`;
  });
  const group = makeSvg("g", {fill: colour, "shape-rendering": "crispEdges"});
  paths.forEach((d, level) => {
    if (d) group.append(makeSvg("path", {d, "fill-opacity": level / LEVELS}));
  });
  return group;
}

/* What the colours of a picture mean: heads, if each line has its head's colour, else weights. */
function legend(panel, view, palette) {
  const ofHeads = view === "lines" && panel.maps.length > 1;
  const node = ofHeads ? headLegend(panel.maps) : scaleLegend(panel.largest, palette);
  for (const [name, value] of Object.entries({"font-family": "sans-serif", "font-size": SMALL,
    fill: palette.ink})) node.setAttribute(name, value);
  return node;
}

/* A quarter of the largest weight has half the shade. */
function scaleLegend(largest, palette) {
  const node = makeSvg("svg", {width: 220, height: 32});
  const fade = makeSvg("linearGradient", {id: "fade"});
  for (const part of [0, 1]) {
    fade.append(makeSvg("stop", {offset: part, "stop-color": palette.heat, "stop-opacity": part}));
  }
  node.append(fade, makeSvg("rect", {x: 10.5, y: 0.5, width: 180, height: 12, fill: "url(#fade)",
    stroke: palette.line}));
  for (const [x, weight] of [[10, 0], [100, largest / 4], [190, largest]]) {
    node.append(makeSvg("text", {x, y: 26, "text-anchor": "middle"},
      weight ? formatWeight(weight) : "0"));
  }
  return node;
}

function headLegend(maps) {
  const width = 60, height = 18, across = 5;
  const node = makeSvg("svg", {width: width * Math.min(across, maps.length),
    height: height * Math.ceil(maps.length / across)});
  maps.forEach(({head, name}, i) => {
    const x = width * (i % across), y = height * Math.floor(i / across);
    node.append(makeSvg("rect", {x, y, width: SMALL, height: SMALL, fill: headColour(head)}),
      makeSvg("text", {x: x + SMALL + 4, y: y + SMALL / 2, dy: "0.35em"}, name));
  });
  return node;
}
