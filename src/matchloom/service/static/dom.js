/* Elements from values. Texts become text nodes and are never parsed: what a user wrote is shown, and does nothing. */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, does] of Object.entries(value)) node.addEventListener(event, does);
    else if (name === "style") for (const [property, set] of Object.entries(value)) node.style.setProperty(property, set);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const find = (selector) => document.querySelector(selector);

/* What drives a screen or turns a line around becomes a sign of its own, as everywhere in matchloom. */
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]/gu;
export const printable = (text) => text.replace(UNPRINTABLE, "\ufffd");

export const figure = (number, places = 2) => number.toFixed(places).replace("-", "−");

export const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)}%`);

/* Seconds since 1970 as people write them here. */
export const stamp = (seconds) => new Date(1000 * seconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

/* Whose judgements these are: a number that this browser keeps, so that a changed mind counts once. */
export function person() {
  const KEY = "matchloom-person";
  try {
    const made = () => [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (!localStorage.getItem(KEY)) localStorage.setItem(KEY, made());
    return localStorage.getItem(KEY).slice(0, 64);
  } catch {
    return "";
  }
}
