/* Entries as a table: searched, sorted, filtered; added, edited, removed; from files and to files. */
import { h, printable } from "./dom.js";
import { plain } from "./rich.js";
import { download } from "./api.js";

const PAGE = 50;
const SORTS = { text: "Answer", questions: "Questions" };
const state = { search: "", sort: "id", offset: 0, where: {} };

export function editor(desk, entry, done) {
  const fields = {
    text: h("textarea", { rows: "5", dir: "auto", required: true }),
    questions: h("textarea", { rows: "4", dir: "auto" }),
    columns: h("textarea", { rows: "2", dir: "auto", spellcheck: "false" }),
    id: h("input", { type: "text", autocomplete: "off", maxlength: "200" }),
  };
  fields.text.value = entry.text || "";
  fields.questions.value = (entry.questions || []).join("\n");
  fields.columns.value = Object.entries(entry.columns || {}).map(([name, value]) => `${name}: ${value}`).join("\n");
  const isNew = !entry.id;
  const form = h("form", { class: "editor", "aria-label": isNew ? "New entry" : `Entry ${entry.id}` },
    h("label", {}, "Answer (plain text, Markdown or simple HTML)", fields.text),
    h("label", {}, "Questions that it answers, one per line", fields.questions),
    h("details", {}, h("summary", { class: "note" }, "Id and columns"),
      isNew ? h("label", {}, "Id (made from the answer if left empty)", fields.id) : h("p", { class: "note" }, `Id: ${entry.id}`),
      h("label", {}, "Columns, one per line, such as category: billing", fields.columns)),
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "go" }, "Save"), h("button", { type: "button", class: "plain", on: { click: () => done(null) } }, "Cancel")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const lines = (field) => field.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const columns = Object.fromEntries(lines(fields.columns).map((line) => line.split(/:\s*(.*)/s)).filter((pair) => pair[0] && pair[1]).map(([name, value]) => [name.trim(), value]));
    const made = { id: entry.id || fields.id.value.trim(), text: fields.text.value.trim(), questions: lines(fields.questions), columns, version: entry.version || "" };
    const saved = await desk.attempt(() => desk.call("/entries", { entries: [made], new: isNew }, "PUT"));
    if (saved) done(saved.ids[0]);
  });
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") done(null); });
  setTimeout(() => fields.text.focus());
  return form;
}

function files(desk, redraw) {
  const chosen = h("input", { type: "file", accept: ".csv,.jsonl", class: "sr", tabindex: "-1", "aria-label": "A file to import" });
  chosen.addEventListener("change", async () => {
    const file = chosen.files[0];
    if (!file) return;
    const asked = { content: await file.text(), format: file.name.endsWith(".jsonl") ? "jsonl" : "csv" };
    chosen.value = "";
    const plan = await desk.attempt(() => desk.call("/import", { ...asked, dry_run: true }));
    if (!plan) return;
    const said = `${plan.new} new, ${plan.changed} changed, ${plan.same} unchanged.`;
    const noted = plan.notes.map((one) => printable(one[0].toUpperCase() + one.slice(1) + "."));
    if (!plan.new && !plan.changed) { desk.tell([`${file.name}: nothing new (${said})`, ...noted].join(" ")); return; }
    const dialog = h("dialog", { "aria-label": "Import" }, h("p", {}, `${file.name}: ${said}`), noted.map((one) => h("p", { class: "note" }, one)),
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "go", on: { click: async () => {
          dialog.remove();
          const done = await desk.attempt(() => desk.call("/import", asked));
          if (done) { desk.tell(`Imported: ${said}`, { undo: true }); redraw(); }
        } } }, "Import"),
        h("button", { type: "button", class: "plain", on: { click: () => dialog.remove() } }, "Cancel")));
    document.body.append(dialog);
    dialog.showModal();
  });
  const get = (form) => h("button", { type: "button", class: "plain", on: { click: () => desk.attempt(() => download(`/v1/collections/${encodeURIComponent(desk.name)}/export?format=${form}`, `${desk.name}.${form}`)) } }, `Export ${form.toUpperCase()}`);
  return [chosen, h("button", { type: "button", class: "plain", disabled: !desk.writable, on: { click: () => chosen.click() } }, "Import"), get("csv"), get("jsonl")];
}

