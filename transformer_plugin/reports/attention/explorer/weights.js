"use strict";
/* What the file holds: DATA, as Python wrote it, and the weights of each sentence, which are
   unpacked when it is chosen. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const {about: ABOUT, sentences: SENTENCES} = DATA;

/* Queries and keys of a kind of attention, as pieces. */
function axes(sentence, kind) {
  const read = [sentence.target.at(-1), ...sentence.target.slice(0, -1)];
  if (kind === "encoder") return [sentence.source, sentence.source];
  return [sentence.target, kind === "decoder" ? read : sentence.source];
}

/* {kind: [layer][head] = Float32Array of queries x keys}, or null where they were left out.
   Packed: whole numbers of 1 / ABOUT.steps, first all low bytes, then all high ones; deflated. */
async function unpack(number) {
  const text = document.getElementById(`weights-${number}`)?.textContent;
  if (!text) return null;
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const half = bytes.length / 2, found = {};
  let start = 0;
  for (const [kind, layers] of Object.entries(ABOUT.layers)) {
    const [queries, keys] = axes(SENTENCES[number], kind), size = queries.length * keys.length;
    found[kind] = Array.from({length: layers}, () => Array.from({length: ABOUT.heads}, () => {
      const weights = new Float32Array(size);
      for (let i = 0; i < size; i++, start++)
        weights[i] = (bytes[start] + 256 * bytes[half + start]) / ABOUT.steps;
      return weights;
    }));
  }
  if (start !== half) throw new Error(`sentence ${number}: its weights are damaged`);
  return found;
}

function mean(all) {
  return all[0].map((_, i) => all.reduce((sum, weights) => sum + weights[i], 0) / all.length);
}

/* Whether a query may not see a key. */
function masked(kind, query, key) {
  if (kind === "encoder-decoder") return false;
  return (kind === "decoder" && key > query)
    || (ABOUT.window > 0 && Math.abs(query - key) > ABOUT.window);
}

const shown = weight => weight.toFixed(3);
