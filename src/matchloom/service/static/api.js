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

export async function ask(path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  const request = { headers, signal };
  if (body !== undefined) {
    request.method = "POST";
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
