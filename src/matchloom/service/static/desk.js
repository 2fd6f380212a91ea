/* The desk: which collection, which view, and what all views need. Everything here is a call of /v1/collections. */
import { ask } from "./api.js";
import { entriesView } from "./desk_entries.js";
import { inboxView } from "./desk_inbox.js";
import { qualityView } from "./desk_quality.js";
import { changesView, refitView } from "./desk_refit.js";
import { find, h } from "./dom.js";
import { attempt as tried, keyed, tell as problem } from "./session.js";

const VIEWS = { entries: entriesView, inbox: inboxView, quality: qualityView, refit: refitView, changes: changesView };
const desk = {
  name: null, writable: false,
  call: (what = "", body, method) => ask(`/v1/collections/${encodeURIComponent(desk.name)}${what}`, body, undefined, method),
  tell, attempt, undo, show, count, settle,
};
let shown = 0;  // which drawing of a view is the last

/* A line that says what was done, with a way back where there is one. */
function tell(text, { undo: back = false } = {}) {
  find("#told").replaceChildren(...(text ? [h("span", {}, text), ...(back ? [h("button", { type: "button", class: "plain", on: { click: () => undo() } }, "Undo")] : [])] : []));
}

function attempt(work) {
  problem("");
  return tried(work);
}

async function undo(change = "") {
  const done = await attempt(() => desk.call("/undo", { change }));
  if (!done) return;
  tell(done.ids.length ? `Undone: ${done.ids.length} ${done.ids.length === 1 ? "entry is" : "entries are"} as before.` : "Undone: the questions are back in the inbox.");
  await show();
  settle();
}

/* Where the keyboard goes on when what it stood on is gone: to the way back, or to the view. */
function settle() {
  if (document.activeElement === document.body) (find("#told button") || find("#view")).focus();
}

function count(waiting) {
  find("#waiting").hidden = !waiting;
  find("#waiting").textContent = String(waiting);
}

/* Draw the view that the address names: #entries, #inbox?..., with what follows the question mark as its own. */
async function show() {
  const [name, query] = (location.hash.slice(1) || "entries").split("?");
  const view = VIEWS[name] ? name : "entries", mine = ++shown;
  for (const tab of document.querySelectorAll(".tab")) {
    const is = tab.getAttribute("href") === `#${view}`;
    if (is) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
    if (is) find("#view").setAttribute("aria-label", tab.firstChild.textContent.trim());
  }
  const made = await attempt(() => VIEWS[view](desk, new URLSearchParams(query)));
  if (made && mine === shown) find("#view").replaceChildren(made);
}

async function load() {
  const found = await attempt(() => ask("/v1/systems"));
  if (!found) return false;
  const able = found.systems.filter((one) => one.searches);
  const first = await attempt(() => (able.length ? ask(`/v1/collections/${encodeURIComponent(able[0].name)}`) : null));
  if (!first) {
    if (!able.length) problem("No collection is served here.");
    return false;
  }
  find("#key").hidden = true;
  const choice = find("#collection");
  choice.replaceChildren(...able.map((one) => h("option", { value: one.name }, one.name)));
  const use = async () => {
    desk.name = choice.value;
    desk.writable = able.find((one) => one.name === desk.name).writable;
    find("#readonly").hidden = desk.writable;
    const waiting = await attempt(() => desk.call("/inbox"));
    if (waiting) count(waiting.total);
  };
  choice.onchange = async () => { tell(""); await use(); show(); };
  await use();
  return true;
}

addEventListener("hashchange", () => { tell(""); show(); });
keyed(async () => { const known = await load(); if (known) show(); return known; }, "This is not an owner's key.");
if (await load()) show();
