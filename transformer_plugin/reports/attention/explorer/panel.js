"use strict";
/* A panel is what one picture shows: the weights of some heads between queries and keys. */

const NAMES = {encoder: "Encoder", decoder: "Decoder", "encoder-decoder": "Encoder-decoder"};
const AXES = {encoder: ["source", "source"], decoder: ["translation", "read so far"],
  "encoder-decoder": ["translation", "source"]};  // queries and keys

/* number: of the sentence; weights: unpacked. layer: 1, 2, ..., or "all"; head: 1, 2, ..., "all",
   or "mean" over the heads of these layers; fullScale: shades from 0 to 1, not to the largest.
   Gives {kind, title, axes, queries, keys, maps: [{layer, head, name, weights}], largest, sees}. */
function panel(number, weights, {kind, layer, head, merged, marks, fullScale}) {
  const sides = axes(SENTENCES[number], kind);
  const [queries, keys] = sides.map(side => units(side, {merged, marks}));
  const width = sides[1].pieces.length;
  const merge = found => merged ? mergedWeights(found, queries, keys, width) : found;
  const maps = chosenMaps(weights[kind], layer, head)
    .map(map => ({...map, weights: merge(map.weights)}));
  const layers = layer === "all" ? "all layers" : `layer ${layer} of ${ABOUT.layers[kind]}`;
  return {kind, title: `${NAMES[kind]} attention, ${layers}, ${headName(head)}`, axes: AXES[kind],
    queries, keys, maps, largest: fullScale ? 1 : Math.max(0.001, largestOf({maps})),
    sees: (q, k) => queries[q].members.some(i => keys[k].members.some(j => visible(kind, i, j)))};
}

function chosenMaps(layers, layer, head) {
  const chosen = layers.map((heads, i) => [i + 1, heads])
    .filter(([number]) => layer === "all" || number === layer);
  if (head === "mean") {
    return [{layer, head, name: headName(head), weights: mean(chosen.flatMap(([, heads]) => heads))}];
  }
  return chosen.flatMap(([number, heads]) => heads.map((found, h) => ({layer: number, head: h + 1,
    name: layer === "all" ? `layer ${number}, head ${h + 1}` : `head ${h + 1}`, weights: found})))
    .filter(map => head === "all" || map.head === head);
}

function headName(head) {
  return {all: "all heads", mean: "mean of the heads"}[head] || `head ${head}`;
}

/* Whether the mask lets subword i attend to subword j. */
function visible(kind, i, j) {
  if (kind === "encoder-decoder") return true;
  return !(kind === "decoder" && j > i) && !(ABOUT.window > 0 && Math.abs(i - j) > ABOUT.window);
}

/* A weight in words: "“Hund” → “dog”: 0.532". */
function inWords(panel, map, q, k) {
  const weight = panel.sees(q, k) ? formatWeight(map.weights[q * panel.keys.length + k]) : "masked";
  return `${quoted(panel.queries[q].name)} → ${quoted(panel.keys[k].name)}: ${weight}`;
}

/* What a word attends to most, or what attends to it: "“Hund” → “dog” 0.532, “the” 0.201".
   side: 0 for a query, 1 for a key; several heads are averaged. */
function strongest({queries, keys, maps}, side, chosen) {
  const others = side ? queries : keys;
  const list = others.map(({name}, i) => {
    const place = side ? i * keys.length + chosen : chosen * keys.length + i;
    return {name, weight: maps.reduce((sum, {weights}) => sum + weights[place], 0) / maps.length};
  }).sort((a, b) => b.weight - a.weight).slice(0, 4).filter(({weight}) => weight >= 0.0005);
  const words = list.map(({name, weight}) => `${quoted(name)} ${formatWeight(weight)}`).join(", ");
  const {name} = (side ? keys : queries)[chosen];
  return `${quoted(name)} ${side ? "←" : "→"} ${words || "nothing above 0.000"}`;
}

function largestOf({maps}) {
  return Math.max(...maps.map(({weights}) => weights.reduce((a, b) => Math.max(a, b), 0)));
}
