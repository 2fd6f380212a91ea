/* What is shown of answers: which ones, one sentence why, a card with a copy and thumbs. The page and the widget have all
   of it, the lab has its thumbs. */
import { h, printable } from "./dom.js";
import { link, plain, rich, safeLink } from "./rich.js";

const LIKELY = 0.1, NEAR = 0.6, ALSO = 4, NEAREST = 3;

/* {first, also} where there is an answer, {nearest} where none is certain enough. */
function chosen(found) {
  const all = found.answers;
  if (!all.length || found.confident === false) return { first: null, also: [], nearest: all.slice(0, NEAREST) };
  const [first, ...others] = all;
  const least = first.probability === null ? null : Math.max(LIKELY, first.probability / 5);
  const likely = others.filter((one) => (least === null ? one.score >= NEAR * first.score : one.probability >= least));
  return { first, also: likely.slice(0, least === null ? 2 : ALSO), nearest: [] };
}

/* "Because of password, reset; asked before as ...": the words of the question that counted most, as the service says. */
export function reason(most, question, asked) {
  const because = most.flatMap((word, n) => [n ? ", " : "Because of ", h("em", {}, printable(word))]);
  const before = question === asked ? "asked before in these words" : "asked before as ";
  const known = question ? [because.length ? `; ${before}` : `${before[0].toUpperCase()}${before.slice(1)}`, question === asked ? "" : h("q", {}, h("bdi", {}, printable(question)))] : [];
  return because.length || known.length ? h("p", { class: "because" }, ...because, ...known, ".") : null;
}

/* Drawn, since not every machine has letters for it. */
const HAND = "M2 9h3v8H2zM7 17V9l4-7c1.6 0 2.1 1.1 1.8 2.5L12 8h4.4c1.1 0 1.7.9 1.5 1.8l-1.4 5.8c-.2.8-.8 1.4-1.7 1.4z";
function hand(down) {
  const SVG = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", HAND);
  if (down) path.setAttribute("transform", "rotate(180 10 10)");
  svg.append(path);
  return svg;
}

/* Two thumbs; onThumb(label) says whether it was kept. */
export function thumbs(onThumb) {
  const buttons = [[1, "This answers my question"], [0, "This does not answer my question"]].map(([label, name], n) =>
    h("button", { type: "button", class: "thumb", "aria-label": name, title: name, "aria-pressed": "false", on: {
      click: async () => {
        if (await onThumb(label)) buttons.forEach((button, m) => button.setAttribute("aria-pressed", String(m === n)));
      },
    } }, hand(!label)));
  return h("span", { class: "thumbs" }, buttons);
}

function copyButton(text, tell) {
  return h("button", { type: "button", class: "quiet", on: {
    click: async () => {
      try {
        await navigator.clipboard.writeText(text);
        tell("Copied.");
      } catch {
        tell("This browser does not allow copying; select the text instead.");
      }
    },
  } }, "Copy");
}

/* The body of an answer with the link of its own url column. */
function body(answer) {
  const address = answer.columns && safeLink(answer.columns.url || answer.columns.link || "");
  return [rich(answer.text), address ? h("p", { class: "source" }, link(address, "Read more")) : null];
}

export const likely = (probability) =>
  probability === null || probability === undefined ? null : h("span", { class: "likely" }, probability > 0.99 ? "over 99% likely right" : `${Math.round(100 * probability)}% likely right`);

/* One answer. The first stands open; another opens by a click, of which `opened` learns.
   own: {first, say, onThumb or null, why, actions, below, opened}, the last four as far as there are any */
export function answerCard(answer, own) {
  const foot = h("div", { class: "foot" }, likely(answer.probability), h("span", { class: "space" }),
    copyButton(answer.text, own.say), own.actions, own.onThumb ? thumbs(own.onThumb) : null);
  const inside = [...body(answer), own.why, foot, own.below];
  if (own.first) return h("article", { class: "answer first", "aria-label": "Answer" }, inside);
  const title = answer.question ? printable(answer.question) : plain(answer.text).slice(0, 90);
  const more = h("details", { class: "answer" }, h("summary", { dir: "auto" }, title), inside);
  if (own.opened) more.addEventListener("toggle", () => { if (more.open) own.opened(); });
  return more;
}

/* What was found, and a line for who hears the page: one answer and what else may fit, or none and the nearest.
   card(answer, first) makes a card; `heading` is the level below that of the place; `person` is where one can ask further. */
export function listing(found, card, heading, person = null) {
  const { first, also, nearest } = chosen(found);
  const others = (ones) => h("div", { class: "also" }, ones.map((one) => card(one, false)));
  if (first) {
    return {
      nodes: [card(first, true), ...(also.length ? [h(heading, {}, "Other answers"), others(also)] : [])],
      said: also.length ? `One answer, and ${also.length} more that may fit.` : "One answer.",
    };
  }
  const why = nearest.length ? "No answer is certain enough. These are the most similar:" : "Nothing here matches this question.";
  return {
    nodes: [h("div", { class: "none" }, h(heading, {}, "No answer here"), h("p", {}, why)), ...(nearest.length ? [others(nearest)] : []), ...(person ? [person] : [])],
    said: nearest.length ? `No certain answer. The ${nearest.length} most similar are listed.` : "No answer.",
  };
}
