// A click on a word: what else could stand there. Choosing decodes the rest of the sentence again.
import * as api from "./api.js";
import { element, percent, roving } from "./dom.js";
import { t } from "./speech.js";

let open = null;

export function close(back = true) {
  if (!open) return;
  open.asking.abort();
  open.box.remove();
  document.removeEventListener("pointerdown", outside, true);
  const { anchor } = open;
  open = null;
  anchor.classList.remove("open");
  if (back && anchor.isConnected) anchor.focus();
}

function outside(event) {
  if (open && !open.box.contains(event.target)) close(false);
}

export async function ask({ anchor, word, sentence, way, terms, choose }) {
  close(false);
  const list = element("ul", { class: "choices" }, element("li", { class: "muted small" }, t("asking")));
  const title = t("otherWordsFor", word.text);
  const box = element("div", { class: "popover", role: "dialog", "aria-label": title, tabindex: -1 },
    element("p", { class: "popover-title" }, t("otherWords")), list);
  open = { anchor, box, asking: new AbortController() };
  anchor.classList.add("open");
  document.body.append(box);
  place(anchor, box);
  box.focus();
  roving(box, "button");
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); close(); } });
  box.addEventListener("focusout", (event) => { if (event.relatedTarget && !box.contains(event.relatedTarget)) close(false); });
  document.addEventListener("pointerdown", outside, true);
  const mine = open;
  try {
    const { text, source } = await heard(sentence, way, mine.asking.signal);
    const found = await api.alternatives({
      text, source, target: way.target, translation: sentence.target.text, word: word.number, count: 6, ...(way.through ? {} : terms),
    }, mine.asking.signal);
    if (open === mine) fill(list, found, choose);
  } catch (error) {
    if (error.name === "AbortError" || open !== mine) return;
    list.replaceChildren(element("li", { class: "error small" }, error.message));
  }
  if (open === mine) place(anchor, box);
}

// What the model that wrote the sentence was given: on a way through another language, what the first model said.
async function heard(sentence, { source, through }, signal) {
  const { text } = sentence.source;
  if (!through) return { text, source };
  const answer = await api.translate({ text, source, target: through, tokens: false, alignment: false }, signal);
  return { text: answer.translations[0].text, source: through };
}

function fill(list, found, choose) {
  if (found.alternatives.length < 2) {
    return list.replaceChildren(element("li", { class: "muted small" }, t("noOtherWords")));
  }
  list.replaceChildren(...found.alternatives.map((one, number) => {
    const bar = element("span", { class: "choice-bar", "aria-hidden": "true" });
    bar.style.width = `${Math.max(1, 100 * one.probability)}%`;
    const button = element("button", {
      type: "button", class: one.current ? "choice current" : "choice", tabindex: number ? -1 : 0, "aria-current": one.current && "true",
      onclick: () => { close(); if (!one.current) choose(one); },
    }, element("span", { class: "choice-word" }, one.word || t("sentenceEnds")),
    element("span", { class: "choice-share number-text" }, percent(one.probability)), bar,
    element("span", { class: "choice-text" }, one.text));
    return element("li", {}, button);
  }));
  list.querySelector("button").focus();
}

function place(anchor, box) {
  const word = anchor.getBoundingClientRect(), margin = 8;
  const room = document.documentElement.clientWidth, wide = Math.min(360, room - 2 * margin);
  box.style.width = `${wide}px`;
  box.style.left = `${Math.max(margin, Math.min(word.left, room - wide - margin)) + window.scrollX}px`;
  const below = window.innerHeight - word.bottom;
  const above = below < box.offsetHeight + 2 * margin && word.top > box.offsetHeight + 2 * margin;
  box.style.top = `${(above ? word.top - box.offsetHeight - 6 : word.bottom + 6) + window.scrollY}px`;
}
