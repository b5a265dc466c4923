// The second view: one sentence walks through the machine.
import * as api from "./api.js";
import { byId, element } from "./dom.js";
import * as languages from "./languages.js";
import { keepInSight, look, share, regroup, take } from "./look-data.js";
import * as heads from "./look-heads.js";
import * as layer from "./look-layer.js";
import * as map from "./look-map.js";
import * as query from "./look-query.js";
import * as steps from "./look-steps.js";
import * as walk from "./look-walk.js";
import { t } from "./speech.js";
import { writeAddress } from "./store.js";
import * as tour from "./tour.js";
import { looked } from "./translate.js";
import * as writing from "./write.js";

const STATIONS = ["Tokens", "Embeddings", "Positions", "Layers", "States", "Heads", "Query", "Mixing", "Residual", "Norm", "FeedForward", "Steps", "Beam"];
const LECTURE = "투빅아, 나는 너를 많이 사랑해."; // the sentence of the lecture notes
const state = { models: [], model: null, code: "", source: "", target: "", asking: null, numbers: null, beam: 4, why: "" };
let watcher = null;
let headed = false;

export function build() {
  byId("look-form").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  byId("tour-start").addEventListener("click", () => tour.start(STATIONS));
  byId("tour-start").disabled = true;
  byId("look-from").addEventListener("change", () => { chooseWay(byId("look-from").value, state.target); ask(); });
  byId("look-model").addEventListener("change", () => { chooseModel(byId("look-model").value || null); ask(); });
  byId("look-to").addEventListener("change", () => { chooseWay(state.source, byId("look-to").value); ask(); });
  window.addEventListener("resize", () => { if (look() && !byId("view-look").hidden) heads.draw(); });
}

export async function ready(known) {
  const [model] = known.models, several = [...(known.language_models ?? []), ...(known.encoders ?? []).filter((one) => one.attention)];
  state.models = [...(model ? [null] : []), ...several.map((one) => one.name)];
  if (model) chooseWay(model.source, model.target);
  chooseModel(model ? null : state.models[0] ?? null);
  byId("look-status").textContent = t("lookEmpty");
  try {
    share(await api.ramps(), steps.goToStep);
  } catch (error) {
    byId("look-status").textContent = error.message;
    return;
  }
  readTheme();
  enterSoon?.();
}

let enterSoon = null;
export function enter(values) {
  if (!globalThis.settings) return void (enterSoon = () => { enterSoon = null; if (!byId("view-look").hidden) enter(values); });
  if (values.text === undefined && !byId("look-text").value) values = [looked(), writing.looked()].find((one) => one.text) ?? values;
  if (values.text !== undefined || values.model) chooseModel(values.model || (state.models.includes(null) ? null : state.models[0]), values.code);
  if (values.from || values.to) chooseWay(values.from, values.to);
  if (values.beam) byId("look-beam").value = values.beam;
  const lecture = !state.model && state.source === "ko" && state.target === "en" ? LECTURE : "";
  const text = values.text ?? (byId("look-text").value || lecture);
  const same = look() && byId("look-text").value === text && values.text === undefined;
  byId("look-text").value = text;
  if (text && !same) ask();
  else if (look()) heads.draw();
}

export function leave() {
  steps.stop();
  tour.end();
}

export function relight() {
  if (!globalThis.settings) return;
  readTheme();
  if (!look()) return;
  heads.draw();
  walk.draw();
  query.draw();
  layer.draw();
  if (look().states) drawStates();
}

export function respeak() {
  fillModels();
  if (!look()) return void (byId("look-status").textContent = t("lookEmpty"));
  tour.end();
  layOut();
}

// A language model by its name; none stands for the translators.
function chooseModel(name, code = "") {
  state.model = state.models.includes(name) ? name : state.models[0] ?? null;
  state.code = code;
  fillModels();
}

function fillModels() {
  byId("look-model").replaceChildren(...state.models.map((name) => element("option", { value: name ?? "", selected: name === state.model }, name ?? t("translators"))));
  byId("look-model-label").hidden = state.models.length < 2;
  byId("look-beam-label").hidden = state.model !== null;
  if (state.model === null) fillWays();
  else byId("look-languages").hidden = true;
}

// One model is looked into: of a way through another language, the first. A target that cannot be reached gives way.
function chooseWay(source, target) {
  source = languages.sources(true).includes(source) ? source : languages.sources(true).find((own) => languages.way(own, target)) ?? state.source;
  const via = languages.way(source, target)?.through, all = languages.targets(source, true);
  state.source = source;
  state.target = [via ?? target, state.target].find((code) => all.includes(code)) ?? languages.likely(all);
  fillWays();
}

function fillWays() {
  const from = languages.sources(true), to = languages.targets(state.source, true);
  languages.fill(byId("look-from"), from, state.source);
  languages.fill(byId("look-to"), to, state.target);
  byId("look-languages").hidden = from.length < 2 && to.length < 2;
}

