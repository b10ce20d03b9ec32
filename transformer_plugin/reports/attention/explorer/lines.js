"use strict";
/* Lines between queries (left) and keys (right), as in the paper's Figures 3 to 5. */

const ROW = 24;  // pixels

/* all: the weights of each visible head; colours: their colours. */
function linesView(all, colours, queries, keys, kind, threshold, say) {
  const width = Math.min(760, Math.max(300, document.getElementById("picture").clientWidth - 4));
  const side = Math.min(220, width * 0.34), height = ROW * Math.max(queries.length, keys.length);
  const svg = makeSvg("svg", {class: "lines", width, height, role: "group",
    "aria-label": "queries on the left, keys on the right"});
  const drawn = makeSvg("g", {}), middle = i => ROW * (i + 0.5);
  svg.append(drawn);
  const nodes = [queries, keys].map((pieces, s) => pieces.map((piece, i) => {
    const x = s ? width - side : 0;
    const node = makeSvg("g", {role: "button", "aria-label": `${s ? "key" : "query"} ${piece}`});
    const room = Math.floor((side - 12) / 8);
    const text = piece.length > room ? `${piece.slice(0, room - 1)}…` : piece;
    const shades = colours.map((colour, h) => makeSvg("rect", {class: "shade",
      x: x + side * h / colours.length, y: ROW * i + 1, width: side / colours.length,
      height: ROW - 2, style: `fill: ${colour}`}));
    node.append(...shades, makeSvg("rect", {class: "area", x, y: ROW * i, width: side, height: ROW}),
      makeSvg("text", {x: s ? x + 6 : side - 6, y: middle(i), "text-anchor": s ? "start" : "end"},
        text), makeSvg("title", {}, piece));
    svg.append(node);
    return node;
  }));
  const average = (q, k) =>
    all.reduce((sum, weights) => sum + weights[q * keys.length + k], 0) / all.length;

  function choose(s, chosen) {
    const lines = [];
    all.forEach((weights, h) => queries.forEach((_, q) => keys.forEach((_, k) => {
      const weight = weights[q * keys.length + k], other = [q, k][s];
      if (s === undefined ? weight < threshold : other !== chosen) return;
      if (masked(kind, q, k) || weight === 0) return;
      lines.push(makeSvg("line", {x1: side, y1: middle(q), x2: width - side, y2: middle(k),
        style: `stroke: ${colours[h]}`, "stroke-opacity": weight.toFixed(3),
        "stroke-width": (1 + 2 * weight).toFixed(2)}));
    })));
    drawn.replaceChildren(...lines);
    nodes.forEach((pieces, t) => pieces.forEach((node, i) => {
      node.classList.toggle("chosen", t === s && i === chosen);
      node.querySelectorAll(".shade").forEach((shade, h) => {
        const weight = all[h][(t ? chosen : i) * keys.length + (t ? i : chosen)];
        shade.style.opacity = s === undefined || t === s ? 0 : weight;
      });
    }));
    if (s === undefined) return say("");
    const weights = (s ? queries : keys).map((piece, i) => [s ? average(i, chosen) : average(chosen, i), piece]);
    const most = weights.sort((a, b) => b[0] - a[0]).slice(0, 5).filter(([weight]) => weight > 0);
    const list = most.map(([weight, piece]) => `${quoted(piece)} ${shown(weight)}`).join(", ");
    say(`${quoted([queries, keys][s][chosen])} ${s ? "←" : "→"} ${list || "nothing"}`);
  }

  rove(queries.length >= keys.length
    ? nodes[0].map((node, i) => nodes[1][i] ? [node, nodes[1][i]] : [node])
    : nodes[1].map((node, i) => nodes[0][i] ? [nodes[0][i], node] : [node]));
  choosable(nodes, choose);
  return svg;
}
