"use strict";
/* What the reader has chosen. The address stores it, so that a link shows the same picture. */

const KINDS = Object.keys(ABOUT.layers);
const VIEWS = {map: "heat map", lines: "lines", overview: "all layers"};

const whole = (least, most) => text =>
  /^\d+$/.test(text) && text >= least && text <= most ? Number(text) : undefined;
const oneOf = names => text => names.includes(text) ? text : undefined;
const flag = text => text === "true" || undefined;
const place = text => /^[01],\d+$/.test(text) ? text.split(",").map(Number) : undefined;

/* The initial value of each choice, and the function that reads its text in the address. */
const CHOICES = {
  sentence: [0, whole(0, SENTENCES.length - 1)],
  kind: ["encoder-decoder", oneOf(KINDS)],
  layer: [ABOUT.layers["encoder-decoder"], whole(1, Math.max(...Object.values(ABOUT.layers)))],
  head: ["mean", text => oneOf(["mean", "all"])(text) ?? whole(1, ABOUT.heads)(text)],
  view: ["map", oneOf(Object.keys(VIEWS))],
  merged: [false, flag],  // subwords into words
  marks: [false, flag],  // of subwords
  fullScale: [false, flag],  // shades from 0 to 1
  least: [0.05, text => text >= 0 && text <= 0.5 ? Number(text) : undefined],  // of the lines
  kept: [null, place],  // [side, place] of the word whose lines are shown
};
const state = Object.fromEntries(Object.entries(CHOICES).map(([name, [first]]) => [name, first]));

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [name, [first, read]] of Object.entries(CHOICES)) {
    state[name] = (given.has(name) ? read(given.get(name)) : undefined) ?? first;
  }
  state.layer = Math.min(state.layer, ABOUT.layers[state.kind]);
}

/* remember: the browser's back button returns to what was shown before. */
function writeAddress(remember) {
  const stored = Object.entries(state).filter(([, value]) => value !== null && value !== false);
  const address = `#${stored.map(([name, value]) => `${name}=${value}`).join("&")}`;
  if (remember) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
