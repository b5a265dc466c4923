// The drawers under the panes, and the first of them: other translations of the whole.
import { byId, element, percent, roving } from "./dom.js";
import { t } from "./speech.js";

const NAMES = ["alternatives", "glossary", "history", "code"], MANY = 8;

export function build() {
  for (const name of NAMES) byId(`tab-${name}`).addEventListener("click", () => open(name));
  for (const name of NAMES) byId(`tab-${name}`).addEventListener("focus", () => open(name));
  roving(document.querySelector(".drawer-tabs"), "[role=tab]");
  open("alternatives");
  showNbest(null);
}

// A file has no alternatives and no history, but the glossary holds for it, too.
export function only(names) {
  for (const name of NAMES) byId(`tab-${name}`).hidden = names !== null && !names.includes(name);
  if (names) open(names[0]);
}

function open(chosen) {
  for (const name of NAMES) {
    byId(`tab-${name}`).setAttribute("aria-selected", String(name === chosen));
    byId(`tab-${name}`).tabIndex = name === chosen ? 0 : -1;
    byId(`drawer-${name}`).hidden = name !== chosen;
  }
}

// Of a text with many sentences, those of the one at hand.
export function showNbest(result, at = 0, choose = null) {
  const all = (result?.sentences ?? []).map((sentence, index) => ({ sentence, index }));
  const shown = all.length > MANY ? all.slice(at, at + 1) : all, items = [];
  for (const { sentence, index } of shown) {
    if (all.length > 1) items.push(element("li", { class: "muted small nbest-of" }, t("ofSentence", index + 1)));
    const texts = new Set(); // what was cut into pieces in two ways is one text
    for (const one of sentence.nbest) {
      if (!texts.has(one.text)) items.push(line(one, sentence, () => choose(index, one.text)));
      texts.add(one.text);
    }
  }
  byId("nbest").replaceChildren(...items);
  byId("nbest-note").textContent = t(!items.length ? "noAlternatives" : shown.length < all.length ? "scoreNoteOne" : "scoreNote");
}

// As in the beam tree: how likely it is compared with the best one, both by their scores.
const relative = ({ score }, { nbest }) => (score === null ? "" : percent(Math.exp(score - Math.max(...nbest.map((one) => one.score)))));

function line(one, sentence, choose) {
  const here = one.text === sentence.target.text;
  return element("li", {}, element("button", { type: "button", class: "nbest-one", "aria-pressed": String(here), onclick: () => !here && choose() },
    element("span", {}, one.text), element("span", { class: "number-text muted" }, relative(one, sentence))));
}
