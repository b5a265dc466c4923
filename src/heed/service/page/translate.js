// The first view: two panes, and translation as one types.
import * as api from "./api.js";
import * as choices from "./choices.js";
import * as code from "./code.js";
import * as drawers from "./drawers.js";
import * as examples from "./examples.js";
import { byId, copyText, element, later, percent, toast } from "./dom.js";
import * as files from "./files.js";
import * as glossary from "./glossary.js";
import * as history from "./history.js";
import * as languages from "./languages.js";
import * as notices from "./notices.js";
import * as other from "./other-words.js";
import * as output from "./output.js";
import * as parts from "./parts.js";
import { addressOf, remember, remembered, writeAddress } from "./store.js";
import { number, t } from "./speech.js";

const LONGEST_LINK = 4000, TALL = 3000, LINE = 50; // characters; a line counts as so many more
// `known` is what the service can, null until it has said so; `early` the text that was given before.
const state = { known: null, early: undefined, from: "auto", to: "", text: "", answer: null, result: null, of: "", seconds: 0, at: 0, asking: null };

const { nameOf } = languages;

export function build() {
  output.build(openWord);
  drawers.build();
  glossary.build(() => ask());
  history.build((entry) => use(entry.from, entry.to, entry.text));
  code.build();
  files.build(() => ({ source: state.from, target: state.to }));
  const source = byId("source");
  source.addEventListener("input", typed);
  for (const name of ["keyup", "click"]) source.addEventListener(name, () => turnTo(sentenceAtCaret()));
  source.addEventListener("scroll", () => (byId("mirror").scrollTop = source.scrollTop));
  byId("from").addEventListener("change", () => { state.from = byId("from").value; changed(); });
  byId("to").addEventListener("change", () => { state.to = byId("to").value; changed(); });
  byId("swap").addEventListener("click", swap);
  byId("clear").addEventListener("click", () => { use(state.from, state.to, ""); source.focus(); });
  byId("copy").addEventListener("click", copy);
  byId("undo").addEventListener("click", () => rechosen(() => choices.undo()));
  byId("reset").addEventListener("click", () => rechosen(() => choices.reset(state.result)));
  byId("share").addEventListener("click", share);
  byId("see").addEventListener("click", () => (location.hash = addressOf("look", looked())));
  byId("mode-text").addEventListener("click", () => mode("text"));
  byId("mode-file").addEventListener("click", () => mode("file"));
}

export function ready(known) {
  state.known = known;
  state.from = remembered("from", "auto");
  state.to = remembered("to", "");
  files.ready(known);
  examples.ready(known);
  fillFrom();
  fillTo();
  count();
  if (!state.text) examples.offer(state.from, state.to, use);
}

export function enter(values) {
  if (!state.known) return;
  const text = state.early ?? values.text;
  state.early = undefined;
  if (!languages.served(values.from, values.to)) return unserved(values, text ?? state.text);
  if (text !== undefined || values.from || values.to) use(values.from ?? state.from, values.to ?? state.to, text ?? state.text);
  else writeBack();
}

export function leave() {
  other.close(false);
}

export function respeak() {
  if (!state.known) return;
  other.close(false);
  fillFrom();
  fillTo();
  count();
  files.respeak();
  glossary.draw();
  history.draw();
  if (state.result && fresh()) shown();
  else if (!state.result) drawers.showNbest(null);
  if (!state.text) examples.offer(state.from, state.to, use);
}

function mode(name) {
  for (const each of ["text", "file"]) byId(`mode-${each}`).setAttribute("aria-pressed", String(each === name));
  byId("text-panes").hidden = byId("hint").hidden = name !== "text";
  drawers.only(name === "file" ? ["glossary"] : null);
  byId("file-panes").hidden = name !== "file";
}

// --- languages -------------------------------------------------------------------------------------------------------

function fillFrom() {
  const all = languages.sources();
  if (state.from !== "auto" && !all.includes(state.from)) state.from = "auto";
  const found = state.result?.detected;
  const auto = state.from === "auto" && found ? t("autoIs", nameOf(found.language)) : t("auto");
  languages.fill(byId("from"), all, state.from, [element("option", { value: "auto", selected: state.from === "auto" }, auto)]);
}

function fillTo() {
  const all = languages.targets(state.from);
  if (!all.includes(state.to)) state.to = languages.likely(all);
  languages.fill(byId("to"), all, state.to);
}

