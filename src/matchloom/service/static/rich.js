/* Answers as people wrote them: Markdown, or HTML of which only plain formatting is left, or one within the other. Nothing of it runs: elements are
   made anew from an allow-list, without attributes but for links that lead to the web or to a mail address. */
import { h, printable } from "./dom.js";

const DEEPEST = 60, LONGEST = 100_000;
const SAME = new Set(["p", "br", "b", "strong", "i", "em", "u", "s", "ul", "ol", "li", "code", "pre", "blockquote", "sub", "sup", "hr", "table", "thead", "tbody", "tr", "th", "td"]);
const AS = { h1: "h3", h2: "h3", h3: "h3", h4: "h4", h5: "h4", h6: "h4", div: "p", section: "p", article: "p", del: "s", ins: "u", mark: "b", dt: "p", dd: "p" };
const DROPPED = new Set(["script", "style", "template", "iframe", "object", "embed", "svg", "math", "noscript", "head", "title", "form", "input", "button", "select", "textarea", "audio", "video", "canvas", "link", "meta", "base"]);
const TAG = /<\/?(?:p|br|b|strong|i|em|u|ul|ol|li|a|div|span|h[1-6]|table|tr|td|th|code|pre|blockquote|img|font|script|style|iframe|svg)(?:\s[^<>]*)?\/?>/i;
const BLOCK = /<\/?(?:p|ul|ol|li|div|h[1-6]|table|tr|td|th|pre|blockquote|script|style|iframe|svg)(?:\s[^<>]*)?\/?>/i;
const ADDRESS = /\b(?:https?:\/\/|www\.)[^\s<>"'`]+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+/giu;

/* The address of a link, or null where it would lead anywhere but to the web or a mail program. */
export function safeLink(given) {
  const text = String(given).trim();
  try {
    const url = new URL(text.startsWith("www.") ? `https://${text}` : text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export function link(address, ...inside) {
  return h("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, ...inside);
}

/* Text with its addresses as links. */
function linked(text) {
  const made = [];
  let end = 0;
  for (const found of text.matchAll(ADDRESS)) {
    const said = found[0].replace(/[.,;:!?)\]]+$/, "");
    const address = safeLink(said.includes("@") && !/^(https?:|www\.)/i.test(said) ? `mailto:${said}` : said);
    if (!address) continue;
    made.push(text.slice(end, found.index), link(address, said));
    end = found.index + said.length;
  }
  made.push(text.slice(end));
  return made.filter((one) => one !== "");
}

/* ---- HTML */

function reduced(node, depth, inLink, asText = inline) {
  if (node.nodeType === Node.TEXT_NODE) return inLink ? [printable(node.data)] : asText(printable(node.data));
  if (node.nodeType !== Node.ELEMENT_NODE || depth > DEEPEST) return [];
  const tag = node.localName;
  if (DROPPED.has(tag)) return [];
  const isLink = tag === "a";
  const inside = () => [...node.childNodes].flatMap((child) => reduced(child, depth + 1, inLink || isLink, tag === "code" || tag === "pre" ? linked : asText));
  if (isLink) {
    const address = safeLink(node.getAttribute("href") || "");
    return address && !inLink ? [link(address, ...inside())] : inside();
  }
  if (tag === "img") return node.getAttribute("alt") ? [printable(node.getAttribute("alt"))] : [];
  const as = SAME.has(tag) ? tag : AS[tag];
  return as ? [h(as, {}, ...inside())] : inside();
}

function fromHtml(text, asText) {
  const parsed = new DOMParser().parseFromString(text, "text/html");  // inert: nothing is loaded, nothing runs
  return [...parsed.body.childNodes].flatMap((node) => reduced(node, 0, false, asText));
}

/* ---- Markdown, as much as answers have */

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]{1,2000}?\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000}?[^\s*]|[^\s*])\*(?![\w*])|(?<!\w)_(?=[^\s_])([^_\n]{1,2000}?[^\s_]|[^\s_])_(?!\w)|\[([^\]\n]{1,500})\]\(([^()\s]{1,2000})\)/gu;

function inline(text, depth = 0) {
  const made = [];
  let end = 0;
  if (depth < 5) {
    for (const found of text.matchAll(INLINE)) {
      const [whole, , code, bold, star, under, said, address] = found;
      let node = null;
      if (code !== undefined) node = h("code", {}, code.trim() || code);
      else if (bold !== undefined) node = h("strong", {}, ...inline(bold, depth + 1));
      else if (star !== undefined || under !== undefined) node = h("em", {}, ...inline(star ?? under, depth + 1));
      else if (safeLink(address)) node = link(safeLink(address), said);
      if (!node) continue;
      made.push(...linked(text.slice(end, found.index)), node);
      end = found.index + whole.length;
    }
  }
  made.push(...linked(text.slice(end)));
  return made;
}

const broken = (text) => text.split("\n").flatMap((line, n) => (n ? [h("br"), ...inline(line)] : inline(line)));
/* The rows of a paragraph or item; tags within them stand for what they stand for in HTML. */
function lines(own) {
  const text = own.join("\n");
  return TAG.test(text) ? fromHtml(text.replace(/(<br\s*\/?>)[ \t]*\n/gi, "$1"), broken) : broken(text);
}
const ITEM = /^\s{0,8}(?:[-*•+]|\d{1,3}[.)])\s+(.*)$/;

function fromMarkdown(text) {
  const made = [], rows = text.split(/\r\n|\r|\n/);
  let paragraph = [], list = null;
  const close = () => {
    if (paragraph.length) made.push(h("p", {}, ...lines(paragraph)));
    if (list) made.push(h(list.tag, {}, ...list.items.map((own) => h("li", {}, ...lines(own)))));
    paragraph = [];
    list = null;
  };
  for (let n = 0; n < rows.length; n++) {
    const row = rows[n], item = row.match(ITEM), title = row.match(/^(#{1,6})\s+(.*?)\s*#*$/);
    if (/^\s{0,3}(```|~~~)/.test(row)) {
      close();
      const code = [];
      while (++n < rows.length && !/^\s{0,3}(```|~~~)/.test(rows[n])) code.push(rows[n]);
      made.push(h("pre", {}, h("code", {}, code.join("\n"))));
    } else if (!row.trim()) close();
    else if (title) { close(); made.push(h(title[1].length < 4 ? "h3" : "h4", {}, ...inline(title[2]))); }
    else if (item) {
      const tag = /^\s*\d/.test(row) ? "ol" : "ul";
      if (!list || list.tag !== tag) { close(); list = { tag, items: [] }; }
      list.items.push([item[1]]);
    } else if (list && /^\s/.test(row)) list.items.at(-1).push(row.trim());
    else { if (list) close(); paragraph.push(row); }
  }
  close();
  return made;
}

/* An answer as elements. */
export function rich(text) {
  const whole = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  const inside = BLOCK.test(whole) ? fromHtml(whole) : fromMarkdown(printable(whole));
  return h("div", { class: "rich", dir: "auto" }, ...(inside.length ? inside : [printable(whole)]));
}

/* The same in one line, for lists. */
export function plain(text) {
  const made = rich(text);
  for (const one of made.querySelectorAll("br, p, li, h3, h4, td, tr")) one.after(" ");
  return made.textContent.replace(/\s+/g, " ").trim();
}
