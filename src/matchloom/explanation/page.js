/* Brings the page to life: words of the two texts and cells of the map point at each other. Without it the texts and
   the table still stand. */
function wire(article) {
  const data = JSON.parse(article.querySelector("script.data").textContent);
  const texts = article.querySelector(".texts"), readout = article.querySelector(".readout");
  const threads = texts.querySelector(".threads"), host = article.querySelector(".heat");
  const words = ["query", "text"].map((side) => {
    const found = new Map();
    for (const node of texts.querySelectorAll(`[data-side=${side}] .w`)) found.set(Number(node.dataset.at), node);
    return found;
  });
  const figure = (contribution) => (contribution < 0 ? "−" : "+") + Math.abs(contribution).toFixed(data.places);
  const strongest = Math.max(...data.pairs.map((pair) => Math.abs(pair[2])));
  let view = null;

  function rest() {
    texts.classList.remove("linking");
    for (const side of words) for (const node of side.values()) node.classList.remove("on");
    threads.replaceChildren();
    readout.textContent = readout.dataset.hint;
    if (view) view.light([], []);
  }

  function thread(from, to, contribution) {
    const frame = texts.getBoundingClientRect(), a = from.getBoundingClientRect(), b = to.getBoundingClientRect();
    const x1 = a.left + a.width / 2 - frame.left, y1 = a.bottom - frame.top + 2;
    const x2 = b.left + b.width / 2 - frame.left, y2 = b.top - frame.top - 2, bend = (y2 - y1) / 2;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`);
    path.setAttribute("stroke-width", 1.5 + 4 * (strongest ? Math.abs(contribution) / strongest : 0));
    if (contribution < 0) path.setAttribute("class", "down");
    threads.append(path);
  }

  function link(side, at) {
    rest();
    const node = words[side].get(at), partners = data.pairs.filter((pair) => pair[side] === at);
    if (!partners.length) return;
    texts.classList.add("linking");
    node.classList.add("on");
    let total = 0;
    const named = [];
    for (const pair of partners) {
      const other = words[1 - side].get(pair[1 - side]);
      total += pair[2];
      if (!other) continue;
      other.classList.add("on");
      named.push(`${other.textContent} ${figure(pair[2])}`);
      if (named.length <= 40) thread(side ? other : node, side ? node : other, pair[2]);
    }
    const more = partners.length > 8 ? ` and ${partners.length - 8} more` : "";
    readout.textContent = `${node.textContent}: ${figure(total)} in all, with ${named.slice(0, 8).join(", ")}${more}`;
    if (view) {
      const index = (list, positions) => list.flatMap((word, i) => (positions.includes(word.at) ? [i] : []));
      view.light(index(data.map.rows, partners.map((pair) => pair[0])), index(data.map.cols, partners.map((pair) => pair[1])));
    }
  }

  rest();
  words.forEach((side, which) => {
    for (const [at, node] of side) {
      if (node.tagName !== "BUTTON") continue;
      for (const event of ["mouseenter", "focus", "click"]) node.addEventListener(event, () => link(which, at));
      for (const event of ["mouseleave", "blur"]) node.addEventListener(event, rest);
    }
  });

  function build() {
    view = heatmap(host, data.map);
    view.show(data.map.first);
    host.addEventListener("cell", (event) => {
      rest();
      if (!event.detail) return;
      const row = data.map.rows[event.detail.row], col = data.map.cols[event.detail.col];
      view.light([event.detail.row], [event.detail.col]);
      for (const node of [words[0].get(row.at), words[1].get(col.at)]) if (node) node.classList.add("on");
    });
  }

  if (!host) return;
  // A closed explanation gets its map when it is opened: a page may hold many.
  if (article.tagName !== "DETAILS" || article.open) build();
  else article.addEventListener("toggle", build, { once: true });
}

document.querySelectorAll(".one").forEach(wire);
