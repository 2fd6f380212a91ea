// The API as the service describes it: every route, its fields, an example that can be sent.

const make = (name, given = {}, ...inside) => {
  const made = Object.assign(document.createElement(name), given);
  made.append(...inside.filter((one) => one !== null));
  return made;
};

const schemaOf = (description, schema) =>
  schema && schema.$ref ? schemaOf(description, schema.$ref.slice(2).split("/").reduce((one, key) => one[key], description)) : schema || {};

const typeOf = (schema) => {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items || {})}`;
  return schema.type || "anything";
};

const fields = (description, schema) => {
  const whole = schemaOf(description, schema);
  if (whole.anyOf) return make("div", {}, ...whole.anyOf.map((one) => fields(description, one)));
  if (whole.type === "array") return make("div", {}, make("p", { textContent: "a list of:" }), fields(description, whole.items));
  if (!whole.properties) return make("p", { textContent: typeOf(whole) });
  const rows = Object.entries(whole.properties).map(([name, one]) =>
    make("tr", {},
      make("td", {}, make("code", { textContent: name })),
      make("td", { textContent: typeOf(one) + ((whole.required || []).includes(name) ? "" : ", optional") }),
      make("td", { textContent: one.description || "" })));
  return make("div", {}, make("p", { textContent: whole.description || "" }), make("table", {}, make("tbody", {}, ...rows)));
};

const exampleOf = (description, schema) => {
  const whole = schemaOf(description, schema);
  if (whole.anyOf) return exampleOf(description, whole.anyOf[0]);
  const shown = {};
  for (const [name, one] of Object.entries(whole.properties || {})) {
    if (one.examples && (whole.required || []).includes(name)) shown[name] = one.examples[0];
  }
  return shown;
};

const sender = (path, method, body) => {
  const address = make("input", { value: path, size: 40, ariaLabel: "address" });
  const text = body === null ? null : make("textarea", { rows: 5, cols: 80, value: JSON.stringify(body, null, 1), ariaLabel: "body" });
  const answer = make("pre", { hidden: true });
  const send = make("button", { type: "button", textContent: "Send" });
  send.addEventListener("click", async () => {
    const headers = text ? { "content-type": "application/json" } : {};
    const key = document.getElementById("key").value;
    if (key) headers.authorization = `Bearer ${key}`;
    answer.hidden = false;
    try {
      const found = await fetch(address.value, { method: method.toUpperCase(), headers, body: text ? text.value : undefined });
      const told = await found.text();
      let shown = told;
      try { shown = JSON.stringify(JSON.parse(told), null, 1); } catch { /* no JSON: as it is */ }
      answer.textContent = `${found.status}\n${shown.slice(0, 20000)}`;
    } catch (error) {
      answer.textContent = `not sent: ${error.message}`;
    }
  });
  return make("div", {}, make("p", {}, address, " ", send), text, answer);
};

const route = (description, path, method, told) => {
  const taken = told.requestBody && told.requestBody.content["application/json"];
  const given = told.responses && (told.responses["200"] || told.responses["202"]);
  const json = given && given.content && given.content["application/json"];
  const body = taken ? exampleOf(description, taken.schema) : null;
  return make("details", { className: "route" },
    make("summary", {}, make("code", { textContent: `${method.toUpperCase()} ${path}` }), ` ${told.description || told.summary || ""}`),
    taken ? make("h3", { textContent: "It takes" }) : null,
    taken ? fields(description, taken.schema) : null,
    json ? make("h3", { textContent: "It gives" }) : null,
    json ? fields(description, json.schema) : null,
    make("h3", { textContent: "Try it" }),
    sender(path, method, body));
};

const show = async () => {
  const found = await fetch("/openapi.json");
  if (!found.ok) throw new Error(`the description cannot be read: ${found.status}`);
  const description = await found.json();
  document.getElementById("about").textContent = `${description.info.description} Version ${description.info.version}.`;
  const groups = new Map();
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, told] of Object.entries(methods)) {
      const group = (told.tags || ["other"])[0];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(route(description, path, method, told));
    }
  }
  const page = document.getElementById("routes");
  for (const [name, routes] of groups) page.append(make("h2", { textContent: name }), ...routes);
};

show().catch((error) => {
  const problem = document.getElementById("problem");
  problem.hidden = false;
  problem.textContent = error.message;
});
