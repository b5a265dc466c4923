// Filling blanks: a word that is clicked becomes a mask, and the model says what may stand there.
import * as api from "./api.js";
import { byId, element, roving } from "./dom.js";
import * as popover from "./popover.js";
import { readView } from "./read-view.js";
import { t } from "./speech.js";

const MASK = "[MASK]", TOP = 8;
const WORDS = /\[MASK\]|<mask>|[\p{L}\p{M}\p{N}]+(?:['\u2019-][\p{L}\p{M}\p{N}]+)*|\S/gu;
const isMask = (word) => word === MASK || word === "<mask>";

const view = readView({ name: "fill", verb: "fill", fields: [{ name: "text", rows: 6 }], draw, looks: "text" });
export const { verb, ready, enter, leave, respeak } = view;

export function build() {
  view.build();
  const out = byId("fill-out");
  roving(out, ".word");
  out.addEventListener("click", (event) => event.target.closest(".word")?.ask());
  out.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.target.closest(".word")?.ask();
  });
}

function draw(found, { values, model, set }) {
  const { text } = values, nodes = [];
  let place = 0;
  for (const { 0: word, index } of text.matchAll(WORDS)) {
    if (index > place) nodes.push(text.slice(place, index));
    const sides = [text.slice(0, index), text.slice(index + word.length)];
    const node = element("span", { class: isMask(word) ? "word blank" : "word", role: "button", tabindex: place ? -1 : 0, "aria-haspopup": "dialog" }, isMask(word) ? t("blank") : word);
    node.ask = () => open(node, word, sides, model, set);
    nodes.push(node);
    place = index + word.length;
  }
  return [element("p", { class: "read-text", dir: "auto" }, ...nodes, text.slice(place))];
}

async function open(anchor, word, [before, after], model, set) {
  const mine = popover.show(anchor, t("fillTitle"), isMask(word) ? t("fillTitle") : t("otherWordsFor", word), t("asking"));
  const number = [...before.matchAll(/\[MASK\]|<mask>/g)].length;
  try {
    const { texts } = await api.fill({ text: before + MASK + after, top: TOP, model: model.name }, mine.asking.signal);
    if (!popover.isOpen(mine)) return;
    const at = [...byId("fill-out").querySelectorAll(".word")].indexOf(anchor);
    mine.list.classList.add("compact");
    mine.list.replaceChildren(...texts[0].masks[number].map((guess, place) => popover.choice(
      { word: shown(guess, before), probability: guess.probability, current: guess.word === word }, place, () => put(guess, before, after, set, at))));
    mine.list.querySelector("button").focus();
  } catch (error) {
    if (error.name === "AbortError" || !popover.isOpen(mine)) return;
    mine.list.replaceChildren(element("li", { class: "error small" }, error.message));
  }
  popover.place(mine);
}

// A piece that goes on a word has no mark of a beginning: it is put to the word before it.
const goesOn = (guess, before) => !guess.piece.startsWith("\u2581") && /\s$/.test(before);
const shown = (guess, before) => (goesOn(guess, before) ? `\u2026${guess.word}` : guess.word);

function put(guess, before, after, set, at) {
  set("text", (goesOn(guess, before) ? before.trimEnd() : before) + guess.word + after);
  const words = byId("fill-out").querySelectorAll(".word"), node = words[Math.min(at, words.length - 1)];
  words.forEach((one) => (one.tabIndex = one === node ? 0 : -1));
  node?.focus();
}