const pair = () => ({ source: state.from === "auto" ? state.result?.detected?.language ?? "auto" : state.from, target: state.to });

function swap() {
  if (!state.known) return;
  const { source, target } = pair();
  const back = source === "auto" ? languages.sources().includes(target) : languages.way(target, source);
  if (!back) return toast(t("cannotSwap"));
  use(target, source, state.result && fresh() ? state.result.text : state.text);
}

function changed() {
  state.answer = state.result = null;
  fillTo(); // another source has other targets
  keep();
  fillFrom();
  fillTo();
  ask();
}

function keep() {
  for (const side of ["to", "from"]) {
    remember(side, state[side]);
    languages.used(state[side]);
  }
}

// A link may name a pair that is not served: that is said, and nothing is translated until another one is chosen.
function unserved(values, text) {
  byId("source").value = state.text = text;
  follow();
  empty();
  notices.offerPairs(values.from, values.to ?? state.to, (source, target) => use(source, target, state.text));
}

// --- the text --------------------------------------------------------------------------------------------------------

function use(from, to, text) {
  byId("source").value = text;
  if (!state.known) return void (state.early = text);
  state.from = from;
  state.to = to;
  fillFrom();
  fillTo();
  state.text = text;
  keep();
  state.answer = state.result = null;
  follow();
  ask();
}

function typed() {
  if (!state.known) return void (state.early = byId("source").value);
  state.text = byId("source").value;
  follow();
  soon();
}

// Whether what is shown is of the text as it now stands.
const fresh = () => state.of === state.text;

// What follows each key at once; an answer to the text as it was comes too late.
function follow() {
  state.asking?.abort();
  state.asking = null;
  output.forget();
  const tall = state.text.length + LINE * state.text.split("\n").length > TALL;
  document.querySelector(".panes").classList.toggle("tall", tall);
  output.mirror(tall ? "" : state.text); // a pane that scrolls need not be measured at each key
  count();
  byId("clear").hidden = !state.text;
  if (state.text) examples.hide();
  byId("target").classList.add("stale");
  byId("progress").hidden = !state.text.trim();
  for (const id of ["source", "mirror", "target"]) byId(id).classList.toggle("long", state.text.length > 300);
}

function count() {
  const length = Array.from(state.text).length, most = state.known.limits.characters;
  byId("counter").textContent = t("counter", number(length), number(most));
  byId("counter").setAttribute("title", t("counterLong", number(length), number(most)));
  byId("counter").classList.toggle("error", length > most);
  byId("source").maxLength = most;
}

function writeBack() {
  if (!state.known) return; // the address may hold a text that was not taken up yet
  const text = state.text.length <= LONGEST_LINK ? state.text : "";
  writeAddress("translate", { from: state.from === "auto" ? "" : state.from, to: state.to, text });
}

const soon = later(300, () => ask());

export function request() {
  const body = { text: state.text, source: state.from, target: state.to, nbest: 4, tokens: true, alignment: true };
  return { ...body, ...glossary.fields() };
}

async function ask() {
  if (!state.known) return;
  soon.cancel();
  state.asking?.abort();
  other.close(false);
  if (!byId("view-translate").hidden) writeBack();
  code.show(request());
  if (!state.text.trim() || !state.to) return empty();
  const mine = (state.asking = new AbortController());
  byId("progress").hidden = false;
  progress(0);
  byId("target").classList.add("stale");
  const text = state.text;
  try {
    for await (const { translation, seconds, share } of parts.translate(request(), mine.signal)) {
      if (state.asking !== mine) return;
      Object.assign(state, { answer: translation, result: choices.applied(translation), of: text, seconds });
      state.at = sentenceAtCaret();
      shown();
      progress(share);
    }
    byId("target-said").textContent = state.result.text;
    history.note({ from: pair().source, to: state.to, text, translation: state.result.text });
  } catch (error) {
    if (error.name === "AbortError" || state.asking !== mine) return;
    failed(error);
    if (error.data?.detected) notices.offerSources(error.data, (source) => use(source, state.to, state.text));
  }
  byId("progress").hidden = true;
}

function empty() {
  state.answer = state.result = null;
  byId("progress").hidden = true;
  byId("target").replaceChildren();
  byId("target").classList.remove("stale");
  byId("target-empty").hidden = false;
  byId("target-said").textContent = byId("detected").textContent = byId("quality").textContent = "";
  byId("copy").disabled = byId("see").disabled = true;
  byId("undo").hidden = byId("reset").hidden = true;
  drawers.showNbest(null);
  byId("doubt").hidden = true;
  if (!state.text.trim()) examples.offer(state.from, state.to, use);
  fillFrom();
}