export async function entriesView(desk, query) {
  if (query.has("id")) Object.assign(state, { search: query.get("id"), offset: 0, where: {} });
  const view = h("div", {}), place = h("div", {});
  const search = h("input", { type: "search", "aria-label": "Search entries", placeholder: "Search", dir: "auto", value: state.search });
  const table = h("div", {}), filters = h("div", { class: "filters" });
  let typing = null;
  search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { state.search = search.value; state.offset = 0; draw(); }, 150); });

  const done = (what) => async (id) => {
    place.replaceChildren();
    if (id !== null) {
      desk.tell(what, { undo: true });
      await draw();
    }
    desk.settle();
  };
  const edit = (entry) => { place.replaceChildren(editor(desk, entry, done("Saved."))); place.scrollIntoView({ block: "nearest" }); };
  const remove = async (entry) => {
    if (await desk.attempt(() => desk.call("/remove", { ids: [entry.id] }))) { desk.tell("Removed.", { undo: true }); await draw(); desk.settle(); }
  };

  function row(entry) {
    const title = plain(entry.text) || entry.id;
    const listed = (ones) => h("ul", { class: "clean" }, ones.map((one) => h("li", { dir: "auto" }, printable(one))));
    const more = entry.questions.length > 3 ? h("details", {}, h("summary", { class: "note" }, `and ${entry.questions.length - 3} more`), listed(entry.questions.slice(3))) : null;
    return h("tr", {},
      h("td", {}, h("div", { class: "clamp", dir: "auto" }, title), h("div", { class: "of-entry" }, printable(entry.id), ...Object.entries(entry.columns).map(([name, value]) => ` · ${printable(name)}: ${printable(value).slice(0, 60)}`))),
      h("td", { class: "own-questions" }, entry.questions.length ? [listed(entry.questions.slice(0, 3)), more] : h("span", { class: "note" }, "none yet")),
      h("td", { class: "act" }, h("button", { type: "button", class: "quiet", disabled: !desk.writable, "aria-label": `Edit ${entry.id}`, on: { click: () => edit(entry) } }, "Edit"),
        h("button", { type: "button", class: "quiet danger", disabled: !desk.writable, "aria-label": `Remove ${entry.id}`, on: { click: () => remove(entry) } }, "Remove")));
  }

  function header(name, label) {
    const by = state.sort.replace("-", "") === name, falls = state.sort === `-${name}`;
    const button = h("button", { type: "button", on: { click: () => { state.sort = by && !falls ? `-${name}` : name; state.offset = 0; draw(); } } }, `${label}${by ? (falls ? " ▾" : " ▴") : ""}`);
    return h("th", { scope: "col", class: name === "questions" ? "own-questions" : "", "aria-sort": by ? (falls ? "descending" : "ascending") : "none" }, button);
  }

  async function draw() {
    const asked = new URLSearchParams({ search: state.search, sort: state.sort, offset: state.offset, limit: PAGE });
    if (Object.keys(state.where).length) asked.set("where", JSON.stringify(state.where));
    const found = await desk.attempt(() => desk.call(`/entries?${asked}`));
    if (!found) return;
    filters.replaceChildren(...Object.entries(found.filters).slice(0, 4).map(([name, values]) => {
      const select = h("select", {}, h("option", { value: "" }, "all"), values.map((value) => h("option", { value }, printable(value))));
      select.value = state.where[name] || "";
      select.addEventListener("change", () => { if (select.value) state.where[name] = select.value; else delete state.where[name]; state.offset = 0; draw(); });
      return h("label", {}, h("span", {}, printable(name)), select);
    }));
    const last = Math.min(state.offset + PAGE, found.total);
    const step = (by) => h("button", { type: "button", class: "plain", disabled: by < 0 ? !state.offset : last >= found.total, on: { click: () => { state.offset = Math.max(0, state.offset + by); draw(); } } }, by < 0 ? "Previous" : "Next");
    table.replaceChildren(
      h("table", { class: "table" }, h("caption", { class: "sr" }, "Entries"), h("thead", {}, h("tr", {}, header("text", SORTS.text), header("questions", SORTS.questions), h("th", { scope: "col", class: "act" }, h("span", { class: "sr" }, "Actions")))), h("tbody", {}, found.entries.map(row))),
      h("div", { class: "pager" }, found.total > PAGE ? [step(-PAGE), step(PAGE)] : [], h("span", {}, found.total ? `${state.offset + 1}–${last} of ${found.total}${found.total < found.all ? ` (${found.all} in all)` : ""}` : "No entry matches.")));
  }

  view.append(h("div", { class: "tools" }, search, filters, h("span", { class: "space" }), h("button", { type: "button", class: "go", disabled: !desk.writable, on: { click: () => edit({}) } }, "New entry"), ...files(desk, draw)), place, table);
  await draw();
  return view;
}
