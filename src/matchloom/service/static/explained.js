/* Why: the piece of a page that the service draws, brought to life by the code of the static explanation page. */
import { ask } from "./api.js";
import { h } from "./dom.js";
import { wire } from "./wire.js";

/* A piece of HTML from the service, whose texts it has escaped. Styles come as data, since the policy of this page lets
   no markup bring any. */
export function piece(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
  const node = document.adoptNode(parsed);
  for (const styled of [node, ...node.querySelectorAll("[data-style]")]) {
    if (styled.dataset.style) styled.style.cssText = styled.dataset.style;
  }
  return node;
}

export async function explained(host, asked, signal) {
  host.replaceChildren(h("p", { class: "note" }, "…"));
  const { html } = await ask("/v1/explain", { ...asked, form: "html" }, signal);
  const article = piece(html);
  host.replaceChildren(article);
  wire(article);
}
