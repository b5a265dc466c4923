// The two texts as words: what is pointed at lights what it goes with, both ways.
import { byId, element, percent, roving } from "./dom.js";
import { linked } from "./links.js";
import { marked } from "./read-parts.js";
import { t } from "./speech.js";

export const UNSURE = 0.5;
let words = null; // of links.js, or null while the text is not the one that was translated
let lit = []; // the nodes that are lit
const nodes = { source: [], target: [] }; // of the words, in their order
let onPick = () => {};

export function build(pick) {
  onPick = pick;
  const target = byId("target"), source = byId("source");
  roving(target, ".word");
  target.addEventListener("pointerover", (event) => light("target", indexOf(event.target)));
  target.addEventListener("pointerleave", () => light(null));
  target.addEventListener("focusin", (event) => light("target", indexOf(event.target)));
  target.addEventListener("focusout", () => light(null));
  target.addEventListener("click", (event) => picked(event.target));
  target.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    picked(event.target);
  });
  source.addEventListener("pointermove", (event) => light("source", under(event.clientX, event.clientY)));
  source.addEventListener("pointerleave", () => light(null));
  for (const name of ["keyup", "click"]) source.addEventListener(name, () => light("source", atCaret()));
  source.addEventListener("blur", () => light(null));
}

const indexOf = (node) => Number(node.closest?.(".word")?.dataset.word ?? -1);

function picked(node) {
  const index = indexOf(node);
  if (index >= 0 && words && words.target[index].sentence >= 0) onPick(words.target[index], index, wordNode(index));
}

export const wordNode = (index) => nodes.target[index];

// Behind the field lies its text again, word by word, to measure and to light.
export function mirror(text) {
  const known = words && words.text === text ? words.source : [];
  lit = [];
  nodes.source = [];
  byId("mirror").replaceChildren(...marked(text, known, (word) => (nodes.source[nodes.source.length] = element("span", {}, word.text))), "\u200b\n");
  byId("mirror").scrollTop = byId("source").scrollTop;
}

export function forget() {
  light(null);
  words = null;
}

export function show(text, result) {
  words = linked(text, result);
  words.text = text;
  mirror(text);
  nodes.target = [];
  const target = byId("target");
  target.replaceChildren(...marked(result.text, words.target, (word, index) => {
    const low = word.sure !== null && word.sure < UNSURE;
    const title = low ? t("unsure", percent(word.sure)) : word.chosen ? t("chosenWord") : null;
    return (nodes.target[index] = element("span", {
      class: low ? "word low" : word.chosen ? "word chosen" : "word", role: "button", "data-word": index, tabindex: index ? -1 : 0, title,
      "aria-haspopup": "dialog", "aria-label": title ? `${word.text}, ${title}` : null,
    }, word.text));
  }));
  target.lang = result.target;
  target.dir = "auto";
}

// How sure the model is of each word that is shown; null where that is not known.
export const sureness = () => words.target.map((word) => word.sure);

function light(side, index = -1) {
  for (const node of lit) node.classList.remove("lit", "asked");
  lit = [];
  if (!words || !side || index < 0) return;
  const here = side === "source" ? 0 : 1, other = side === "source" ? "target" : "source";
  mark(nodes[side][index], "asked");
  for (const pair of words.pairs) if (pair[here] === index) mark(nodes[other][pair[1 - here]], "lit");
}

function mark(node, name) {
  node.classList.add(name);
  lit.push(node);
}

// The word under a point of the field; words stand in the order of their lines, so that few have to be measured.
function under(x, y) {
  if (!words || words.text !== byId("source").value) return -1;
  const all = nodes.source, inside = (box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  let low = 0, high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle].getBoundingClientRect().bottom < y) low = middle + 1;
    else high = middle;
  }
  for (; low < all.length && all[low].getBoundingClientRect().top <= y; low += 1) {
    if ([...all[low].getClientRects()].some(inside)) return low;
  }
  return -1;
}

function atCaret() {
  const source = byId("source");
  if (!words || words.text !== source.value || source.selectionStart !== source.selectionEnd) return -1;
  const place = Array.from(source.value.slice(0, source.selectionStart)).length;
  return words.source.findIndex((word) => word.start <= place && place <= word.end);
}
