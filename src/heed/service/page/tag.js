// Entities, or other labels of words, marked in a text.
import * as api from "./api.js";
import { element, percent } from "./dom.js";
import { bars, marked } from "./read-parts.js";
import { readView } from "./read-view.js";
import { t } from "./speech.js";

const HUES = 6;
export const { verb, build, ready, enter, leave, respeak } = readView({
  name: "tag", verb: "tag", fields: [{ name: "text", rows: 8 }], draw, looks: "text",
  ask: async ({ text }, model, signal) => {
    const { texts, seconds } = await api.tag({ text, model: model.name }, signal);
    return { ...texts[0], seconds };
  },
});

// The types of a model's labels: without the prefixes of BIO and its like.
const typesOf = (model) => [...new Set(model.labels.map((label) => label.replace(/^[BIESLU]-/, "")))].filter((type) => type !== "O");

function draw({ text, entities }, { model }) {
  const types = typesOf(model), hue = (type) => `hue-${Math.max(0, types.indexOf(type)) % HUES}`;
  const nodes = marked(text, entities, (one) => element("mark", { class: `entity ${hue(one.type)}`, title: `${one.type}, ${percent(one.probability)}` },
    one.text, element("span", { class: "entity-type" }, one.type)));
  const rows = entities.map((one) => ({ name: one.text, note: one.type, share: one.probability }));
  return [element("p", { class: "read-text", dir: "auto" }, ...nodes),
    rows.length ? bars(rows, { label: t("tagged") }) : element("p", { class: "muted small" }, t("nothingTagged"))];
}
