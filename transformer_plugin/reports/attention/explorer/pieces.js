"use strict";
/* Pieces of sentences: drawn, measured, and chosen by pointer or keyboard. */

function makeSvg(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const numbers = count => Array.from({length: count}, (_, i) => i + 1);
const quoted = piece => `“${piece}”`;

/* Calls choose(side, i) if nodes[side][i] is hovered or focused, else with the one that a click or
   Enter has kept, else with the first choice, else choose(). keep(place) is told what is kept. */
function choosable(nodes, choose, {first = null, kept = null, keep = () => {}}) {
  const back = () => choose(...kept || first || []);
  const toggle = (s, i) => {
    kept = kept && kept[0] === s && kept[1] === i ? null : [s, i];
    keep(kept);
  };
  nodes.forEach((side, s) => side.forEach((node, i) => {
    node.addEventListener("pointerenter", () => choose(s, i));
    node.addEventListener("pointerleave", back);
    node.addEventListener("focus", () => choose(s, i));
    node.addEventListener("blur", back);
    node.addEventListener("click", () => { toggle(s, i); choose(s, i); });
    node.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { toggle(s, i); event.preventDefault(); }
      if (event.key === "Escape") { keep(kept = null); back(); }
    });
  }));
  back();
}

/* The width of a text in pixels, as SVG shows it. */
function textWidth(text, size) {
  textWidth.pen ??= document.createElement("canvas").getContext("2d");
  textWidth.pen.font = `${size}px sans-serif`;
  return textWidth.pen.measureText(text).width;
}

const widest = (texts, size) => Math.max(0, ...texts.map(text => textWidth(text, size)));
