/* Two rankings of one question: which answers changed place. */

/* What tells an answer: its id, or the index of a pasted text. */
export const nameOf = (answer) => (answer.id !== undefined ? `id ${answer.id}` : `index ${answer.index}`);

/* For each answer of `ours` its place there and in `theirs` (null where it is not among them), both from 1. */
export function places(ours, theirs) {
  const there = new Map(theirs.map((answer, n) => [nameOf(answer), n + 1]));
  return ours.map((answer, n) => ({ here: n + 1, there: there.get(nameOf(answer)) ?? null }));
}

const ORDINALS = { one: "st", two: "nd", few: "rd", other: "th" };
const order = new Intl.PluralRules("en", { type: "ordinal" });

/* A place in words: "▲ 4th by bm25" stands here above its place there. */
export function moved({ here, there }, other) {
  if (there === null) return { kind: "new", said: `not found by ${other}` };
  if (there === here) return { kind: "same", said: `same rank by ${other}` };
  const said = `${there}${ORDINALS[order.select(there)]} by ${other}`;
  return there > here ? { kind: "rose", said: `▲ ${said}` } : { kind: "fell", said: `▼ ${said}` };
}

export function summary(ours, theirs, names) {
  const all = places(ours, theirs);
  const changed = all.filter((place) => place.there !== place.here).length;
  if (!ours.length || !theirs.length) return "";
  if (!changed) return `${names[0]} and ${names[1]} rank all answers alike.`;
  const first = nameOf(ours[0]) === nameOf(theirs[0]) ? "agree on the first" : "differ on the first";
  return `${names[0]} and ${names[1]} ${first}; ${changed} of ${ours.length} have another rank. Open an answer to see why.`;
}
