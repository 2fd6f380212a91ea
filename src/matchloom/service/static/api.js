/* The API, asked from the page: JSON in, JSON out, or a Problem that a person can read. */
export class Problem extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const KEY = "matchloom-key";
export const useKey = (key) => sessionStorage.setItem(KEY, key);

function headersOf() {
  const key = sessionStorage.getItem(KEY);
  return key ? { authorization: `Bearer ${key}` } : {};
}

export async function ask(path, body, signal, method) {
  const headers = headersOf();
  const request = { headers, signal, ...(method ? { method } : {}) };
  if (body !== undefined) {
    request.method = method || "POST";
    headers["content-type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  let response, found;
  try {
    response = await fetch(path, request);
    found = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The service does not answer. Is it still running?");
  }
  if (response.ok) return found;
  const told = found.error || { code: "failed", message: response.statusText };
  throw new Problem(response.status, told.code, told.message);
}

/* A file of the service, saved as this name. */
export async function download(path, name) {
  const response = await fetch(path, { headers: headersOf() });
  if (!response.ok) {
    const told = (await response.json()).error;
    throw new Problem(response.status, told.code, told.message);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
