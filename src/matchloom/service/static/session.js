/* What every page needs to ask the service: problems in words, and a key where one is wanted. */
import { Problem, useKey } from "./api.js";
import { find } from "./dom.js";

const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
const AGAIN = 1000;  // milliseconds, while the service begins

/* Show a problem, or none. */
export function tell(text) {
  find("#problem").hidden = !text;
  find("#problem").textContent = text ? sentence(text) : "";
}

/* What the work gives; null where it failed, and a line says why. While the service begins it is tried again. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (!(error instanceof Problem)) throw error;
    if (error.code === "loading") {
      tell("The answers are being loaded. One moment.");
      await new Promise((done) => { setTimeout(done, AGAIN); });
      tell("");
      return attempt(work);
    }
    const wanted = error.status === 401 || error.code === "ask_only";
    if (wanted) {
      find("#key").hidden = false;
      find("#secret").focus();
    }
    tell(wanted ? "" : error.status === 503 ? "The service is busy. Please try again in a moment." : error.message);
    return null;
  }
}

/* The form for a key: `load` says whether it is the right one. */
export function keyed(load, refused) {
  find("#key").addEventListener("submit", async (event) => {
    event.preventDefault();
    useKey(find("#secret").value);
    find("#secret").value = "";
    if (!(await load())) tell(refused);
  });
}
