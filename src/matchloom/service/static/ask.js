/* The page for users: one answer, or honestly none. The question is in the address. */
import { answerCard, listing, reason } from "./answers.js";
import { ask } from "./api.js";
import { find, h, person, printable } from "./dom.js";
import { explained } from "./explained.js";
import { attempt, keyed, tell } from "./session.js";

const state = { page: null, running: null, where: {}, system: null };
const question = find("#question"), results = find("#results");
const say = (text) => { find("#status").textContent = text; };

/* ---- one answer */

function card(answer, asked, first) {
  const why = h("div", { class: "reason" }), science = h("div", { class: "science", hidden: true });
  const about = { query: asked, id: answer.id, system: state.system, top: 10 };
  let shown = false;
  const opener = h("button", { type: "button", class: "quiet", "aria-expanded": "false", on: {
    click: async () => {
      science.hidden = !science.hidden;
      opener.setAttribute("aria-expanded", String(!science.hidden));
      if (shown || science.hidden) return;
      shown = true;
      await attempt(() => explained(science, about));
    },
  } }, "How it was found");
  const because = async () => {
    if (why.childNodes.length) return;
    const found = await attempt(() => ask("/v1/explain", about));
    const sentence = found && reason(found.because, answer.question, asked);
    if (sentence) why.replaceChildren(sentence);
  };
  const onThumb = async (label) => {
    const kept = await attempt(() => ask("/v1/feedback", { question: asked, id: answer.id, label, system: state.system, who: person() }));
    if (kept) say(label ? "Thank you." : "Thank you. The owners of this page will see that it was wrong.");
    return Boolean(kept);
  };
  if (first) because();
  return answerCard(answer, { first, say, onThumb: state.page.feedback ? onThumb : null, why, actions: opener, below: science, opened: because });
}

const contact = () => {
  const given = state.page.contact;
  return given ? h("p", {}, "You can ask a person: ", h("a", { href: given, rel: "noopener noreferrer" }, given.replace(/^mailto:/, "")), ".") : null;
};

async function run() {
  const asked = question.value;
  tell("");
  if (!asked.trim()) { question.focus(); return; }
  history.replaceState(null, "", `#${new URLSearchParams({ q: asked, ...(state.page.systems.length > 1 ? { system: state.system } : {}) })}`);
  find("#examples").hidden = true;
  if (state.running) state.running.abort();
  state.running = new AbortController();
  const { signal } = state.running;
  results.setAttribute("aria-busy", "true");
  const where = Object.keys(state.where).length ? state.where : null;
  const found = await attempt(() => ask("/v1/search", { question: asked, system: state.system, top: 10, ...(where ? { where } : {}) }, signal));
  if (signal.aborted) return;
  results.removeAttribute("aria-busy");
  if (!found) { results.replaceChildren(); return; }
  const { nodes, said } = listing(found, (answer, first) => card(answer, asked, first), "h2", contact());
  results.replaceChildren(...nodes);
  say(said);
  results.dataset.asked = asked;
  find("#lab").href = `/lab#${new URLSearchParams({ q: asked, system: state.system })}`;
}

/* ---- the page */

function filters(given) {
  const made = Object.entries(given).map(([name, values]) => {
    const buttons = ["", ...values].map((value) => h("button", { type: "button", class: "chip", "aria-pressed": String((state.where[name] || "") === value), on: {
      click: () => {
        if (value) state.where[name] = value;
        else delete state.where[name];
        buttons.forEach((one, n) => one.setAttribute("aria-pressed", String(["", ...values][n] === value)));
        if (question.value.trim()) run();
      },
    } }, value ? printable(value) : "All"));
    return h("div", { class: "filter", role: "group", "aria-label": name }, h("span", { class: "note" }, printable(name)), buttons);
  });
  find("#filters").replaceChildren(...made);
}

function examples(given) {
  const list = given.map((text) => h("li", {}, h("button", { type: "button", class: "example", dir: "auto", on: {
    click: () => { question.value = text; run(); },
  } }, printable(text))));
  find("#examples").hidden = !list.length;
  find("#examples ul").replaceChildren(...list);
  if (given[0]) question.placeholder = printable(given[0]);
}

async function load(system) {
  const page = await attempt(() => ask(`/v1/page${system ? `?${new URLSearchParams({ system })}` : ""}`));
  if (!page) return false;
  if (!page.systems.length) { location.replace("/lab"); return false; }
  find("#key").hidden = true;
  Object.assign(state, { page, system: page.system, where: {} });
  find("#desk").hidden = !page.desk;
  const choice = find("#system");
  find("#choice").hidden = page.systems.length < 2;
  choice.replaceChildren(...page.systems.map((name) => h("option", { value: name }, name)));
  choice.value = page.system;
  filters(page.filters);
  examples(page.examples);
  return true;
}

find("#ask").addEventListener("submit", (event) => { event.preventDefault(); if (state.page) run(); });
find("#system").addEventListener("change", async () => { if (await load(find("#system").value) && question.value.trim()) run(); });
keyed(load, "This key is not valid.");
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, textarea, select")) return;
  event.preventDefault();
  question.focus();
  question.select();
});

const address = new URLSearchParams(location.hash.slice(1));
if (await load(address.get("system")) && address.get("q")) {
  question.value = address.get("q");
  run();
}
