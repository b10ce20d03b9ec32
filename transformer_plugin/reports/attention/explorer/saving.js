"use strict";
/* Saves what is shown as SVG, PNG or CSV. The browser makes the file; nothing is requested. */

/* The picture with its title, for print: a white page and attributes that every program reads. */
function figure(panel, view, lineOptions) {
  const body = view === "lines"
    ? linesView(panel, {...lineOptions, room: 560, palette: PRINT}, () => {}, () => {})
    : mapsFigure(panel, view === "overview");
  const key = legend(panel, view, PRINT);
  const size = (node, name) => Number(node.getAttribute(name));
  const width = 20 + Math.max(size(body, "width"), textWidth(panel.title, FONT), size(key, "width"));
  const below = 36 + size(body, "height") + 16, height = below + size(key, "height") + 4;
  const svg = makeSvg("svg", {xmlns: "http://www.w3.org/2000/svg", width, height,
    viewBox: `0 0 ${width} ${height}`});
  key.setAttribute("x", 10);
  key.setAttribute("y", below);
  body.setAttribute("x", 10);
  body.setAttribute("y", 36);
  svg.append(makeSvg("rect", {width, height, fill: "#ffffff"}), makeSvg("text",
    {x: 10, y: 20, fill: PRINT.ink, "font-family": "sans-serif", "font-size": FONT}, panel.title),
  body, key);
  return svg;
}

/* The maps in rows of at most four, or of all heads in the overview, each below its name if there
   are several. */
function mapsFigure(panel, small) {
  const svg = makeSvg("svg", {}), names = panel.maps.length > 1 ? 16 : 0, space = 14;
  const cell = small ? 96 / panel.keys.length : panel.maps.length > 1 ? 14 : 20;
  const across = Math.min(panel.maps.length, small ? ABOUT.heads : 4);
  let width = 0, height = 0;
  panel.maps.forEach((map, i) => {
    const drawing = mapDrawing(panel, map, {cell, labels: !small, palette: PRINT});
    const x = (drawing.width + space) * (i % across);
    const y = (drawing.height + names + space) * Math.floor(i / across);
    drawing.node.setAttribute("transform", `translate(${x} ${y + names})`);
    svg.append(drawing.node);
    if (names) svg.append(makeSvg("text", {x: x + drawing.left, y: y + SMALL,
      "font-family": "sans-serif", "font-size": SMALL, fill: PRINT.ink}, map.name));
    width = Math.max(width, x + drawing.width, x + drawing.left + textWidth(map.name, SMALL));
    height = y + names + drawing.height;
  });
  svg.setAttribute("width", width + 1);  // the frame of a map is a pixel wide
  svg.setAttribute("height", height + 1);
  return svg;
}

/* A row for each weight that is not masked. Queries and keys have numbers, from 0, since a sentence
   may repeat a word. */
function table({queries, keys, maps, sees}) {
  const rows = [["layer", "head", "query", "key", "query_text", "key_text", "weight"]];
  for (const {layer, head, weights} of maps) {
    queries.forEach((query, q) => keys.forEach((key, k) => {
      const weight = Number(weights[q * keys.length + k].toFixed(6));
      if (sees(q, k)) rows.push([layer, head, q, k, query.name, key.name, weight]);
    }));
  }
  const cell = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  return rows.map(row => `${row.map(value => cell(String(value))).join(",")}\n`).join("");
}

async function bitmap(svg) {
  const [width, height] = ["width", "height"].map(name => Number(svg.getAttribute(name)));
  const scale = Math.min(3, 12000 / Math.max(width, height));  // browsers limit a canvas
  const image = new Image(width, height);
  image.src = `data:image/svg+xml,${encodeURIComponent(svg.outerHTML)}`;
  await image.decode();
  const canvas = make("canvas");
  Object.assign(canvas, {width: Math.ceil(width * scale), height: Math.ceil(height * scale)});
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise(done => { canvas.toBlob(done, "image/png"); });
}

function download(blob, name) {
  const link = make("a"), address = URL.createObjectURL(blob);
  Object.assign(link, {href: address, download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/* format: "svg", "png" or "csv"; name: of the file, without its ending. */
async function save(format, name, panel, view, lineOptions) {
  const drawn = format === "csv" ? null : figure(panel, view, lineOptions);
  const blob = format === "png" ? await bitmap(drawn)
    : format === "svg" ? new Blob([drawn.outerHTML], {type: "image/svg+xml"})
      : new Blob([table(panel)], {type: "text/csv"});
  download(blob, `${name}.${format}`);
}