// What was wrong with the text is for its writer to change; anything else may work the next time.
function failed({ message, status }) {
  empty();
  byId("target-empty").hidden = true;
  const again = status !== 400 && element("button", { type: "button", class: "quiet", onclick: () => ask() }, t("tryAgain"));
  byId("target").replaceChildren(element("p", { class: "error", role: "alert" }, message), again || "");
}

// How much is done; nothing, where that is not known.
function progress(share) {
  const bar = byId("progress");
  bar.classList.toggle("measured", share > 0 && share < 1);
  bar.style.setProperty("--share", share);
  if (share > 0 && share < 1) bar.setAttribute("aria-valuenow", Math.round(100 * share));
  else bar.removeAttribute("aria-valuenow");
}

function shown() {
  const { result } = state;
  output.show(state.text, result);
  examples.warn(output.sureness(), result.models);
  byId("target").classList.remove("stale");
  byId("target-empty").hidden = true;
  byId("copy").disabled = byId("see").disabled = false;
  byId("undo").hidden = !choices.canUndo();
  byId("reset").hidden = !choices.any(result);
  byId("detected").textContent = result.detected ? t("detectedAs", nameOf(result.detected.language), percent(result.detected.confidence)) : "";
  const via = languages.way(result.source, result.target)?.through;
  byId("quality").textContent = [via && t("through", nameOf(via)), t("took", number(state.seconds, 2))].filter(Boolean).join(" · ");
  byId("model").textContent = t("byModel", result.models.join(" → "));
  drawers.showNbest(result, state.at, choose);
  fillFrom();
}

// --- words -----------------------------------------------------------------------------------------------------------

function openWord(word, index, anchor) {
  if (!state.result || !fresh()) return;
  const { sentences } = state.result;
  turnTo(word.sentence);
  other.ask({
    anchor, word, sentence: sentences[word.sentence], way: languages.way(state.result.source, state.result.target), terms: glossary.fields(),
    choose: (one) => choose(word.sentence, one.text, index, word.number),
  });
}

// The sentence at once as it was chosen; then what the model has to say about it.
async function choose(index, text, focus, word = null) {
  if (!fresh()) return;
  const { answer } = state, sentence = answer.sentences[index];
  rechosen(() => choices.add(answer, index, text, word), focus);
  history.note({ from: pair().source, to: state.to, text: state.text, translation: state.result.text });
  try {
    const found = await api.translate({
      text: sentence.source.text, source: answer.source, target: answer.target, prefix: text, tokens: true, alignment: true,
    });
    const again = found.translations[0];
    if (again.text !== text || again.sentences.length !== 1 || !choices.learn(answer, index, text, again.sentences[0])) return;
    if (state.answer === answer && fresh()) rechosen(() => {}, document.activeElement?.dataset?.word);
  } catch (error) {
    toast(error.message);
  }
}

// The same answer with other choices.
function rechosen(change, focus) {
  if (!state.answer || !fresh()) return;
  change();
  state.result = choices.applied(state.answer);
  shown();
  byId("target-said").textContent = state.result.text;
  if (focus !== undefined) output.wordNode(focus)?.focus();
}

// The sentence in which the caret stands, or the first.
function sentenceAtCaret() {
  const place = Array.from(state.text.slice(0, byId("source").selectionStart)).length;
  return Math.max(0, (state.result?.sentences ?? []).findIndex(({ source }) => source.start <= place && place <= source.end));
}

function turnTo(at) {
  if (at === state.at || !state.result) return;
  state.at = at;
  drawers.showNbest(state.result, at, choose);
}

// What can be looked into.
export function looked() {
  const { source, target } = pair();
  return { from: source === "auto" ? "" : source, to: target, text: state.result?.sentences[sentenceAtCaret()]?.source.text ?? "" };
}

async function copy() {
  const done = await copyText(state.result?.text ?? "");
  toast(t(done ? "copied" : "copyFailed"));
  if (!done) return;
  byId("copy").classList.add("done");
  setTimeout(() => byId("copy").classList.remove("done"), 1200);
}

async function share() {
  writeBack();
  const words = state.text.length <= LONGEST_LINK ? "linkCopied" : "linkWithoutText";
  toast(t((await copyText(location.href)) ? words : "copyFailed"));
}
