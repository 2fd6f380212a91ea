/* Ranked answers as cards with score bars, each of which opens. */
import { figure, h, printable } from "./dom.js";

/* Bars of one list share a scale, which has its zero where scores of both signs need one. */
function scaleOf(answers) {
  const scores = answers.map((answer) => answer.score);
  const low = Math.min(0, ...scores), high = Math.max(0, ...scores);
  const at = (score) => (high > low ? (100 * (score - low)) / (high - low) : 0);
  return { at, zero: at(0) };
}

function bar(scale, score) {
  const from = Math.min(scale.zero, scale.at(score)), size = Math.abs(scale.at(score) - scale.zero);
  return h(
    "span", { class: "bar", "aria-hidden": "true", style: { "--zero": `${scale.zero}%` } },
    h("i", { class: score < 0 ? "down" : "", style: { "--from": `${from}%`, "--size": `${size}%` } }),
  );
}

/* Drawn, since not every machine has letters for it. */
function hand(down) {
  const SVG = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", "M2 9h3v8H2zM7 17V9l4-7c1.6 0 2.1 1.1 1.8 2.5L12 8h4.4c1.1 0 1.7.9 1.5 1.8l-1.4 5.8c-.2.8-.8 1.4-1.7 1.4z");
  if (down) path.setAttribute("transform", "rotate(180 10 10)");
  svg.append(path);
  return svg;
}

function thumbs(answer, onThumb) {
  const buttons = [[1, hand(false), "A right answer"], [0, hand(true), "A wrong answer"]].map(([label, sign, name]) =>
    h("button", { type: "button", class: "thumb", "aria-label": name, title: name, "aria-pressed": "false", on: {
      click: async () => {
        if (!(await onThumb(answer, label))) return;
        buttons.forEach((button, n) => button.setAttribute("aria-pressed", String((n === 0) === (label === 1))));
      },
    } }, sign));
  return h("span", { class: "thumbs" }, buttons);
}

/* view: {title, answers, notes: [{kind, said}] or null, onOpen(answer, host, signal), onThumb or null,
   across: where what opens is put, one at a time, or null for below its card} */
export function cards(view) {
  const scale = scaleOf(view.answers);
  const list = view.answers.map((answer, n) => card(view, answer, n, scale));
  const head = view.title ? h("h2", {}, view.title) : null;
  if (!list.length) return h("div", { class: "column" }, head, h("p", { class: "note" }, "Nothing found."));
  return h("div", { class: "column" }, head, h("ol", { class: "cards" }, list));
}

let count = 0;

function card(view, answer, n, scale) {
  const id = `why-${++count}`;
  const host = h("div", { class: "why", id, hidden: true });
  let open = null;  // stops what is still on its way
  const opener = h("button", { type: "button", class: "open", "aria-expanded": "false", "aria-controls": id },
    h("span", { class: "place" }, String(n + 1)),
    h("span", { class: "text", dir: "auto" }, printable(answer.text) || "(no text)"),
    answer.question ? h("span", { class: "known" }, "asked before: ", h("bdi", {}, printable(answer.question))) : null,
  );
  const close = () => {
    if (open) open.abort();
    open = null;
    if (view.across) view.across.close = null;
    host.hidden = true;
    host.replaceChildren();
    opener.setAttribute("aria-expanded", "false");
  };
  opener.addEventListener("click", async () => {
    if (open) return close();
    if (view.across) {
      if (view.across.close) view.across.close();
      view.across.close = close;
      view.across.replaceChildren(host);
    }
    open = new AbortController();
    host.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    await view.onOpen(answer, host, open.signal);
    if (view.across) host.scrollIntoView({ block: "nearest" });
  });
  opener.addEventListener("keydown", (event) => { if (event.key === "Escape" && open) close(); });
  host.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || event.target.closest(".heat-stage")) return;
    close();
    opener.focus();
  });
  const note = view.notes ? view.notes[n] : null;
  const likely = answer.probability;
  const facts = h("div", { class: "facts" },
    bar(scale, answer.score),
    h("span", { class: "figure score-of", title: "score" }, figure(answer.score, Math.abs(answer.score) < 10 ? 3 : 2)),
    likely === null || likely === undefined ? null : h("span", { class: "likely" }, `${Math.round(100 * likely)}% likely right`),
    note ? h("span", { class: `moved ${note.kind}` }, note.said) : null,
    view.onThumb ? thumbs(answer, view.onThumb) : null,
  );
  return h("li", { class: "card" }, opener, facts, view.across ? null : host);
}
