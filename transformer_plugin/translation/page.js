"use strict";
const get = id => document.getElementById(id);
let shown = [];  // the translations on the page
let about = {};  // facts of the model
const observer = new ResizeObserver(entries => {  // a map wider than the screen says so
  for (const {target} of entries) {
    target.classList.toggle("scrolls", target.scrollWidth > target.clientWidth);
  }
});

function say(text, bad = false) {
  get("status").textContent = text;
  get("status").classList.toggle("bad", bad);
}

/* The English name of a language; an unknown code is returned as it is. */
function language(code) {
  try {
    return new Intl.DisplayNames(["en"], {type: "language"}).of(code);
  } catch {
    return code;
  }
}

/* One layer's weights [T][S], or the mean over all layers. */
function chosen(attention) {
  const layer = get("layer").value;
  if (layer !== "mean") return attention[layer];
  return attention[0].map((row, t) => row.map((_, s) =>
    attention.reduce((sum, weights) => sum + weights[t][s], 0) / attention.length));
}

function heatMap(part) {
  const bare = piece => piece.replace(/^▁(?=.)/, "").replace(/^▁$/, "␣");
  const columns = [...part.source.map(bare), "</s>"], rows = [...part.target.map(bare), "</s>"];
  const weights = chosen(part.attention), readout = make("output");
  const largest = get("full-scale").checked ? 1 : Math.max(...weights.flat());
  const shade = get("shades").value === "root" ? Math.sqrt : x => x;
  const table = make("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  const corner = head.insertCell();
  corner.className = "axes";
  corner.append("source →", make("br"), "translation ↓");
  for (const piece of columns) {
    const cell = make("th");
    cell.scope = "col";
    cell.append(make("span", piece));
    head.append(cell);
  }
  rove(weights.map((numbers, t) => {
    const row = body.insertRow(), name = make("th", rows[t]);
    name.scope = "row";
    row.append(name);
    return numbers.map((weight, s) => {
      const cell = row.insertCell(), percent = 100 * Math.min(1, shade(weight / largest));
      cell.style.background =
        `color-mix(in srgb, var(--heat) ${percent.toFixed(1)}%, transparent)`;
      cell.setAttribute("aria-label", `${rows[t]} ← ${columns[s]}: ${weight.toFixed(3)}`);
      return cell;
    });
  }));
  const read = event => { readout.textContent = event.target.getAttribute("aria-label") || ""; };
  body.addEventListener("pointerover", read);
  body.addEventListener("focusin", read);
  const scroll = make("div", undefined, "map"), legend = make("p", "0 ", "small legend");
  scroll.append(table);
  observer.observe(scroll);
  const kind = get("shades").value === "root" ? "square roots of the weights" : "the weights";
  legend.append(make("span", undefined, "scale"), ` ${largest.toFixed(3)} (shades are ${kind})`);
  const found = make("div");
  found.append(readout, scroll, legend);
  return found;
}

/* A translation. All of its words are marked but the beginning and the end that `other` shares. */
function compared(text, other) {
  const words = text.split(" "), others = other.split(" ");
  const shorter = Math.min(words.length, others.length);
  let first = 0, last = 0;
  while (first < shorter && words[first] === others[first]) first++;
  while (last < shorter - first && words.at(-1 - last) === others.at(-1 - last)) last++;
  const end = words.length - last, line = make("bdi");
  const pieces = [words.slice(0, first), words.slice(first, end), words.slice(end)];
  pieces.map(piece => piece.join(" ")).forEach((piece, i) => {
    if (piece) line.append(line.hasChildNodes() ? " " : "", i === 1 ? make("mark", piece) : piece);
  });
  return line;
}

function alternatives(hypotheses) {
  const [best] = hypotheses, list = make("ol");
  for (const {translation, score, log_prob, tokens} of hypotheses) {
    const entry = make("li"), percent = 100 * Math.exp(log_prob - best.log_prob);
    const ratio = percent < 0.1 ? "below 0.1 %" : `${percent.toPrecision(3)}\u00a0%`;
    entry.append(compared(translation, best.translation), make("br"),
      make("span", `score ${score.toFixed(3)}; log P ${log_prob.toFixed(3)}, ${tokens} tokens`
        + (log_prob === best.log_prob ? "" : `; ${ratio} of the first's P`), "small"));
    list.append(entry);
  }
  const details = make("details");
  details.append(make("summary", `${hypotheses.length} hypotheses of the beam`), list,
    make("p", "log P is the log-probability of all tokens, with the end of sentence. The score is log P"
      + ` divided by the length penalty (alpha ${about.lenpen}), so that long translations are not at a`
      + " disadvantage. Scores nearer to 0 are better, and the best one is the translation. Marked: where"
      + " a hypothesis differs from the first.", "small"));
  return details;
}

function draw() {
  const open = [...document.querySelectorAll("details")].map(node => node.open);
  get("results").replaceChildren(...shown.map(found => {
    const article = make("article"), source = make("p", found.source, "source");
    const translation = make("h2", found.translation);
    source.lang = about.source_lang || "";
    translation.lang = about.target_lang || "";
    source.dir = translation.dir = "auto";
    article.append(source, translation);
    if (found.hypotheses && found.parts.length) article.append(alternatives(found.hypotheses));
    for (const part of found.parts) {
      const details = make("details");
      details.append(make("summary", "Encoder-decoder attention"), part.attention ? heatMap(part)
        : make("p", "Too long to show, or not a model of the plugin."));
      article.append(details);
    }
    return article;
  }));
  const all = [...document.querySelectorAll("details")];
  const first = document.querySelector("article");
  all.forEach((node, i) => {
    node.open = open.length === all.length ? open[i] : first.contains(node);
  });
}

function offerLayers() {
  const part = shown.flatMap(found => found.parts).find(part => part.attention);
  const layers = part ? part.attention.length : 0, before = get("layer").value;
  const options = [["mean", "all layers"]];
  for (let i = 0; i < layers; i++) options.push([String(i), `layer ${i + 1}`]);
  get("layer").replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  if (options.some(([value]) => value === before)) get("layer").value = before;
  get("layer").disabled = !layers;
}

async function translate(event) {
  if (event) event.preventDefault();
  get("go").disabled = true;
  say("…");
  try {
    const started = performance.now();
    const response = await fetch("translate", {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: JSON.stringify({text: get("text").value, attention: true, nbest: about.beam || 1}),
    });
    const answer = await response.json().catch(() => ({error: response.statusText}));
    if (!response.ok) throw new Error(answer.error);
    shown = answer.translations;
    offerLayers();
    get("results").replaceChildren();  // so that draw() opens the first result
    draw();
    say(`${((performance.now() - started) / 1000).toFixed(2)} s`);
  } catch (error) {
    say(error instanceof TypeError ? "The service does not answer." : error.message, true);
  }
  get("go").disabled = false;
}

get("form").addEventListener("submit", translate);
for (const name of ["layer", "shades", "full-scale"]) get(name).addEventListener("change", draw);
get("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) get("form").requestSubmit();
});
fetch("health").then(response => response.json()).then(found => {
  about = found;
  const direction = `${language(about.source_lang)} to ${language(about.target_lang)}`;
  get("title").textContent = direction;
  document.title = `${direction}: transformer-plugin`;
  const text = new URLSearchParams(location.hash.slice(1)).get("text");  // a link to a sentence
  if (text) {
    get("text").value = text;
    translate();
  }
}).catch(() => say("The service does not answer.", true));
