// What one may ask of a model: examples of its corpus while there is no text, what it was trained on, and a warning
// where it is unsure of most words.
import * as api from "./api.js";
import { byId, element } from "./dom.js";
import { UNSURE } from "./output.js";
import { number, t } from "./speech.js";

const SHOWN = 6, MOST = 0.5; // examples; the share of unsure words above which a text is of another kind
let known = { models: [] };
const ofRuns = new Map(); // the examples of a run, by its name, as a promise

export function ready(service) {
  known = service;
}

const modelsFor = (from, to) => known.models.filter((one) => one.directions === 1 && one.target === to && (from === "auto" || one.source === from));

// A sentence on the data of a model, or "" if it was not recorded.
function trainedOn({ trained }) {
  if (!trained?.pairs) return "";
  return t(trained.corpus === "phrasebook" ? "trainedOnPhrasebook" : "trainedOnPairs", number(trained.pairs));
}

// Texts of a run's validation that its model translated as the reference does: the service shows them with its runs.
function learned(name) {
  if (!ofRuns.has(name)) ofRuns.set(name, api.samples(name).then(right, () => []));
  return ofRuns.get(name);
}

const right = ({ samples }) => (samples.at(-1)?.of ?? []).filter((one) => one.translation === one.reference).map((one) => one.source);

async function textsOf(model) {
  if (model.examples?.length) return model.examples;
  return known.runs && model.trained?.pairs ? learned(model.name) : [];
}

// The empty state: a line for each model of the pair, and its examples as buttons.
export async function offer(from, to, use) {
  const box = byId("examples"), models = modelsFor(from, to);
  const asked = (box.dataset.of = `${from} ${to}`);
  const found = await Promise.all(models.map(async (model) => [model, (await textsOf(model)).slice(0, SHOWN)]));
  if (box.dataset.of !== asked) return; // another pair was chosen meanwhile
  box.replaceChildren(...found.flatMap(([model, texts]) => [
    texts.length && element("p", { class: "muted small" }, t("tryThese")),
    texts.length && element("div", { class: "offers", lang: model.source }, ...texts.map((text) =>
      element("button", { type: "button", class: "example", onclick: () => use(model.source, to, text) }, text))),
    trainedOn(model) && element("p", { class: "muted small" }, trainedOn(model)),
  ].filter(Boolean)));
  box.hidden = !box.childElementCount;
}

export function hide() {
  byId("examples").dataset.of = "";
  byId("examples").hidden = true;
}

// A warning, where most words of a translation are unsure.
export function warn(sure, names) {
  const banner = byId("doubt"), rated = sure.filter((one) => one !== null);
  const doubtful = rated.length > 0 && rated.filter((one) => one < UNSURE).length > MOST * rated.length;
  const models = known.models.filter((one) => names.includes(one.name));
  banner.textContent = doubtful ? [t("mostUnsure"), ...models.map(trainedOn), t("otherKind")].filter(Boolean).join(" ") : "";
  banner.hidden = !doubtful;
}
