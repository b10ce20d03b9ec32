"use strict";
/* The controls above the picture. */

const get = id => document.getElementById(id);
const SWITCHES = {merged: "merged", marks: "marks", fullScale: "full-scale"};  // their elements

/* Radio buttons of a choice: [value, text, colour of a dot]. */
function fieldset(name, options, change) {
  get(name).querySelectorAll("label").forEach(node => node.remove());
  for (const [value, text, colour] of options) {
    const label = make("label", undefined, "choice"), input = make("input"), span = make("span", text);
    Object.assign(input, {type: "radio", name, value, checked: state[name] === value});
    if (colour) {
      const dot = make("i");
      dot.style.background = colour;
      span.prepend(dot);
    }
    label.append(input, span);
    get(name).append(label);
    input.addEventListener("change", () => change({[name]: value}));
  }
}

/* Shows the state; change(choices) is called with what the reader chooses. */
function drawControls(change) {
  const {sentence, kind, head, view, merged, least} = state;
  const coloured = view === "lines" && head === "all";
  fieldset("kind", KINDS.map(name => [name, NAMES[name]]), change);
  fieldset("layer", numbers(ABOUT.layers[kind]).map(i => [i, i]), change);
  fieldset("head", [["mean", "mean"], ["all", "all"],
    ...numbers(ABOUT.heads).map(i => [i, i, coloured && headColour(i)])], change);
  fieldset("view", Object.entries(VIEWS), change);
  get("sentence").selectedIndex = sentence;
  get("previous").disabled = sentence === 0;
  get("next").disabled = sentence === SENTENCES.length - 1;
  for (const [name, id] of Object.entries(SWITCHES)) get(id).checked = state[name];
  get("marks").disabled = merged;
  get("merged").parentNode.hidden = !SPLITS_WORDS;
  get("marks").parentNode.hidden = !HAS_MARKS;
  get("least").value = least;
  get("least-value").textContent = least.toFixed(2);
  document.querySelectorAll("[data-views]").forEach(node => {
    node.hidden = !node.dataset.views.split(" ").includes(view);
  });
}

function listenToControls(change) {
  get("sentence").addEventListener("change", event => change({sentence: event.target.selectedIndex}));
  get("previous").addEventListener("click", () => change({sentence: state.sentence - 1}));
  get("next").addEventListener("click", () => change({sentence: state.sentence + 1}));
  for (const [name, id] of Object.entries(SWITCHES)) {
    get(id).addEventListener("change", event => change({[name]: event.target.checked}));
  }
  get("least").addEventListener("input", event => change({least: Number(event.target.value)}));
  get("controls").addEventListener("submit", event => event.preventDefault());
  get("theme").addEventListener("change", event => {
    document.documentElement.dataset.theme = event.target.value;
  });
}
