/* The inbox: questions that wait, in groups; each is assigned to an answer, made a new entry, or put away. */
import { editor } from "./desk_entries.js";
import { h, printable } from "./dom.js";
import { plain } from "./rich.js";

const LISTED = 5;
const short = (text) => (text.length > 80 ? `${text.slice(0, 79).trimEnd()}…` : text);
const when = (seconds) => new Date(1000 * seconds).toLocaleDateString([], { dateStyle: "medium" });

function group(desk, own, redraw) {
  const asked = own.questions.map((one) => one.question), place = h("div", {});
  const finish = async (text, undo) => { desk.tell(text, { undo }); await redraw(); desk.settle(); };
  const assign = async (id) => {
    if (await desk.attempt(() => desk.call("/inbox/assign", { questions: asked, id }))) finish(asked.length === 1 ? "Assigned." : `${asked.length} questions assigned.`, true);
  };
  const dismiss = async () => {
    if (await desk.attempt(() => desk.call("/inbox/dismiss", { questions: asked }))) finish("Dismissed.", desk.writable);
  };
  const make = () => place.replaceChildren(editor(desk, { questions: asked }, (id) => { if (id === null) place.replaceChildren(); else finish("Answered by a new entry.", true); }));
  const times = own.count > 1 ? `${own.count} times, last ${when(own.last)}` : when(own.last);
  return h("article", { class: "group" },
    h("h2", { dir: "auto" }, printable(asked[0])),
    h("p", { class: "note" }, `${own.why}, ${times}`, own.wrong.length ? `. Judged wrong: ${own.wrong.map((one) => `“${short(plain(one.text))}”`).join("; ")}` : ""),
    asked.length > 1 ? h("ul", {}, asked.slice(1, LISTED).map((one) => h("li", { dir: "auto" }, printable(one))), asked.length > LISTED || own.more ? h("li", {}, `and ${asked.length - LISTED + own.more} more`) : null) : null,
    own.suggestions.length ? h("ul", { class: "suggested", "aria-label": "Answers that may fit" }, own.suggestions.map((one) => h("li", {},
      h("button", { type: "button", class: "plain", disabled: !desk.writable, "aria-label": `Assign to ${one.id}`, on: { click: () => assign(one.id) } }, "Assign"),
      h("span", { class: "clamp", dir: "auto" }, plain(one.text))))) : null,
    h("div", { class: "buttons" },
      h("button", { type: "button", class: "plain", disabled: !desk.writable, on: { click: make } }, "New entry"),
      h("button", { type: "button", class: "plain danger", on: { click: dismiss } }, "Dismiss")),
    place);
}

export async function inboxView(desk) {
  const view = h("div", {});
  async function draw() {
    const found = await desk.attempt(() => desk.call("/inbox"));
    if (!found) return;
    desk.count(found.total);
    const forget = h("button", { type: "button", class: "plain danger", on: { click: async () => {
      if (!confirm("Delete all logged questions? This cannot be undone.")) return;
      if (await desk.attempt(() => desk.call("/questions", undefined, "DELETE"))) { desk.tell("All logged questions are deleted."); draw(); }
    } } }, "Delete the log of questions");
    const told = found.logging ? "Questions without a confident answer, or whose answer was judged wrong." : "Questions whose answer was judged wrong. Start the service with --log-questions FILE to see questions without an answer, too.";
    view.replaceChildren(h("div", { class: "tools" }, h("p", { class: "note" }, told), h("span", { class: "space" }), found.logging ? forget : null),
      ...(found.groups.length ? found.groups.map((own) => group(desk, own, draw)) : [h("p", {}, "No question is waiting.")]));
  }
  await draw();
  return view;
}
