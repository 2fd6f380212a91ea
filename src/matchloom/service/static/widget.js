/* The widget: <script src="https://HOST/widget.js" data-title="Help" defer></script> on any page that --allow-origin names.
   Attributes of the script: data-title, data-key (one that may only ask), data-system, data-accent, data-position ("left"),
   data-target (a selector: it stands there, open, in place of a button in the corner). */
const script = document.currentScript;
const own = script.dataset, base = new URL(script.src).origin;

async function send(path, asked) {
  const headers = { "content-type": "application/json" };
  if (own.key) headers.authorization = `Bearer ${own.key}`;
  const response = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(asked), credentials: "omit" });
  if (!response.ok) throw new Error(response.status === 503 ? "busy" : "refused");
  return response.json();
}

function start() {
  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  root.adoptedStyleSheets = [sheet];
  if (own.accent && CSS.supports("color", own.accent)) host.style.setProperty("--accent", own.accent);
  const title = own.title || "Questions?", target = own.target && document.querySelector(own.target);
  const status = h("p", { class: "sr", role: "status", "aria-live": "polite" });
  const say = (text) => { status.textContent = text; };
  const input = h("input", { type: "search", id: "question", dir: "auto", enterkeyhint: "search", maxlength: "2000", autocomplete: "off" });
  const results = h("div", { class: "results" });
  const form = h("form", { role: "search" }, h("label", { for: "question" }, "Your question"), h("div", { class: "line" }, input, h("button", { type: "submit", class: "go" }, "Ask")));
  const close = h("button", { type: "button", class: "close", "aria-label": "Close", on: { click: () => toggle(false) } }, "×");
  const panel = h("section", { class: target ? "panel inline" : "panel", "aria-label": title, hidden: !target },
    h("header", {}, h("h2", {}, title), target ? null : close), form, status, results);
  const button = h("button", { type: "button", class: "opener", "aria-expanded": "false", on: { click: () => toggle(panel.hidden) } }, title);

  function toggle(open) {
    panel.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    (open ? input : button).focus();
  }

  function card(answer, asked, first) {
    const onThumb = async (label) => {
      try {
        await send("/v1/feedback", { question: asked, id: answer.id, label, system: own.system || null, who: person() });
        say("Thank you.");
        return true;
      } catch {
        return false;
      }
    };
    return answerCard(answer, { first, say, onThumb });
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const asked = input.value;
    if (!asked.trim()) return;
    try {
      const found = await send("/v1/search", { question: asked, system: own.system || null, top: 10 });
      const { nodes, said } = listing(found, (answer, first) => card(answer, asked, first), "h3");
      results.replaceChildren(...nodes);
      say(said);
    } catch (error) {
      const text = error.message === "busy" ? "The service is busy. Please try again in a moment." : "The answers cannot be reached. Please try again later.";
      results.replaceChildren(h("p", { role: "alert" }, text));
    }
  });
  root.addEventListener("keydown", (event) => { if (event.key === "Escape" && !target && !panel.hidden) toggle(false); });
  root.append(...(target ? [panel] : [panel, button]));
  if (own.position === "left") host.classList.add("left");
  (target || document.body).append(host);
}

if (document.body) start();
else document.addEventListener("DOMContentLoaded", start);
