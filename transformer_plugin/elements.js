"use strict";
/* Elements, and grids of them that the keyboard can reach. */

function make(tag, text, name) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
}

/* One stop of the tab key for a grid of nodes, rows x columns; the arrow keys reach the others. */
function rove(grid) {
  grid.flat().forEach((node, i) => { node.tabIndex = i ? -1 : 0; });
  grid.forEach((row, i) => row.forEach((node, j) => node.addEventListener("keydown", event => {
    const right = getComputedStyle(node.parentNode).direction === "rtl" ? -1 : 1;
    const step = {ArrowLeft: [0, -right], ArrowRight: [0, right], ArrowUp: [-1, 0],
      ArrowDown: [1, 0], Home: [0, -j], End: [0, row.length - 1 - j]}[event.key];
    if (!step) return;
    event.preventDefault();
    const line = grid[i + step[0]];
    const next = line && line[Math.min(j, line.length - 1) + step[1]];
    if (!next) return;
    grid.flat().forEach(other => { other.tabIndex = -1; });
    next.tabIndex = 0;
    next.focus();
  })));
}
