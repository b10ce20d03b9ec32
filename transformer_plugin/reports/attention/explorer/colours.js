"use strict";
/* Weights as colours. A shade is the square root of a weight, so that small weights are visible. */

/* Colours on the screen follow the theme; saved pictures have its light ones, for print. */
const SCREEN = {ink: "var(--ink)", quiet: "var(--quiet)", line: "var(--line)", heat: "var(--heat)"};
const PRINT = {ink: "#1b1d21", quiet: "#5b6068", line: "#d9d9d3", heat: "#0b4fa3"};
const BEHIND_TEXT = 0.5;  // the strongest shade behind text that must stay readable

const shade = (weight, largest) => Math.sqrt(Math.min(1, weight / largest));
const heat = part => `color-mix(in srgb, var(--heat) ${(100 * part).toFixed(1)}%, transparent)`;
const headColour = head => `hsl(${Math.round(360 * (head - 1) / ABOUT.heads + 210) % 360} 70% 50%)`;
