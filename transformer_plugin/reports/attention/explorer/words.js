"use strict";
/* Subwords as they are shown: with or without their marks, or merged into words. */

const MARK = /^▁|@@$/;  // of sentencepiece and of subword-nmt
const bare = piece => piece.replace(MARK, "");
const SIDES = SENTENCES.flatMap(({source, target}) => [source, target]);
const HAS_MARKS = SIDES.some(({pieces}) => pieces.some(piece => MARK.test(piece)));
const SPLITS_WORDS = SIDES.some(({words}) => words.some((word, i) => word === words[i - 1]));

/* The units of a row or column, {name, members}: members are the indices of their subwords. */
function units({pieces, words}, {merged, marks}) {
  const members = [];
  words.forEach((word, i) => {
    if (merged && i && word === words[i - 1]) members.at(-1).push(i);
    else members.push([i]);
  });
  const name = places => places.map(i => marks && !merged ? pieces[i] : bare(pieces[i])).join("");
  return members.map(places => ({name: name(places) || "␣", members: places}));
}

/* The weights of words: sums over the subwords of a key, means over the subwords of a query, so that
   a row still sums to 1. width: the number of keys in weights. */
function mergedWeights(weights, queries, keys, width) {
  const found = new Float32Array(queries.length * keys.length);
  queries.forEach(({members}, q) => keys.forEach((key, k) => {
    let sum = 0;
    for (const i of members) for (const j of key.members) sum += weights[i * width + j];
    found[q * keys.length + k] = sum / members.length;
  }));
  return found;
}
