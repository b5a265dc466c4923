// The label of a text, or of a pair, with the probability of each; a number; or the best of several choices.
import * as api from "./api.js";
import { element } from "./dom.js";
import { bars } from "./read-parts.js";
import { readView } from "./read-view.js";
import { number, t } from "./speech.js";

const isPair = (model) => !model.choices && model.texts !== 1;
export const { verb, build, ready, enter, leave, respeak } = readView({
  name: "classify", verb: "classify", draw, ask, looks: "text",
  fields: [
    { name: "text", rows: 5 },
    { name: "other", rows: 5, shown: isPair, enough: (text, model) => model.texts === null || text.trim() },
    { name: "choices", rows: 5, shown: (model) => model.choices, enough: (text) => lines(text).length > 1 },
  ],
});

export const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

async function ask({ text, other, choices }, model, signal) {
  const options = model.choices ? lines(choices) : [];
  const { texts, seconds } = await api.classify({ text: [[text, ...(other.trim() ? [other] : []), ...options]], model: model.name }, signal);
  return { ...texts[0], options, seconds };
}

// Choices are named by their numbers; a person reads what they say.
function draw({ label, probabilities, number: value, options }) {
  if (value !== null) return [element("p", { class: "read-number number-text" }, number(value, 3))];
  const names = Object.keys(probabilities), said = (name) => options[names.indexOf(name)] ?? name;
  const order = [...names].sort((one, other) => probabilities[other] - probabilities[one]);
  return [element("p", { class: "read-label-found" }, said(label)), bars(order.map((name) => ({ name: said(name), share: probabilities[name] })), { label: t("labelsFound") })];
}
