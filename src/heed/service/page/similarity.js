// How similar sentences are: the cosine of their vectors.
import * as api from "./api.js";
import { lines } from "./classify.js";
import { bars } from "./read-parts.js";
import { readView } from "./read-view.js";
import { number, t } from "./speech.js";

export const { verb, build, ready, enter, leave, respeak } = readView({
  name: "similarity", verb: "embed", fields: [{ name: "text", rows: 3 }, { name: "others", rows: 6 }], looks: "text",
  ask: async ({ text, others }, model, signal) => ({ others: lines(others), ...(await api.similarity({ text, others: lines(others), model: model.name }, signal)) }),
  draw: ({ others, cosines }) => [bars(cosines.map((cosine, index) => ({ name: others[index], share: cosine, said: number(cosine, 3) })), { label: t("similarity_out") })],
});
