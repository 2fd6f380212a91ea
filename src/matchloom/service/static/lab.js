/* Compare and rank: a question, who answers it, and the answers. What was asked stands in the address, to be kept or sent. */
import { ask } from "./api.js";
import { cards } from "./cards.js";
import { moved, places, summary } from "./compare.js";
import { find, h, person, printable } from "./dom.js";
import { explained } from "./explained.js";
import { attempt, keyed, tell } from "./session.js";

const TOP = 10;
const UNSURE = 0.5;  // of a question must be known, or a line says so
const state = { mode: "search", systems: [], feedback: false, running: null };
const parts = { question: find("#question"), candidates: find("#candidates"), system: find("#system"), by: find("#by") };

/* ---- what is served */

function option(value, text) {
  return h("option", { value }, text);
}

function choices() {
  const fits = state.systems.filter((one) => (state.mode === "search" ? one.searches : one.scores));
  const kept = [parts.system.value, parts.by.value];
  const names = fits.map((one) => option(one.name, one.name));
  if (state.mode === "rank") names.push(option("bm25", "bm25"));
  parts.system.replaceChildren(...names);
  if (names.some((one) => one.value === kept[0])) parts.system.value = kept[0];
  const others = state.systems.filter((one) => one.scores && one.name !== parts.system.value).map((one) => one.name);
  parts.by.replaceChildren(option("", "nothing"), ...["bm25", ...others].map((name) => option(name, name)));
  if ([...parts.by.options].some((one) => one.value === kept[1])) parts.by.value = kept[1];
}

async function load() {
  const found = await attempt(() => ask("/v1/systems"));
  if (!found) return false;
  state.systems = found.systems;
  state.feedback = found.feedback;
  find("#runs").hidden = !found.runs;
  if (!found.systems.some((one) => one.searches)) state.mode = "rank";
  find("#key").hidden = true;
  read();
  show(state.mode);
  return true;
}

/* ---- modes and the address */

function show(mode) {
  state.mode = mode;
  for (const tab of document.querySelectorAll("button.tab")) {
    tab.setAttribute("aria-pressed", String(tab.dataset.mode === mode));
  }
  find(".pasted").hidden = mode !== "rank";
  choices();
}

function write() {
  const address = new URLSearchParams({ q: parts.question.value, system: parts.system.value });
  if (parts.by.value) address.set("by", parts.by.value);
  if (state.mode === "rank") address.set("mode", "rank");
  history.replaceState(null, "", `#${address}`);
}

function read() {
  const address = new URLSearchParams(location.hash.slice(1));
  if (address.get("mode") === "rank") state.mode = "rank";
  show(state.mode);
  for (const [name, part] of [["system", parts.system], ["by", parts.by]]) {
    const wanted = address.get(name);
    if ([...part.options].some((one) => one.value === wanted)) part.value = wanted;
    if (name === "system") choices();
  }
  if (address.has("q") && !parts.question.value) parts.question.value = address.get("q");
}

/* ---- asking */

const pasted = () => parts.candidates.value.split("\n").map((line) => line.trim()).filter(Boolean);

/* The answers of one system, all with the same keys. */
async function answersOf(by, question, signal) {
  const system = parts.system.value;
  if (state.mode === "rank") {
    const found = await ask("/v1/rank", { system: by || system, query: question, candidates: pasted(), top: 50 }, signal);
    return { answers: found.ranking, known: null };
  }
  return ask("/v1/search", { system, question, by: by || null, top: TOP }, signal);
}

function whyAsked(answer, by, question) {
  const system = parts.system.value;
  if (state.mode === "rank") return { system: by || system, query: question, text: answer.text, candidates: pasted() };
  return { system, query: question, id: answer.id, by: by || null, top: TOP };
}

/* bm25 alone needs the texts in which it counts words. */
const bare = (asked) => (asked.system === "bm25" ? asked : { ...asked, candidates: [] });

