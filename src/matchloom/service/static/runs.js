/* Trainings and fits of a folder; what runs is looked at again every other second, and its curves grow. */
import { Problem, ask } from "./api.js";
import { find, h, printable, stamp } from "./dom.js";
import { piece } from "./explained.js";

const EVERY = 2000;
let shown = null;  // the piece as it came, so that nothing is drawn again that did not change

const wanted = () => new URLSearchParams(location.hash.slice(1)).get("run");

function list(runs, name) {
  const links = runs.map((run) => h("a", {
    href: `#${new URLSearchParams({ run: run.name })}`, class: "run-link", "aria-current": run.name === name ? "true" : null,
  }, h("b", {}, printable(run.name)), h("span", { class: "note" }, `${run.kind}, ${run.running ? "running" : stamp(run.changed)}`)));
  find("#list").replaceChildren(...(links.length ? links : [h("p", { class: "note" }, "No training or fit is here yet.")]));
}

async function look() {
  const problem = find("#problem");
  try {
    const { runs } = await ask("/v1/runs");
    const name = wanted() || runs[0]?.name;
    list(runs, name);
    problem.hidden = true;
    if (!name) return;
    const run = await ask(`/v1/run?${new URLSearchParams({ name })}`);
    if (run.html === shown) return;
    const opened = [...document.querySelectorAll("#run details")].map((one) => one.open);
    shown = run.html;
    find("#run").replaceChildren(piece(run.html));
    document.querySelectorAll("#run details").forEach((one, n) => { one.open = Boolean(opened[n]); });
    find("#status").textContent = run.running ? "Running; this page follows it." : "";
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    problem.hidden = false;
    problem.textContent = error.status === 401 ? "This service needs an API key; enter it on the first page." : error.message;
  }
}

async function follow() {
  if (!document.hidden) await look();
  setTimeout(follow, EVERY);
}

addEventListener("hashchange", () => { shown = null; look(); });
follow();
