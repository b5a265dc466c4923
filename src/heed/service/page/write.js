// Writing with a language model: it goes on as one types, each token with its probability.
import * as columns from "./write-columns.js";
import { byId, element, later } from "./dom.js";
import * as popover from "./popover.js";
import { number, t } from "./speech.js";
import { addressOf, remember, remembered, writeAddress } from "./store.js";

const LONGEST_LINK = 4000;
const DEFAULTS = { temperature: 0.7, top_p: 0.95, length: 40 };
const state = { known: null, model: null, text: "", codes: [], seed: 1 };

export function build() {
  columns.build({ request, take });
  byId("write-text").addEventListener("input", typed);
  byId("write-text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    columns.takeFirst();
  });
  byId("write-model").addEventListener("change", () => { choose(byId("write-model").value, []); ask(); });
  byId("write-again").addEventListener("click", () => { state.seed += 1; ask(); });
  byId("write-look").addEventListener("click", () => (location.hash = addressOf("look", looked())));
  byId("write-clear").addEventListener("click", () => { use(""); byId("write-text").focus(); });
  byId("write-one-line").addEventListener("change", () => { remember("write.one-line", byId("write-one-line").checked); ask(); });
  for (const name of Object.keys(DEFAULTS)) byId(`write-${name}`).addEventListener("input", () => { sayNumbers(); remember(`write.${name}`, value(name)); soon(); });
}

const value = (name) => Number(byId(`write-${name}`).value);

function sayNumbers() {
  for (const name of Object.keys(DEFAULTS)) byId(`write-${name}-said`).textContent = String(value(name));
}

export function ready(known) {
  state.known = known.language_models ?? [];
  for (const [name, usual] of Object.entries(DEFAULTS)) byId(`write-${name}`).value = remembered(`write.${name}`, usual);
  byId("write-one-line").checked = remembered("write.one-line", false);
  sayNumbers();
  if (!state.known.length) return;
  byId("write-text").maxLength = known.limits.characters;
  choose(state.known[0].name, []);
}

export function enter(values) {
  if (!state.known?.length) return;
  if (values.model) choose(values.model, values.codes?.split(",") ?? []);
  if (values.text !== undefined) use(values.text);
  else if (values.model) ask();
  else writeBack();
}

export const leave = () => popover.close(false);

export function respeak() {
  if (!state.known?.length) return;
  popover.close(false);
  describe();
  fillCodes();
  columns.respeak();
}

function choose(name, codes) {
  state.model = state.known.find((one) => one.name === name) ?? state.known[0];
  const own = state.model.codes, wanted = codes.filter((code) => own.includes(code));
  state.codes = wanted.length ? wanted : own.slice(0, 2);
  byId("write-model").replaceChildren(...state.known.map((one) => element("option", { value: one.name, selected: one === state.model }, one.name)));
  byId("write-model-label").hidden = state.known.length < 2;
  describe();
  fillCodes();
  columns.lay(state.codes);
}

function describe() {
  const { name, kind, layers, heads, weights } = state.model;
  byId("write-about").textContent = t(heads ? "writeAbout" : "writeAboutPlain", name, kind, number(weights / 1e6, 1), layers, heads);
}

// The codes of a CTRL: each that is chosen has a column.
function fillCodes() {
  byId("codes-row").hidden = !state.model.codes.length;
  byId("codes").replaceChildren(...state.model.codes.map((code) => element("button", {
    type: "button", class: "quiet", "aria-pressed": String(state.codes.includes(code)), onclick: () => toggle(code),
  }, code)));
}

function toggle(code) {
  const chosen = state.codes.includes(code) ? state.codes.filter((own) => own !== code) : [...state.codes, code];
  if (!chosen.length) return;
  state.codes = state.model.codes.filter((own) => chosen.includes(own));
  const at = [...byId("codes").children].findIndex((node) => node.textContent === code);
  fillCodes();
  byId("codes").children[at].focus();
  columns.lay(state.codes);
  ask();
}

function use(text) {
  byId("write-text").value = text;
  state.text = text;
  follow();
  ask();
}

function typed() {
  state.text = byId("write-text").value;
  follow();
  soon();
}

// What follows each key at once: what was being written continues a text that is gone.
function follow() {
  popover.close(false);
  columns.giveUp();
  byId("write-clear").hidden = !state.text;
  byId("write-look").disabled = !state.text.trim();
}

const soon = later(300, () => ask());

function ask() {
  soon.cancel();
  if (!state.model) return;
  popover.close(false);
  if (!byId("view-write").hidden) writeBack();
  byId("write-look").disabled = !state.text.trim();
  byId("write-again").disabled = !state.text.trim();
  columns.ask(state.text);
}

function request(code) {
  const body = { model: state.model.name, max_tokens: value("length"), temperature: value("temperature"), top_p: value("top_p"), seed: state.seed };
  return { ...body, one_line: byId("write-one-line").checked, logprobs: 8, return_token_ids: true, ...(code ? { code } : {}) };
}

// A continuation becomes a part of the text, and the text goes on from there.
function take(text) {
  use(state.text + text);
  byId("write-text").focus();
}

function writeBack() {
  const several = state.known.length > 1 || state.model.codes.length;
  const text = state.text.length <= LONGEST_LINK ? state.text : "";
  writeAddress("write", { model: several ? state.model.name : "", codes: state.codes.join(","), text });
}

// What can be looked into.
export function looked() {
  if (!state.model) return {};
  return { model: state.model.name, code: state.codes[0] ?? "", text: state.text };
}
