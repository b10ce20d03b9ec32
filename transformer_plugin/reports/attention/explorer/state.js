"use strict";
/* What the reader has chosen. The address stores it: a link shows what was seen. */

const KINDS = Object.keys(ABOUT.layers);
const VIEWS = {map: "heat map", lines: "lines", overview: "all layers"};

const whole = (least, most) => text =>
  /^\d+$/.test(text) && text >= least && text <= most ? Number(text) : undefined;
const oneOf = names => text => names.includes(text) ? text : undefined;
const flag = text => text === "true" || undefined;
const place = text => /^[01],\d+$/.test(text) ? text.split(",").map(Number) : undefined;

/* What each choice is at first, and how its text in the address is read. */
const CHOICES = {
  sentence: [0, whole(0, SENTENCES.length - 1)],
  kind: ["encoder-decoder", oneOf(KINDS)],
  layer: [ABOUT.layers["encoder-decoder"], whole(1, Math.max(...Object.values(ABOUT.layers)))],
  head: ["mean", text => oneOf(["mean", "all"])(text) ?? whole(1, ABOUT.heads)(text)],
  view: ["map", oneOf(Object.keys(VIEWS))],
  merged: [false, flag],  // subwords to words
  marks: [false, flag],  // of subwords
  fullScale: [false, flag],  // shades from 0 to 1
  least: [0.05, text => text >= 0 && text <= 0.5 ? Number(text) : undefined],  // of the lines
  kept: [null, place],  // [side, place] of the word whose lines are shown
};
const state = Object.fromEntries(Object.entries(CHOICES).map(([name, [first]]) => [name, first]));

function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const [name, [first, read]] of Object.entries(CHOICES)) {
    state[name] = (asked.has(name) ? read(asked.get(name)) : undefined) ?? first;
  }
  state.layer = Math.min(state.layer, ABOUT.layers[state.kind]);
}

/* remember: the browser's back button returns to what was shown before. */
function writeAddress(remember) {
  const told = Object.entries(state).filter(([, value]) => value !== null && value !== false);
  const address = `#${told.map(([name, value]) => `${name}=${value}`).join("&")}`;
  if (remember) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
