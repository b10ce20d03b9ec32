"use strict";
/* The controls, their state and how it is drawn. The address stores the state. */

const get = id => document.getElementById(id);
const KINDS = Object.keys(ABOUT.layers);
const NAMES = {encoder: "Encoder", decoder: "Decoder", "encoder-decoder": "Encoder-decoder"};
const state = {sentence: 0, kind: "encoder-decoder", layer: ABOUT.layers["encoder-decoder"],
  head: "mean", view: "map"};
let weights = null;  // of the current sentence
let newest = 0;  // only the last selected sentence is drawn

function fieldset(name, options) {
  get(name).querySelectorAll("label").forEach(node => node.remove());
  for (const [value, text, colour] of options) {
    const label = make("label", undefined, "choice"), input = make("input"), span = make("span", text);
    Object.assign(input, {type: "radio", name, value, checked: String(state[name]) === String(value)});
    if (colour) {
      const dot = make("i");
      dot.style.background = colour;
      span.prepend(dot);
    }
    label.append(input, span);
    get(name).append(label);
    input.addEventListener("change", () => { state[name] = value; draw(); });
  }
}

const AXES = {encoder: ["source", "source"], decoder: ["translation", "read so far"],
  "encoder-decoder": ["translation", "source"]};  // queries and keys
/* A piece without subword marks, unless they are switched on. */
const bare = piece => get("marks").checked ? piece : piece.replace(/^▁|@@$/, "") || "␣";
const numbers = count => Array.from({length: count}, (_, i) => i + 1);
const say = text => { get("readout").textContent = text; };

function drawPicture() {
  const {kind, layer, head, view} = state, [queries, keys] = axes(SENTENCES[state.sentence], kind).map(pieces => pieces.map(bare));
  if (!weights) {
    get("picture").replaceChildren(make("p", "Too long to show; see --longest."));
    return;
  }
  const heads = weights[kind][layer - 1];
  const all = head === "all" ? heads : [head === "mean" ? mean(heads) : heads[head - 1]];
  const largest = get("whole-scale").checked ? 1
    : Math.max(0.001, ...all.map(found => found.reduce((a, b) => Math.max(a, b), 0)));
  const colours = head === "all" ? heads.map((_, h) => headColour(h)) : ["var(--heat)"];
  const threshold = Number(get("threshold").value);
  const pick = h => { state.head = h + 1; draw(); };
  const picture = view === "lines"
    ? linesView(all, colours, queries, keys, kind, threshold, say)
    : head === "all" ? gallery(all, queries, keys, kind, largest, say, pick)
      : heatMap(all[0], queries, keys, kind, largest, say, AXES[kind]);
  get("picture").replaceChildren(picture);
  get("largest").textContent = shown(largest);
}

function drawAlignment() {
  const found = weights && weights["encoder-decoder"];
  const tell = text => { get("alignment-readout").textContent = text; };
  const sentence = SENTENCES[state.sentence];
  const shownSentence = {...sentence,
    source: sentence.source.map(bare), target: sentence.target.map(bare)};
  get("alignment").replaceChildren(
    alignment(shownSentence, found, get("alignment-layer").value, tell));
}

function drawBeam({hypotheses, reference}) {
  get("beam").tBodies[0].replaceChildren(...hypotheses.map((found, i) => {
    const row = make("tr"), numbers = [i + 1, found.score.toFixed(4), found.log_prob.toFixed(4)];
    row.append(...[...numbers, found.length, found.text].map(text => make("td", String(text))));
    return row;
  }));
  get("reference").replaceChildren();
  if (reference !== null) get("reference").append(make("b", "reference "), reference);
}

