/* A heat map of words against words. Cells are painted on one canvas, so that thousands of them stay light; what lies
   on top (outlines, cursor, paths) is an SVG whose unit is one cell.

   heatmap(host, map): map = {
     rows, cols: [{word, at}]                    at: the position in the text; a jump in it draws a gap line
     rowName, colName: what the two sides are called
     channels: [{name, label, low, high, places, values}]   values: row by row, null where there is none
     marks: [{row, col, channel, note}]          cells to outline, with a line for the tooltip
     paths: {channel: [[row, col]]}              a way through the map, drawn as a line in place of outlines
   }
   Returns {show(channel), light(rows, cols), overlay}. The host hears "cell" events with detail {row, col}, or null. */
function heatmap(host, map) {
  const SVG = "http://www.w3.org/2000/svg";
  const make = (tag, className, parent, text) => {
    const node = document.createElement(tag);
    node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const draw = (tag, attributes, parent) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    parent.append(node);
    return node;
  };
  const rows = map.rows.length, cols = map.cols.length;
  let channel = map.channels[0], size = 20, cursor = null;

  // The bar: which channel, what the colours mean.
  const bar = make("div", "heat-bar", host);
  let select = null;
  if (map.channels.length > 1) {
    const label = make("label", "", bar, "Channel ");
    select = make("select", "", label);
    map.channels.forEach((c, i) => { make("option", "", select, c.label).value = i; });
    select.addEventListener("change", () => show(Number(select.value)));
  } else {
    make("span", "", bar, channel.label);
  }
  const legend = make("span", "heat-legend", bar);
  const low = make("span", "figure", legend), ramp = make("i", "", legend), high = make("span", "figure", legend);
  const outlined = make("span", "heat-legend", bar);
  const drawn = Object.keys(map.paths).length > 0;
  make("i", drawn ? "walked" : "outlined", outlined);
  make("span", "", outlined, drawn ? "the path that the score took" : "took part in the score");

  // The map: labels stay in sight while it scrolls.
  const scroll = make("div", "heat-scroll", host);
  make("div", "heat-corner", scroll);
  const top = make("div", "heat-cols", scroll), side = make("div", "heat-rows", scroll);
  const stage = make("div", "heat-stage", scroll);
  top.setAttribute("aria-hidden", "true");
  side.setAttribute("aria-hidden", "true");
  // Scripts that are written downwards anyway stand upright.
  const upright = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+$/u;
  const colLabels = map.cols.map((c) => make("span", upright.test(c.word) ? "upright" : "", top, c.word));
  const rowLabels = map.rows.map((r) => make("span", "", side, r.word));
  const canvas = make("canvas", "", stage);
  const overlay = draw("svg", { viewBox: `0 0 ${cols} ${rows}`, preserveAspectRatio: "none", "aria-hidden": "true" }, stage);
  const gap = (x1, y1, x2, y2) => draw("line", { class: "gap", x1, y1, x2, y2 }, overlay);
  map.cols.forEach((c, i) => { if (i && c.at > map.cols[i - 1].at + 1) gap(i, 0, i, rows); });
  map.rows.forEach((r, i) => { if (i && r.at > map.rows[i - 1].at + 1) gap(0, i, cols, i); });
  const marks = draw("g", {}, overlay);
  const pointer = draw("rect", { class: "cursor", width: 1, height: 1, visibility: "hidden" }, overlay);
  const tip = make("div", "heat-tip", host);
  tip.setAttribute("role", "status");
  stage.tabIndex = 0;
  stage.setAttribute("role", "application");

  const strength = (value) => {
    const { low, high } = channel;
    if (low < 0 && high > 0) return value / high;
    if (low === high) return Math.sign(value);
    return low >= 0 ? (value - low) / (high - low) : (value - high) / (high - low);
  };
  const figure = (value) => value.toFixed(channel.places).replace("-", "−");

  function paint() {
    const style = getComputedStyle(host), ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(cols * size * ratio);
    canvas.height = Math.round(rows * size * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const blank = style.getPropertyValue("--cell");
    const colours = [`rgb(${style.getPropertyValue("--neg")})`, `rgb(${style.getPropertyValue("--pos")})`];
    for (let row = 0; row < rows; row++) {
      for (let col = 0; col < cols; col++) {
        const value = channel.values[row * cols + col], box = [col * size, row * size, size - 1, size - 1];
        pen.globalAlpha = 1;
        pen.fillStyle = blank;
        pen.fillRect(...box);
        if (value === null) continue;
        const t = strength(value);
        pen.globalAlpha = Math.min(1, Math.abs(t));
        pen.fillStyle = colours[t < 0 ? 0 : 1];
        pen.fillRect(...box);
      }
    }
  }

  function show(index) {
    channel = map.channels[index];
    if (select) select.value = index;
    low.textContent = figure(channel.low);
    high.textContent = figure(channel.high);
    const ends = [];
    if (channel.low < 0) ends.push("rgb(var(--neg))");
    ends.push("var(--cell)");
    if (channel.high > 0) ends.push("rgb(var(--pos))");
    ramp.style.backgroundImage = `linear-gradient(to right, ${ends.length > 1 ? ends.join(", ") : "var(--cell), var(--cell)"})`;
    marks.replaceChildren();
    const path = map.paths[index];
    if (path) {
      const points = path.map(([row, col]) => `${col + 0.5},${row + 0.5}`).join(" ");
      draw("polyline", { class: "path-edge", points }, marks);
      draw("polyline", { class: "path", points }, marks);
      for (const [row, col] of path) draw("circle", { class: "path-dot", cx: col + 0.5, cy: row + 0.5, r: 0.13 }, marks);
    }
    const own = map.marks.filter((mark) => mark.channel === index);
    // Where most cells took part outlines would only hide the map; the tooltip still tells each contribution.
    const crowded = !path && 2 * own.length > rows * cols;
    outlined.hidden = crowded;
    for (const mark of path || crowded ? [] : own) {
      draw("rect", { class: "mark", x: mark.col + 0.03, y: mark.row + 0.03, width: 0.9, height: 0.9 }, marks);
    }
    stage.setAttribute("aria-label", `${channel.name}: map of ${rows} ${map.rowName} words and ${cols} ${map.colName} words. Arrow keys move from cell to cell.`);
    paint();
    if (cursor) point(cursor.row, cursor.col);
  }

  function light(litRows, litCols) {
    rowLabels.forEach((label, i) => label.classList.toggle("on", litRows.includes(i)));
    colLabels.forEach((label, i) => label.classList.toggle("on", litCols.includes(i)));
  }

  function point(row, col) {
    cursor = { row, col };
    pointer.setAttribute("x", col);
    pointer.setAttribute("y", row);
    pointer.setAttribute("visibility", "visible");
    light([row], [col]);
    const value = channel.values[row * cols + col];
    tip.replaceChildren();
    make("b", "", tip, `${map.rows[row].word} × ${map.cols[col].word}`);
    tip.append(`${channel.name}: ${value === null ? "no value" : figure(value)}`);
    for (const mark of map.marks) {
      if (mark.row === row && mark.col === col && map.channels[mark.channel] === channel) make("div", "", tip, mark.note);
    }
    const cell = stage.getBoundingClientRect(), around = host.getBoundingClientRect();
    const x = cell.left - around.left + (col + 0.5) * size - tip.offsetWidth / 2;
    const y = cell.top - around.top + row * size;
    tip.style.left = `${Math.max(0, Math.min(x, around.width - tip.offsetWidth))}px`;
    tip.style.top = `${y - tip.offsetHeight - 8}px`;
    host.dispatchEvent(new CustomEvent("cell", { detail: cursor }));
  }

  function leave() {
    cursor = null;
    pointer.setAttribute("visibility", "hidden");
    light([], []);
    tip.replaceChildren();
    host.dispatchEvent(new CustomEvent("cell", { detail: null }));
  }

  function layout() {
    const free = host.clientWidth - side.offsetWidth - 14;
    const next = Math.max(17, Math.min(34, Math.floor(free / cols)));
    if (next !== size || !canvas.width) {
      size = next;
      stage.style.width = `${cols * size}px`;
      stage.style.height = `${rows * size}px`;
      for (const label of colLabels) label.style.cssText = `width:${size}px;line-height:${size}px`;
      for (const label of rowLabels) label.style.cssText = `height:${size}px;line-height:${size}px`;
    }
    paint();
  }

  const at = (event) => {
    const box = stage.getBoundingClientRect();
    const col = Math.floor((event.clientX - box.left) / size), row = Math.floor((event.clientY - box.top) / size);
    return row >= 0 && row < rows && col >= 0 && col < cols ? [row, col] : null;
  };
  const follow = (event) => {
    const cell = at(event);
    if (cell && !(cursor && cursor.row === cell[0] && cursor.col === cell[1])) point(...cell);
  };
  stage.addEventListener("pointermove", follow);
  stage.addEventListener("pointerdown", follow);
  stage.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
  stage.addEventListener("blur", leave);
  scroll.addEventListener("scroll", () => { if (cursor) point(cursor.row, cursor.col); }, { passive: true });
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") leave();
    if (!step) return;
    event.preventDefault();
    const from = cursor || { row: -step[0], col: -step[1] };
    const row = Math.max(0, Math.min(rows - 1, from.row + step[0])), col = Math.max(0, Math.min(cols - 1, from.col + step[1]));
    // Bring the cell out from under the labels and the edges before pointing at it.
    const seenX = scroll.clientWidth - side.offsetWidth, seenY = scroll.clientHeight - top.offsetHeight;
    scroll.scrollLeft = Math.min(col * size, Math.max(scroll.scrollLeft, (col + 1) * size - seenX));
    scroll.scrollTop = Math.min(row * size, Math.max(scroll.scrollTop, (row + 1) * size - seenY));
    point(row, col);
  });
  new ResizeObserver(layout).observe(host);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  layout();
  return { show, light, overlay };
}
