"use strict";
/* What Python wrote into the file: facts and sentences, and the weights of each sentence, which are
   unpacked when it is selected. */

const {about: ABOUT, sentences: SENTENCES} =
  JSON.parse(document.getElementById("data").textContent);

/* Queries and keys of a kind of attention: {pieces, words}, where words[i] is the number of the
   word that piece i belongs to. The decoder reads </s> first and then the pieces before. */
function axes({source, target}, kind) {
  const shifted = list => [list.at(-1), ...list.slice(0, -1)];
  const read = {pieces: shifted(target.pieces), words: shifted(target.words)};
  if (kind === "encoder") return [source, source];
  return [target, kind === "decoder" ? read : source];
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
    const [queries, keys] = axes(SENTENCES[number], kind);
    const size = queries.pieces.length * keys.pieces.length;
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

/* The mean of matrices of equal size. */
function mean(all) {
  return all[0].map((_, i) => all.reduce((sum, weights) => sum + weights[i], 0) / all.length);
}

const formatWeight = weight => weight.toFixed(3);
