"use strict";
/* Source and translation as text, each shaded by the weights of the selected piece of the other. */

/* weights: [layer][head] of the encoder-decoder attention; layer: a number, or "mean". */
function alignment(sentence, weights, layer, say) {
  const found = make("div"), {source, target} = sentence;
  const average = weights && mean(layer === "mean" ? weights.flat() : weights[layer]);
  const nodes = [["source", source], ["translation", target]].map(([name, pieces]) => {
    const line = make("div", undefined, "pieces");
    line.append(make("b", name));
    const spans = pieces.map(piece => make("span", piece));
    line.append(...spans);
    found.append(line);
    return spans;
  });
  if (!average) return found;
  const weight = (t, s) => average[t * source.length + s];

  function choose(side, chosen) {
    nodes.forEach((spans, s) => spans.forEach((span, i) => {
      span.classList.toggle("chosen", s === side && i === chosen);
      const other = side !== undefined && s !== side;
      span.style.background = other ? heat(side ? weight(chosen, i) : weight(i, chosen)) : "";
    }));
    if (side === undefined) return say("");
    const pieces = side ? source : target;
    const most = pieces.map((piece, i) => [side ? weight(chosen, i) : weight(i, chosen), piece])
      .sort((a, b) => b[0] - a[0]).slice(0, 3);
    const list = most.map(([w, piece]) => `${quoted(piece)} ${shown(w)}`).join(", ");
    const sure = side ? ` (probability ${Math.exp(sentence.log_probs[chosen]).toFixed(2)})` : "";
    say(`${quoted((side ? target : source)[chosen])}${sure} ${side ? "←" : "→"} ${list}`);
  }

  rove(nodes);
  choosable(nodes, choose);
  return found;
}