const pair = () => ({ source: state.source, target: state.target });

async function ask() {
  const text = byId("look-text").value.trim();
  if (!text || (!state.target && !state.model)) return;
  state.asking?.abort();
  const mine = (state.asking = new AbortController()), beam = Number(byId("look-beam").value) || 4;
  byId("look-status").textContent = t("looking");
  byId("look-body").classList.add("stale");
  if (state.model) writeAddress("look", { model: state.model, code: state.code, text });
  else writeAddress("look", { from: pair().source, to: pair().target, text, beam: beam === 4 ? "" : beam });
  try {
    const found = state.model ? await lookText(text, mine.signal) : await api.lookInside({ text, ...pair(), beam }, mine.signal);
    state.beam = beam;
    state.numbers = null;
    state.why = "";
    if (!state.model) try {
      state.numbers = await api.numbers(asked(found), mine.signal);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      state.why = error.message;
    }
    if (state.asking !== mine) return;
    take(found);
    byId("look-status").textContent = found.model;
    layOut();
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("look-status").textContent = error.message;
    if (!look()) byId("look-body").hidden = true;
  }
  byId("look-body").classList.remove("stale");
}

// A text in a language model is looked at like what a decoder reads, one that has no source; in an encoder, like a source without a target.
async function lookText(text, signal) {
  const { inputs, ids, attention, roles, scores, predictions, model } = await api.lookText({ text, model: state.model, ...(state.code ? { code: state.code } : {}) }, signal);
  const rest = { ids, cross: [], scores, search: [], alignment: [], model };
  if (!predictions.length) return { source_text: text, target_text: "", source: inputs, target: [], inputs: [], encoder: attention, decoder: [], roles: { encoder: roles }, predictions, ...rest };
  return {
    source_text: "", target_text: text, source: [], target: inputs.slice(1), inputs, encoder: [], decoder: attention, roles: { decoder: roles }, predictions: predictions.slice(0, -1), ...rest,
  };
}

// What every question about the numbers inside says of the sentence.
const asked = (found) => ({ text: found.source_text, beam: state.beam, ...pair() });
export const question = (more) => ({ ...asked(look()), ...more });

function layOut() {
  readTheme();
  regroup();
  const body = byId("look-body");
  body.hidden = false;
  byId("tour-start").disabled = false;
  const cards = { ...walk.cards(state.numbers, state.why), ...heads.cards(), ...query.cards(state.numbers, question, state.why), ...layer.cards(state.numbers, question), ...steps.cards(state.numbers, question) };
  const there = STATIONS.filter((name) => cards[name]);
  const nav = element("nav", { class: "stations", "aria-label": t("stations") }, element("ol", {}, ...there.map((name, number) => element("li", {},
    element("a", { href: `#station-${name}`, "data-to": name, onclick: (event) => { event.preventDefault(); goTo(name); } },
      element("span", { class: "station-number", "aria-hidden": "true" }, String(number + 1)), t(`s${name}`))))));
  const sections = there.map((name) => element("section", { class: "card station", id: `station-${name}`, "aria-labelledby": `title-${name}`, tabindex: -1 },
    element("h2", { id: `title-${name}` }, t(`s${name}`)), ...cards[name]));
  const walked = element("div", { class: "walk" }, ...sections, footer());
  body.replaceChildren(nav, ...(state.numbers?.encoder.layers ? [map.build(there, goTo)] : []), walked);
  heads.begin((row) => { query.choose(row); goTo("Query"); }, () => query.follow());
  walk.draw();
  query.begin();
  layer.begin();
  steps.begin();
  watch(there);
}

function footer() {
  return element("p", { class: "note" }, element("strong", {}, t("notExplanation")), " ", t("notExplanationText"));
}

export function goTo(name) {
  const station = byId(`station-${name}`);
  if (!station) return;
  mark(name);
  headed = true; // what is passed on the way is not marked, nor what fills in later and moves the page
  const leave = () => { headed = false; };
  for (const moved of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(moved, leave, { once: true, passive: true });
  station.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  station.focus({ preventScroll: true });
}

function mark(name) {
  map.light(name);
  document.querySelectorAll(".stations a").forEach((link) => {
    if (link.dataset.to !== name) return link.removeAttribute("aria-current");
    link.setAttribute("aria-current", "step");
    keepInSight(document.querySelector(".stations"), link);
  });
}

// The station in sight is marked in the row of stations and on the map.
function watch(there) {
  watcher?.disconnect();
  watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (entry.isIntersecting && !headed) mark(entry.target.id.replace("station-", ""));
  }), { rootMargin: "-20% 0px -70% 0px" });
  there.forEach((name) => watcher.observe(byId(`station-${name}`)));
  mark(there[0]);
}
