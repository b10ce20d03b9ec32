"use strict";
/* Elements, and pieces of sentences that both pointer and keyboard can reach. */

function make(tag, text, name) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
}

function makeSvg(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const heat = part => `color-mix(in srgb, var(--heat) ${(100 * part).toFixed(1)}%, transparent)`;
const headColour = head => `hsl(${Math.round(360 * head / ABOUT.heads + 210) % 360} 70% 50%)`;
const quoted = piece => `“${piece}”`;

/* One stop of the tab key for a grid of nodes, rows x columns; the arrow keys reach the others. */
function rove(grid) {
  grid.flat().forEach((node, i) => { node.tabIndex = i ? -1 : 0; });
  grid.forEach((row, i) => row.forEach((node, j) => node.addEventListener("keydown", event => {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
      Home: [0, -j], End: [0, row.length - 1 - j]}[event.key];
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

/* Calls choose(side, i) if nodes[side][i] is hovered, focused or pinned, else choose(). */
function choosable(nodes, choose) {
  let kept = null;
  const back = () => kept ? choose(...kept) : choose();
  nodes.forEach((side, s) => side.forEach((node, i) => {
    const keep = () => { kept = kept && kept[0] === s && kept[1] === i ? null : [s, i]; };
    node.addEventListener("pointerenter", () => choose(s, i));
    node.addEventListener("pointerleave", back);
    node.addEventListener("focus", () => choose(s, i));
    node.addEventListener("blur", back);
    node.addEventListener("click", () => { keep(); choose(s, i); });
    node.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { keep(); event.preventDefault(); }
      if (event.key === "Escape") { kept = null; choose(); }
    });
  }));
  choose();
}
