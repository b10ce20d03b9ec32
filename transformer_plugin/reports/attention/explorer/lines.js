"use strict";
/* Lines between queries (left) and keys (right), as in the paper's Figures 3 to 5. */

const ROW = 24, HEADING = 28, FONT = 14;  // pixels

/* least: lines of smaller weights are hidden; kept: [side, place] of the word whose lines alone are
   shown, or null; keep(place) is told of a new one; room: the width to fill. */
function linesView(panel, {least, kept, room, palette}, say, keep) {
  const {queries, keys, maps, largest} = panel;
  const titles = [`queries: ${panel.axes[0]}`, `keys: ${panel.axes[1]}`];
  const names = [queries, keys].map(units => units.map(({name}) => name));
  const sides = names.map((words, s) => 12 + widest([titles[s], ...words], FONT));
  const width = Math.max(sides[0] + sides[1] + 80, Math.min(760, room));
  const [from, to] = [sides[0], width - sides[1]];  // of the lines
  const height = HEADING + ROW * Math.max(queries.length, keys.length);
  const colours = maps.map(({head}) => maps.length > 1 ? headColour(head) : palette.heat);
  const svg = makeSvg("svg", {class: "lines", width, height, role: "group", "font-size": FONT,
    "font-family": "sans-serif", "aria-label": titles.join(" on the left, ") + " on the right"});
  const drawn = makeSvg("g", {}), middle = i => HEADING + ROW * (i + 0.5);
  const edge = s => ({x: s ? to + 6 : from - 6, "text-anchor": s ? "start" : "end", dy: "0.35em"});
  svg.append(drawn, ...titles.map((title, s) =>
    makeSvg("text", {...edge(s), y: HEADING / 2, fill: palette.quiet}, title)));
  const nodes = names.map((words, s) => words.map((word, i) => {
    const box = {y: HEADING + ROW * i + 1, height: ROW - 2}, x = s ? to : 0;
    const part = sides[s] / colours.length;
    const node = makeSvg("g", {role: "button", "aria-label": `${s ? "key" : "query"} ${word}`});
    node.append(
      ...colours.map((fill, h) => makeSvg("rect", {...box, class: "shade", fill,
        x: x + part * h, width: part})),
      makeSvg("rect", {...box, class: "area", x, width: sides[s], fill: palette.ink}),
      makeSvg("text", {...edge(s), y: middle(i), fill: palette.ink}, word));
    svg.append(node);
    return node;
  }));

  /* The lines of one word, on side s, or of all. */
  function choose(s, chosen) {
    const lines = [];
    maps.forEach(({weights}, h) => queries.forEach((_, q) => keys.forEach((_, k) => {
      const weight = weights[q * keys.length + k];
      if (s === undefined ? weight < least : [q, k][s] !== chosen) return;
      if (weight === 0) return;
      const strength = shade(weight, largest);
      lines.push(makeSvg("line", {x1: from, y1: middle(q), x2: to, y2: middle(k),
        stroke: colours[h], "stroke-opacity": strength.toFixed(3),
        "stroke-width": (0.5 + 2.5 * strength).toFixed(2)}));
    })));
    drawn.replaceChildren(...lines);
    nodes.forEach((words, t) => words.forEach((node, i) => {
      const other = s !== undefined && t !== s;
      node.querySelector(".area").setAttribute("fill-opacity", t === s && i === chosen ? 0.15 : 0);
      node.querySelectorAll(".shade").forEach((rect, h) => {
        const weight = other && maps[h].weights[(t ? chosen : i) * keys.length + (t ? i : chosen)];
        rect.setAttribute("fill-opacity", other ? BEHIND_TEXT * shade(weight, largest) : 0);
      });
    }));
    if (s !== undefined) say(strongest(panel, s, chosen));
    else say(lines.length ? undefined : `No weight reaches ${least.toFixed(2)}: the largest is `
      + `${formatWeight(largestOf(panel))}. Move the slider to the left.`);
  }

  const [longer, shorter] = queries.length >= keys.length ? nodes : [...nodes].reverse();
  rove(longer.map((node, i) => {
    const pair = shorter[i] ? [node, shorter[i]] : [node];
    return longer === nodes[0] ? pair : pair.reverse();
  }));
  choosable(nodes, choose, {kept, keep});
  return svg;
}
