// The answer to a question, marked in its context.
import * as api from "./api.js";
import { byId, element } from "./dom.js";
import { bars, marked } from "./read-parts.js";
import { readView } from "./read-view.js";
import { t } from "./speech.js";

const COUNT = 5;
export const { verb, build, ready, enter, leave, respeak } = readView({
  name: "answer", verb: "answer", fields: [{ name: "question", rows: 1 }, { name: "context", rows: 8 }], draw: (found) => draw(found, 0),
  ask: async ({ question, context }, model, signal) => ({ context, ...(await api.answer({ question, context, n: COUNT, model: model.name }, signal)) }),
});

function draw(found, chosen) {
  const { context, answers } = found, best = answers[chosen];
  const spans = best?.text ? [best] : [];
  const pick = (index) => {
    byId("answer-out").replaceChildren(...draw(found, index));
    byId("answer-out").querySelectorAll(".read-bars button")[index].focus();
  };
  const rows = answers.map((one) => ({ name: one.text || t("noAnswer"), share: one.probability }));
  const text = element("p", { class: "read-text", dir: "auto" }, ...marked(context, spans, (one) => element("mark", { class: "answer-found" }, one.text)));
  return [text, bars(rows, { pick, chosen, label: t("answers") })];
}
