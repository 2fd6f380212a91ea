/* Ranked answers as cards with score bars, each of which opens. */
import { likely, thumbs } from "./answers.js";
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
  const facts = h("div", { class: "facts" },
    bar(scale, answer.score),
    h("span", { class: "figure score-of", title: "score" }, figure(answer.score, Math.abs(answer.score) < 10 ? 3 : 2)),
    likely(answer.probability),
    note ? h("span", { class: `moved ${note.kind}` }, note.said) : null,
    view.onThumb ? thumbs((label) => view.onThumb(answer, label)) : null,
  );
  return h("li", { class: "card" }, opener, facts, view.across ? null : host);
}
