"use strict";
/* Draws the state, and changes it when the reader chooses something. */

const HINTS = {
  map: "Point at a cell, or move with the arrow keys, to read its weight.",
  lines: "Point at a word to see its lines alone. A click keeps it, Escape lets it go.",
  overview: "Point at a map to read its weights. A click opens it.",
};
let weights = null;  // of the current sentence; null if it is too long
let newest = 0;  // only the last selected sentence is drawn

/* What the picture shows. */
function currentPanel() {
  const all = state.view === "overview" && {layer: "all", head: "all"};
  return panel(state.sentence, weights, {...state, ...all});
}

function currentLines() {
  const room = get("picture").clientWidth - 4;
  return {least: state.least, kept: state.kept, room, palette: SCREEN};
}

function drawPicture() {
  const small = state.view === "overview" || (state.view === "map" && state.head === "all");
  const hint = HINTS[small ? "overview" : state.view];
  const say = text => { get("readout").textContent = text ?? hint; };
  for (const node of document.querySelectorAll(".needs-weights")) node.hidden = !weights;
  if (!weights) {
    get("caption").textContent = "This sentence is too long to show; see --longest.";
    get("picture").replaceChildren();
    return;
  }
  const current = currentPanel(), [queries, keys] = current.axes;
  const open = ({layer, head}) => change({view: "map", layer, head}, true);
  if (state.kept && !(state.kept[1] < [current.queries, current.keys][state.kept[0]].length)) {
    state.kept = null;
  }
  say();
  get("caption").textContent = `${current.title}. ` + (state.view === "lines"
    ? `Lines join queries (${queries}) and keys (${keys}).`
    : `Rows are queries (${queries}), columns are keys (${keys}); a row sums to 1.`);
  const draw = {
    map: () => small ? allHeads(current, say, open)
      : heatMap(current, get("picture").clientWidth - 4, say),
    lines: () => linesView(current, currentLines(), say, kept => { state.kept = kept; writeAddress(); }),
    overview: () => overview(current, state, get("picture").clientWidth, say, open),
  };
  get("picture").replaceChildren(draw[state.view]());
  get("legend").replaceChildren(legend(current, state.view, SCREEN));
}

function drawAlignment() {
  get("alignment").replaceChildren();
  if (!weights) return;
  const chosen = get("alignment-layer").value, layer = chosen === "all" ? chosen : Number(chosen);
  const current = panel(state.sentence, weights, {kind: "encoder-decoder", layer, head: "mean",
    merged: state.merged, marks: state.marks});
  get("alignment-caption").textContent = current.title;
  get("alignment").append(alignment(current, SENTENCES[state.sentence].log_probs,
    text => { get("alignment-readout").textContent = text; }));
}

function drawBeam({hypotheses, reference}) {
  get("beam").tBodies[0].replaceChildren(...hypotheses.map((found, i) => {
    const row = make("tr"), figures = [i + 1, found.score.toFixed(4), found.log_prob.toFixed(4)];
    row.append(...[...figures, found.length, found.text].map(text => make("td", String(text))));
    row.lastChild.dir = "auto";
    return row;
  }));
  get("reference").replaceChildren();
  if (reference !== null) get("reference").append(make("b", "reference "), make("bdi", reference));
}

/* Draws all but the beam. remember: see writeAddress. */
function draw(remember) {
  const {type, name, value} = document.activeElement;
  drawControls(change);
  drawPicture();
  drawAlignment();
  writeAddress(remember);
  if (type === "radio") document.querySelector(`[name=${name}][value="${value}"]`)?.focus();
}

/* Applies the reader's choices and draws the page. */
function change(choices, remember = false) {
  if (["sentence", "kind", "merged"].some(name => name in choices)) state.kept = null;
  Object.assign(state, choices);
  state.layer = Math.min(state.layer, ABOUT.layers[state.kind]);
  if ("sentence" in choices) show();
  else draw(remember);
}

async function show() {
  const asked = ++newest;
  try {
    const found = await unpack(state.sentence);
    if (asked !== newest) return;
    weights = found;
    draw();
    drawBeam(SENTENCES[state.sentence]);
  } catch (error) {
    get("readout").textContent = `The weights cannot be shown: ${error.message}`;
    throw error;
  }
}

function saveAs(format) {
  const {sentence, kind, layer, head, view} = state;
  const parts = view === "overview" ? ["all layers"] : ["layer", layer, "head", head];
  const name = [SENTENCES[sentence].name, kind, ...parts, view === "lines" ? "lines" : "map"];
  save(format, name.join("-").replace(/\W+/g, "-"), currentPanel(), view, currentLines());
}

async function start() {
  get("title").textContent = document.title = ABOUT.title;
  get("facts").textContent = ABOUT.facts;
  get("rounding").textContent = ABOUT.rounding;
  get("sentence").append(...SENTENCES.map(({name, text}) => new Option(`${name}: ${text}`)));
  const layers = ABOUT.layers["encoder-decoder"];
  get("alignment-layer").append(...numbers(layers).map(i => new Option(`layer ${i}`, i)),
    new Option("all layers", "all"));
  get("alignment-layer").value = String(layers);
  get("alignment-layer").addEventListener("change", drawAlignment);
  for (const format of ["svg", "png", "csv"]) {
    get(`save-${format}`).addEventListener("click", () => saveAs(format));
  }
  listenToControls(change);
  document.querySelectorAll(".scrolled").forEach(noteWidth);
  addEventListener("hashchange", () => { readAddress(); show(); });
  readAddress();
  await show();
  document.documentElement.dataset.opened = Math.round(performance.now());  // milliseconds
}

start();