function drawControls() {
  const {sentence, kind, head, view} = state, queries = kind === "encoder" ? "source" : "translation";
  state.layer = Math.min(state.layer, ABOUT.layers[kind]);
  fieldset("kind", KINDS.map(name => [name, NAMES[name]]));
  fieldset("layer", numbers(ABOUT.layers[kind]).map(i => [i, i]));
  fieldset("head", [["mean", "mean"], ["all", "all"],
    ...numbers(ABOUT.heads).map(i => [i, i, view === "lines" && head === "all" && headColour(i - 1)])]);
  fieldset("view", [["map", "heat map"], ["lines", "lines"]]);
  get("sentence").selectedIndex = sentence;
  get("previous").disabled = sentence === 0;
  get("next").disabled = sentence === SENTENCES.length - 1;
  document.querySelectorAll(".map-only").forEach(node => { node.hidden = view !== "map"; });
  document.querySelectorAll(".lines-only").forEach(node => { node.hidden = view !== "lines"; });
  get("threshold-value").textContent = Number(get("threshold").value).toFixed(2);
  const heads = head === "mean" ? "mean of the heads" : head === "all" ? "all heads" : `head ${head}`;
  const keys = {encoder: "the source", decoder: "what was read so far"}[kind] || "the source";
  get("caption").textContent = `${NAMES[kind]} attention, layer ${state.layer} of `
    + `${ABOUT.layers[kind]}, ${heads}: each piece of the ${queries} asks ${keys}.`;
}

function draw() {
  const focused = document.activeElement;
  const again = focused.type === "radio" && [focused.name, focused.value];
  drawControls();
  say("");
  drawPicture();
  const entries = Object.entries(state).map(([name, value]) => `${name}=${value}`);
  history.replaceState(null, "", `#${entries.join("&")}`);
  if (again) document.querySelector(`[name=${again[0]}][value="${again[1]}"]`)?.focus();
}

async function show(number) {
  const asked = ++newest;
  state.sentence = number;
  try {
    const found = await unpack(number);
    if (asked !== newest) return;
    weights = found;
    draw();
    drawAlignment();
    drawBeam(SENTENCES[number]);
  } catch (error) {
    say(`This browser cannot unpack the weights: ${error.message}`);
    throw error;
  }
}

/* Restores the state in an address, as far as it is valid here. */
function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const whole = (name, most) => {
    const value = Number(asked.get(name));
    return asked.has(name) && Number.isInteger(value) && value >= 0 && value <= most ? value : null;
  };
  state.sentence = whole("sentence", SENTENCES.length - 1) ?? state.sentence;
  if (KINDS.includes(asked.get("kind"))) state.kind = asked.get("kind");
  state.layer = whole("layer", ABOUT.layers[state.kind]) || state.layer;
  if (["mean", "all"].includes(asked.get("head"))) state.head = asked.get("head");
  state.head = whole("head", ABOUT.heads) || state.head;
  if (["map", "lines"].includes(asked.get("view"))) state.view = asked.get("view");
}

async function start() {
  get("title").textContent = document.title = ABOUT.title;
  get("facts").textContent = ABOUT.facts;
  get("rounding").textContent = ABOUT.rounding;
  get("sentence").append(...SENTENCES.map(({name, text}) => new Option(`${name}: ${text}`)));
  const layers = ABOUT.layers["encoder-decoder"];
  get("alignment-layer").append(
    ...numbers(layers).map(i => new Option(`layer ${i}`, i - 1)), new Option("all layers", "mean"));
  get("alignment-layer").value = String(Math.max(0, layers - 2));
  readAddress();
  get("sentence").addEventListener("change", event => show(event.target.selectedIndex));
  get("previous").addEventListener("click", () => show(state.sentence - 1));
  get("next").addEventListener("click", () => show(state.sentence + 1));
  get("whole-scale").addEventListener("change", draw);
  get("marks").addEventListener("change", () => { draw(); drawAlignment(); });
  get("threshold").addEventListener("input", draw);
  get("alignment-layer").addEventListener("change", drawAlignment);
  get("controls").addEventListener("submit", event => event.preventDefault());
  get("theme").addEventListener("change", event => {
    document.documentElement.dataset.theme = event.target.value;
    drawPicture();  // a canvas is not redrawn automatically
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPicture);
  addEventListener("hashchange", () => { readAddress(); show(state.sentence); });
  await show(state.sentence);
  document.documentElement.dataset.opened = Math.round(performance.now());  // milliseconds
}

start();
