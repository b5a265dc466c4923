// The service, as docs/reference/serving.md tells it. Addresses are relative: the page may live under any path.
import { remember, remembered } from "./store.js";
import { t } from "./speech.js";

export class Refused extends Error {
  constructor(message, status, data = null) {
    super(message);
    this.status = status;
    this.data = data; // what stands beside the message
  }
}

export const apiKey = () => remembered("key", "");
export const useKey = (key) => remember("key", key || null);

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(t("offline"), 0);
  }
  let data = null;
  try {
    data = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (answer.status === 403) window.dispatchEvent(new Event("heed-key"));
  if (!answer.ok || data === null) throw new Refused(messageOf(data), answer.status, data);
  return data;
}

// An error is a sentence, or on OpenAI's paths an object with one.
const messageOf = (data) => data?.error?.message ?? data?.error ?? t("offline");

// The events of a stream as they come.
async function* events(path, body, signal) {
  const key = apiKey();
  const headers = { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { method: "POST", headers, body: JSON.stringify({ ...body, stream: true }), signal, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(t("offline"), 0);
  }
  if (answer.status === 403) window.dispatchEvent(new Event("heed-key"));
  if (!answer.ok) throw new Refused(messageOf(await answer.json().catch(() => null)), answer.status);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Refused(t("offline"), 0); // it ends with a line that says so
    const whole = (rest + value).split("\n\n");
    rest = whole.pop();
    for (const event of whole) {
      const text = event.replace(/^data: /, "");
      if (text === "[DONE]") return;
      const data = JSON.parse(text);
      if (data.error) throw new Refused(messageOf(data), 0);
      yield data;
    }
  }
}

// The parts of a completion.
export async function* completion(body, signal) {
  for await (const data of events("v1/completions", body, signal)) yield data.choices[0];
}

// First what is drawn, then the values of some turns each.
export const drawing = (body, signal) => events("v1/images/draw", body, signal);

function post(path, body, signal) {
  const key = apiKey();
  const whole = key ? { ...body, api_key: key } : body;
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(whole), signal });
}

function get(path, signal) {
  const key = apiKey();
  return ask(key ? `${path}${path.includes("?") ? "&" : "?"}api_key=${encodeURIComponent(key)}` : path, { signal });
}

export const models = () => get("v1/models");
export const ramps = () => ask("assets/ramps.json");
export const translate = (body, signal) => post("v1/translate", body, signal);
export const alternatives = (body, signal) => post("v1/alternatives", body, signal);
export const lookInside = (body, signal) => post("v1/look", body, signal);
export const lookText = (body, signal) => post("v1/look/text", body, signal);
export const numbers = (body, signal) => post("v1/look/numbers", body, signal);
export const fill = (body, signal) => post("v1/fill", body, signal);
export const tag = (body, signal) => post("v1/tag", body, signal);
export const answer = (body, signal) => post("v1/answer", body, signal);
export const classify = (body, signal) => post("v1/classify", body, signal);
export const similarity = (body, signal) => post("v1/similarity", body, signal);
export const recommend = (body, signal) => post("v1/recommend", body, signal);
export const items = (model, q, signal) => get(`v1/items?${new URLSearchParams({ model, q })}`, signal);
export const runs = (signal) => get("v1/runs", signal);
export const run = (name, after, signal) => get(`v1/runs/${encodeURIComponent(name)}?after=${after}`, signal);
export const fileProgress = (job, signal) => ask(`v1/progress/${job}`, { signal });
export const samples = (name, signal) => get(`v1/runs/${encodeURIComponent(name)}/samples`, signal);

export const lookImage = (body, signal) => post("v1/images/look", body, signal);

export async function translateFile(file, values, signal) {
  const form = new FormData();
  form.append("file", file);
  for (const [name, value] of Object.entries(values)) form.append(name, value);
  if (apiKey()) form.append("api_key", apiKey());
  return ask("translate_file", { method: "POST", body: form, signal });
}

export async function transcribe(sound, values, signal) {
  const form = new FormData();
  form.append("file", sound, "recording.wav");
  for (const [name, value] of Object.entries(values)) form.append(name, value);
  if (apiKey()) form.append("api_key", apiKey());
  return ask("v1/audio/transcriptions", { method: "POST", body: form, signal });
}

// A sound, not JSON: an error is JSON still.
export async function speech(body, signal) {
  const key = apiKey();
  const headers = { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  let answer;
  try {
    answer = await fetch("v1/audio/speech", { method: "POST", headers, body: JSON.stringify(body), signal, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(t("offline"), 0);
  }
  if (answer.status === 403) window.dispatchEvent(new Event("heed-key"));
  if (!answer.ok) throw new Refused(messageOf(await answer.json().catch(() => null)), answer.status);
  return answer.blob();
}
