/* Refits: a new fit is measured aside, and used when somebody says so. And the list of changes, each with a way back. */
import { h, printable } from "./dom.js";

const EVERY = 500;
const share = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
const stamp = (seconds) => new Date(1000 * seconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

function judged(report) {
  if (!report) return null;
  const learnt = report.before === null ? "There was nothing that held-out questions could have told." : `${report.questions} held-out questions of your own: ${share(report.before)} answered without the judgements, ${share(report.after)} with them.`;
  return h("p", { class: "note" }, `${report.judgements} judgements: ${report.right} right, ${report.wrong} wrong, ${report.removed} of answers that are gone. ${report.learnt ? "Learnt." : "Not learnt, since it would be worse."} ${learnt}`);
}

function outcome(desk, last, redraw) {
  if (!last) return h("p", {}, "This service has not refitted it yet.");
  const worse = last.aside && last.why.includes("less often");
  const promote = h("button", { type: "button", class: "go", disabled: !desk.writable || worse, on: { click: async () => {
    if (await desk.attempt(() => desk.call("/promote", {}))) { desk.tell("Promoted: the new fit answers from now on."); redraw(); }
  } } }, "Promote");
  const said = last.aside ? (worse ? "Worse by more than chance: it is not used." : "Measured, and not used yet.") : last.kept ? "In use." : `Not used: ${last.why}.`;
  return h("div", {},
    h("div", { class: "versus" }, h("div", {}, h("b", {}, share(last.before)), h("span", { class: "note" }, "before")), h("div", {}, h("b", {}, share(last.after)), h("span", { class: "note" }, "after")), h("p", { class: "note" }, "of left-out questions find their answer first")),
    h("p", {}, said), h("p", { class: "note" }, `${last.entries} entries, ${last.questions} questions, ${last.changed} changed; ${new Date(last.finished).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}`),
    judged(last.feedback), last.aside ? h("div", { class: "buttons" }, promote) : null);
}

export async function refitView(desk) {
  const view = h("div", {});
  async function draw() {
    const about = await desk.attempt(() => desk.call());
    if (!about) return;
    if (!about.refit) { view.replaceChildren(h("p", {}, "An archive learns nothing.")); return; }
    const running = about.refit.state === "running";
    const begin = (aside) => async () => { if (await desk.attempt(() => desk.call("/refit", { aside }))) draw(); };
    view.replaceChildren(
      h("p", {}, `${about.changed_since_fit} ${about.changed_since_fit === 1 ? "entry has" : "entries have"} changed since the last fit.`, about.refit.state === "waiting" ? " A refit follows by itself when changes have come to rest." : ""),
      h("div", { class: "buttons" }, h("button", { type: "button", class: "go", disabled: !desk.writable || running, on: { click: begin(true) } }, "Refit and compare"), h("button", { type: "button", class: "plain", disabled: !desk.writable || running, on: { click: begin(false) } }, "Refit, use if not worse")),
      running ? h("p", { role: "status" }, "Learning… Searches go on meanwhile.") : h("section", { class: "part" }, h("h2", {}, "The last refit"), outcome(desk, about.refit.last, draw)),
      ...(about.refit.failed ? [h("p", { class: "problem" }, about.refit.failed)] : []));
    if (running) setTimeout(() => { if (view.isConnected) draw(); }, EVERY);
  }
  await draw();
  return view;
}

export async function changesView(desk) {
  const found = await desk.call("/audit");
  const rows = found.changes.map((one) => h("tr", {},
    h("td", {}, stamp(one.time)), h("td", {}, printable(one.who)), h("td", {}, one.action, one.undone ? h("span", { class: "note" }, " (undone)") : null),
    h("td", {}, one.ids.map(printable).join(", "), one.entries > one.ids.length ? ` and ${one.entries - one.ids.length} more` : ""),
    h("td", { class: "act" }, one.entries && !one.undone && desk.writable ? h("button", { type: "button", class: "quiet", "aria-label": `Undo ${one.action} of ${one.ids.join(", ")}`, on: { click: () => desk.undo(one.id) } }, "Undo") : null)));
  if (!rows.length) return h("p", {}, "Nothing was changed yet.");
  return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Changes" }, h("table", {}, h("thead", {}, h("tr", {}, ["When", "Who", "What", "Entries", "Undo"].map((one) => h("th", { scope: "col" }, one)))), h("tbody", {}, rows)));
}
