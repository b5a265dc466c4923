// A click on a word: what else could stand there. Choosing decodes the rest of the sentence again.
import * as api from "./api.js";
import { element } from "./dom.js";
import * as popover from "./popover.js";
import { t } from "./speech.js";

export const { close } = popover;
const LEAST = 0.005; // less likely ones are not worth a line

export async function ask({ anchor, word, sentence, way, terms, choose }) {
  const mine = popover.show(anchor, t("otherWords"), t("otherWordsFor", word.text), t("asking"));
  try {
    const { text, source } = await heard(sentence, way, mine.asking.signal);
    const found = await api.alternatives({
      text, source, target: way.target, translation: sentence.target.text, word: word.number, count: 6, ...(way.through ? {} : terms),
    }, mine.asking.signal);
    if (popover.isOpen(mine)) fill(mine.list, found, choose);
  } catch (error) {
    if (error.name === "AbortError" || !popover.isOpen(mine)) return;
    mine.list.replaceChildren(element("li", { class: "error small" }, error.message));
  }
  if (popover.isOpen(mine)) popover.place(mine);
}

// What the model that wrote the sentence was given: on a way through another language, what the first model said.
async function heard(sentence, { source, through }, signal) {
  const { text } = sentence.source;
  if (!through) return { text, source };
  const answer = await api.translate({ text, source, target: through, tokens: false, alignment: false }, signal);
  return { text: answer.translations[0].text, source: through };
}

function fill(list, found, choose) {
  const likely = found.alternatives.filter((one) => one.current || one.probability >= LEAST);
  const shown = likely.length > 1 ? likely : found.alternatives; // of a model that is sure of nothing, all
  if (shown.length < 2) {
    return list.replaceChildren(element("li", { class: "muted small" }, t("noOtherWords")));
  }
  list.replaceChildren(...shown.map((one, number) => popover.choice({ ...one, word: one.word || t("sentenceEnds") }, number, () => choose(one))));
  list.querySelector("button").focus();
}