function opening(question, names) {
  return async (answer, host, signal) => {
    const panels = names.map((name) => h("div", { class: "panel" }, names.length > 1 ? h("h3", {}, label(name)) : null, h("div", {})));
    const both = names.length > 1;
    host.classList.toggle("both", both);
    host.replaceChildren(...(both ? [h("h2", {}, "Why: ", h("bdi", {}, printable(answer.text)))] : []), h("div", { class: "panels" }, panels));
    await Promise.all(names.map(async (name, n) => {
      const inside = panels[n].lastElementChild;
      try {
        await explained(inside, bare(whyAsked(answer, name, question)), signal);
      } catch (error) {
        if (error.name === "AbortError") return;
        inside.replaceChildren(h("p", { class: "note" }, error.code === "unknown" ? "It is not among the answers of this system." : error.message));
      }
    }));
  };
}

const label = (name) => name || parts.system.value;

async function thumb(question, answer, right) {
  const system = state.systems.some((one) => one.name === parts.system.value) ? parts.system.value : null;
  const kept = await attempt(() => ask("/v1/feedback", { question, text: answer.text, label: right, id: answer.id || "", system, who: person() }));
  if (kept) find("#status").textContent = "Saved for the next fit.";
  return kept !== null;
}

async function run() {
  const question = parts.question.value;
  tell("");
  find("#status").textContent = "";
  if (!question.trim()) {
    tell("Type a question first.");
    parts.question.focus();
    return;
  }
  if (state.mode === "rank" && !pasted().length) {
    tell("Paste the texts to rank, one per line.");
    parts.candidates.focus();
    return;
  }
  write();
  if (state.running) state.running.abort();
  state.running = new AbortController();
  const { signal } = state.running, names = parts.by.value ? ["", parts.by.value] : [""];
  const results = find("#results");
  results.setAttribute("aria-busy", "true");
  const found = await attempt(() => Promise.all(names.map((name) => answersOf(name, question, signal))));
  results.removeAttribute("aria-busy");
  if (!found || signal.aborted) return;
  const [ours, theirs] = found.map((one) => one.answers);
  const onThumb = state.feedback ? (answer, right) => thumb(question, answer, right) : null;
  const across = theirs ? h("div", { class: "across" }) : null;
  const columns = found.map((one, n) => cards({
    across,
    title: names.length > 1 ? label(names[n]) : "",
    answers: one.answers,
    notes: theirs ? places(one.answers, n ? ours : theirs).map((place) => moved(place, label(names[1 - n]))) : null,
    onOpen: opening(question, names),
    onThumb,
  }));
  const lines = [];
  if (theirs) lines.push(summary(ours, theirs, names.map(label)));
  const known = found[0].known;
  if (known !== null && known < UNSURE && ours.length) {
    lines.push(`Probably no answer here: with a probability of ${Math.round(100 * (1 - known))}% none of these is right.`);
  }
  results.classList.toggle("two", Boolean(theirs));
  results.replaceChildren(...lines.filter(Boolean).map((line) => h("p", { class: "lead" }, line)), ...(across ? [across] : []), h("div", { class: "columns" }, columns));
  find("#status").textContent = `${ours.length} ${ours.length === 1 ? "answer" : "answers"}.`;
}

/* ---- events */

find("#ask").addEventListener("submit", (event) => { event.preventDefault(); run(); });
keyed(load, "This key is not valid.");
for (const tab of document.querySelectorAll("button.tab")) {
  tab.addEventListener("click", () => { show(tab.dataset.mode); find("#results").replaceChildren(); find("#status").textContent = ""; tell(""); });
}
parts.system.addEventListener("change", () => { choices(); if (parts.question.value.trim()) run(); });
parts.by.addEventListener("change", () => { if (parts.question.value.trim()) run(); });
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    parts.question.focus();
    parts.question.select();
  }
  if (!["ArrowDown", "ArrowUp"].includes(event.key) || event.defaultPrevented) return;
  if (event.target.matches("textarea, select") || event.target.closest(".why")) return;
  const openers = [...document.querySelectorAll(".open")];
  const at = openers.indexOf(document.activeElement), next = at + (event.key === "ArrowDown" ? 1 : -1);
  if (next < -1 || next >= openers.length) return;
  event.preventDefault();
  (next < 0 ? parts.question : openers[next]).focus();
});

if (await load() && parts.question.value.trim() && (state.mode === "search" || pasted().length)) run();
