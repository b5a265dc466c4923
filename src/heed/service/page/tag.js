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

// A model of one type has no need to name it at every word: the legend does.
function draw({ text, entities }, { model }) {
  const types = typesOf(model), several = types.length > 1, hue = (type) => `hue-${Math.max(0, types.indexOf(type)) % HUES}`;
  const nodes = marked(text, entities, (one) => {
    const node = element("mark", { class: `entity ${hue(one.type)}`, title: `${one.type}, ${percent(one.probability)}` }, one.text, several && element("span", { class: "entity-type" }, one.type));
    node.style.setProperty("--strength", `${Math.round(8 + 20 * one.probability)}%`);
    return node;
  });
  const rows = entities.map((one) => ({ name: one.text, note: several && one.type, share: one.probability }));
  const counts = types.map((type) => [type, entities.filter((one) => one.type === type).length]).filter(([, count]) => count);
  const legend = counts.map(([type, count]) => element("span", { class: hue(type) }, element("span", { class: "entity-type" }, type), ` ${count}`));
  return [element("p", { class: "read-text", dir: "auto" }, ...nodes),
    element("p", { class: "muted small entity-legend" }, ...(rows.length ? legend : [t("nothingTagged")])), bars(rows, { label: t("tagged") })];
}
