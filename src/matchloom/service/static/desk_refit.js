/* Refits: a new fit is measured aside, and used when somebody says so. And the list of changes, each with a way back. */
import { h, percent, printable, stamp } from "./dom.js";
import { plain } from "./rich.js";

const EVERY = 500;
function judged(report) {
  if (!report || !report.judgements) return null;
  const gone = report.removed ? `, ${report.removed} about removed entries` : "";
  const measured = report.before === null ? "" : ` Of ${report.questions} held-out questions, ${percent(report.before)} find their answer first without them, ${percent(report.after)} with them.`;
  return h("p", { class: "note" }, `${report.judgements} judgements: ${report.right} right, ${report.wrong} wrong${gone}. ${report.learnt ? "They are used." : "They are not used, since answers would get worse."}${measured}`);
}

function outcome(desk, last, redraw) {
  if (!last) return h("p", {}, "No refit since this service started.");
  const worse = last.aside && last.why.includes("less often");
  const promote = h("button", { type: "button", class: "go", disabled: !desk.writable || worse, on: { click: async () => {
    if (await desk.attempt(() => desk.call("/promote", {}))) { desk.tell("Promoted: the new fit is in use."); redraw(); }
  } } }, "Promote");
  const said = last.aside ? (worse ? "Significantly worse: it is not used." : "Measured, and not used yet.") : last.kept ? "In use." : `Not used: ${last.why}.`;
  return h("div", {},
    h("div", { class: "versus" }, h("div", {}, h("b", {}, percent(last.before)), h("span", { class: "note" }, "before")), h("div", {}, h("b", {}, percent(last.after)), h("span", { class: "note" }, "after")), h("p", { class: "note" }, "of held-out questions find their answer first")),
    h("p", {}, said), h("p", { class: "note" }, `${stamp(Date.parse(last.finished) / 1000)}: ${last.entries} entries, ${last.questions} questions, ${last.changed} changed since the fit before`),
    judged(last.feedback), last.aside ? h("div", { class: "buttons" }, promote) : null);
}

export async function refitView(desk) {
  const view = h("div", {});
  async function draw() {
    const about = await desk.attempt(() => desk.call());
    if (!about) return;
    if (!about.refit) { view.replaceChildren(h("p", {}, "An archive has nothing to refit.")); return; }
    const running = about.refit.state === "running";
    const begin = (aside) => async () => { if (await desk.attempt(() => desk.call("/refit", { aside }))) draw(); };
    view.replaceChildren(
      h("p", {}, `${about.changed_since_fit} ${about.changed_since_fit === 1 ? "entry has" : "entries have"} changed since the last fit.`, about.refit.state === "waiting" ? " A refit starts automatically half a minute after the last change." : ""),
      h("div", { class: "buttons" }, h("button", { type: "button", class: "go", disabled: !desk.writable || running, on: { click: begin(true) } }, "Refit and compare"), h("button", { type: "button", class: "plain", disabled: !desk.writable || running, on: { click: begin(false) } }, "Refit, use if not worse")),
      running ? h("p", { role: "status" }, "Learning… Searches continue meanwhile.") : h("section", { class: "part" }, h("h2", {}, "The last refit"), outcome(desk, about.refit.last, draw)),
      ...(about.refit.failed ? [h("p", { class: "problem" }, about.refit.failed)] : []));
    if (running) setTimeout(() => { if (view.isConnected) draw(); }, EVERY);
  }
  await draw();
  return view;
}

const ACTIONS = {
  put: "Edited", remove: "Removed", import: "Imported", assign: "Questions assigned", undo: "Undone", dismiss: "Questions dismissed",
  "delete questions": "Log of questions deleted", refit: "Refit", promote: "New fit promoted", follow: "Refit from the file", add: "Added", delete: "Removed",
};

/* What a change was about, in words: how its answers begin, or what a refit measured. */
function about(one) {
  if (one.questions) return `${one.questions} ${one.questions === 1 ? "question" : "questions"}`;
  if (one.told && "after" in one.told) return `${percent(one.told.before)} → ${percent(one.told.after)}, ${one.told.kept ? "used" : one.told.aside ? "measured" : "not used"}`;
  const names = one.ids.map((id, n) => h("li", { class: "clamp", dir: "auto" }, plain(one.texts[n]) || printable(id)));
  return names.length ? h("ul", { class: "clean" }, names, one.entries > one.ids.length ? h("li", { class: "note" }, `and ${one.entries - one.ids.length} more`) : null) : "";
}

export async function changesView(desk) {
  const found = await desk.call("/audit");
  const rows = found.changes.map((one) => {
    const what = one.action === "put" && one.new === one.entries ? "New entry" : ACTIONS[one.action] || one.action;
    const undoes = (one.entries || one.questions) && !one.undone && desk.writable;
    return h("tr", {},
      h("td", { class: "who" }, stamp(one.time), h("div", { class: "of-entry" }, printable(one.who))),
      h("td", { class: "what" }, what, one.undone ? h("span", { class: "note" }, " (undone)") : null),
      h("td", {}, about(one)),
      h("td", { class: "act" }, undoes ? h("button", { type: "button", class: "quiet", "aria-label": `Undo: ${what} ${one.ids.join(", ")}`, on: { click: () => desk.undo(one.id) } }, "Undo") : null));
  });
  if (!rows.length) return h("p", {}, "Nothing was changed yet.");
  const head = [["When, who", "who"], ["What", "what"], ["Entries", ""]].map(([name, own]) => h("th", { scope: "col", class: own }, name));
  return h("table", { class: "table" }, h("caption", { class: "sr" }, "Changes"), h("thead", {}, h("tr", {}, head, h("th", { scope: "col", class: "act" }, h("span", { class: "sr" }, "Undo")))), h("tbody", {}, rows));
}
