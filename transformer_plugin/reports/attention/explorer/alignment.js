"use strict";
/* Source and translation as text, each shaded by the weights of the chosen word of the other. */

/* panel: a mean of encoder-decoder attention; words of the translation are its queries.
   logProbs: of each subword of the translation. The first word of the translation is chosen. */
function alignment(panel, logProbs, say) {
  const found = make("div"), sides = [panel.queries, panel.keys];
  const nodes = sides.map((units, s) => {
    const line = make("div", undefined, "pieces"), label = make("b", panel.axes[s]);
    label.dir = "ltr";  // so that the words decide the line's direction
    line.dir = "auto";
    line.append(label, ...units.map(({name}) => make("span", name)));
    return [...line.querySelectorAll("span")];
  });
  found.append(nodes[1][0].parentNode, nodes[0][0].parentNode);  // the source comes first
  const weight = (s, chosen, i) =>
    panel.maps[0].weights[(s ? i : chosen) * panel.keys.length + (s ? chosen : i)];

  function choose(s, chosen) {
    nodes.forEach((spans, side) => spans.forEach((span, i) => {
      span.classList.toggle("chosen", side === s && i === chosen);
      span.style.background = side === s ? ""
        : heat(BEHIND_TEXT * shade(weight(s, chosen, i), panel.largest));
    }));
    const sum = s ? null : sides[0][chosen].members.reduce((total, i) => total + logProbs[i], 0);
    const probability = s ? "" : `, probability ${Math.exp(sum).toFixed(2)}`;
    say(`${strongest(panel, s, chosen)}${probability}`);
  }

  rove([nodes[1], nodes[0]]);
  choosable(nodes, choose, {first: [0, 0]});
  return found;
}
