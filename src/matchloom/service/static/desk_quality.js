/* Quality: figures of today, day by day, refit by refit, and entries that deserve a look. */
import { h, percent, printable, stamp } from "./dom.js";
import { plain } from "./rich.js";

const KINDS = { contradiction: "One question, several answers", near_question: "Nearly the same question, another answer", near_answer: "Answers that hardly differ" };
const short = (text) => { const line = plain(text); return line.length > 80 ? `${line.slice(0, 79).trimEnd()}…` : line; };
const entry = (id) => h("a", { href: `#entries?${new URLSearchParams({ id })}` }, printable(id));

function fact(value, said) {
  return h("div", { class: "fact" }, h("b", {}, value), h("span", { class: "note" }, said));
}

function part(title, told, inside) {
  return h("section", { class: "part" }, h("h2", {}, title), told ? h("p", { class: "note" }, told) : null, inside);
}

/* Questions of each day, and of these the ones with a confident answer. */
function curve(days) {
  const SVG = "http://www.w3.org/2000/svg", svg = document.createElementNS(SVG, "svg");
  const most = Math.max(1, ...days.map((day) => day.asked)), wide = 100 / Math.max(14, days.length);
  svg.setAttribute("class", "curve");
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", days.map((day) => `${day.day}: ${day.asked} asked, ${day.confident} answered`).join("; "));
  days.forEach((day, n) => {
    for (const name of ["asked", "confident"]) {
      const bar = document.createElementNS(SVG, "rect"), high = (36 * day[name]) / most;
      for (const [key, value] of Object.entries({ class: name, x: n * wide + 0.3, y: 38 - high, width: wide - 0.6, height: high })) bar.setAttribute(key, value);
      svg.append(bar);
    }
  });
  return svg;
}

function daily(days) {
  if (!days.length) return h("p", {}, "No questions or judgements yet, or questions are not logged (start the service with --log-questions FILE).");
  const cells = (day) => [day.day, day.asked, day.asked ? percent(day.confident / day.asked) : "–", day.up, day.down, day.up + day.down ? percent(day.up / (day.up + day.down)) : "–"];
  const head = ["Day", "Asked", "Confident", "Right", "Wrong", "Of judged"];
  const legend = h("p", { class: "note legend" }, h("i", { class: "asked" }), "asked", h("i", { class: "confident" }), "with a confident answer");
  return h("div", {}, days.some((day) => day.asked) ? [curve(days), legend] : null, h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Day by day" },
    h("table", {}, h("thead", {}, h("tr", {}, head.map((one, n) => h("th", { scope: "col", class: n ? "number" : "" }, one)))),
      h("tbody", {}, days.slice(-14).reverse().map((day) => h("tr", {}, cells(day).map((one, n) => h("td", { class: n ? "number" : "" }, String(one)))))))));
}

function refits(rows) {
  return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Refits" }, h("table", {}, h("thead", {}, h("tr", {}, ["When", "Who", "Before", "After", "Outcome"].map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, rows.slice(-10).reverse().map((row) => h("tr", {}, [stamp(row.time), row.who, percent(row.before), percent(row.after), row.kept ? "used" : row.aside ? "measured" : "not used"].map((one) => h("td", {}, one)))))));
}

const list = (items) => h("ul", { class: "found" }, items.map((one) => h("li", {}, one)));

export async function qualityView(desk) {
  const found = await desk.call("/quality");
  const [eighty, , most] = found.promises;
  const made = [
    h("div", { class: "facts" },
      fact(found.left_out ? percent(found.left_out.precision) : "–", found.left_out ? `of ${found.left_out.questions} held-out questions find their answer first` : "no question could be held out to measure this"),
      fact(percent(eighty.coverage), "of questions get an answer if 80% of the shown answers must be right"),
      fact(percent(most.coverage), most.coverage === null ? "95% right answers cannot be guaranteed" : "of questions get an answer if 95% of the shown answers must be right"),
      fact(String(found.changed_since_fit), "entries changed since the last fit")),
    part("Day by day", "", daily(found.days)),
    found.refits.length ? part("Refits", "Held-out questions that find their answer first, with the old and the new weights.", refits(found.refits)) : null,
    found.confused.length ? part("Confused answers", "At the last refit, held-out questions of the first answer found the second.", list(found.confused.map((one) => [entry(one.right.id), ` (${short(one.right.text)}) → `, entry(one.found.id), ` (${short(one.found.text)})`, h("span", { class: "note" }, ` ${one.count}×`)]))) : null,
    found.finds.length ? part("Contradictions and repetitions", "", list(found.finds.map((one) => [h("span", { class: "badge" }, KINDS[one.kind] || one.kind), ` ${printable(one.text).slice(0, 240)} `, ...one.ids.slice(0, 3).flatMap((id) => [entry(id), " "])]))) : null,
    found.never_found && found.never_found.count ? part("Never found", `${found.never_found.count} entries were the first answer to none of the ${found.questions_logged} logged questions.`, list(found.never_found.entries.map((one) => [entry(one.id), ` ${short(one.text)}`]))) : null,
  ];
  return h("div", {}, made);
}
