"use strict";

/* Shows the values of a chart's lines at the pointer; arrow keys move from update to update. */
function watch(figure, chart) {
  const plot = figure.querySelector(".plot"), output = figure.querySelector("output");
  const resting = output.textContent;
  const [left, bottom, right, top] = chart.box;
  const cursor = plot.appendChild(document.createElement("i"));
  const dots = chart.lines.map(line => {
    const dot = plot.appendChild(document.createElement("i"));
    dot.className = "dot";
    dot.style.background = line.colour;
    return dot;
  });
  cursor.className = "cursor";
  cursor.style.top = `${100 * (1 - top)}%`;
  cursor.style.bottom = `${100 * bottom}%`;
  const updates = [...new Set(chart.lines.flatMap(line => line.points.map(point => point[0])))];
  updates.sort((a, b) => a - b);
  let place = -1;  // index in updates

  const share = (value, [low, high], log) => log
    ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const across = update => left + share(update, chart.x, false) * (right - left);
  const up = value => bottom + share(value, chart.y, chart.log) * (top - bottom);
  const number = value => value === null ? "not a number"
    : value.toLocaleString("en", {maximumSignificantDigits: 4});
  const nearest = (numbers, x) => numbers.reduce((best, number, i) =>
    Math.abs(number - x) < Math.abs(numbers[best] - x) ? i : best, 0);

  function show(x) {
    place = nearest(updates, x);
    cursor.style.left = `${100 * across(updates[place])}%`;
    output.textContent = chart.lines.map((line, i) => {
      const [update, value, epoch, also] = line.points[
        nearest(line.points.map(point => point[0]), updates[place])];
      dots[i].style.left = `${100 * across(update)}%`;
      dots[i].style.top = `${100 * (1 - up(value))}%`;
      dots[i].hidden = value === null;
      const more = also === null ? "" : ` (${chart.also} ${number(also)})`;
      const when = epoch === null ? "" : `, epoch ${epoch}`;
      return `${line.label}: ${number(value)}${more} at update ${update.toLocaleString("en")}${when}`;
    }).join("; ");
    plot.classList.add("pointed");
  }

  function clear() {
    output.textContent = resting;
    plot.classList.remove("pointed");
    place = -1;
  }

  function point(event) {
    const box = plot.getBoundingClientRect(), fraction = (event.clientX - box.left) / box.width;
    show(chart.x[0] + (fraction - left) / (right - left) * (chart.x[1] - chart.x[0]));
  }

  plot.tabIndex = 0;
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") clear(); });
  plot.addEventListener("blur", clear);
  plot.addEventListener("keydown", event => {
    const last = updates.length - 1;
    const next = {ArrowLeft: Math.max(0, place - 1), ArrowRight: Math.min(last, place + 1),
      Home: 0, End: last}[event.key];
    if (event.key === "Escape") clear();
    if (next === undefined) return;
    event.preventDefault();
    show(updates[next]);
  });
}

for (const [name, chart] of Object.entries(
  JSON.parse(document.getElementById("charts").textContent))) {
  watch(document.getElementById(name), chart);
}

/* A table wider than the screen says so, and keys can scroll it. */
const observer = new ResizeObserver(entries => {
  for (const {target} of entries) {
    const scrolls = target.scrollWidth > target.clientWidth;
    target.classList.toggle("scrolls", scrolls);
    target.tabIndex = scrolls ? 0 : -1;
  }
});
document.querySelectorAll(".wide").forEach(table => observer.observe(table));
