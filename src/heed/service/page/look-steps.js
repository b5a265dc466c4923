// Writing, one token a step: what was likely, how chance would draw, and the search as a tree that grows.
import * as api from "./api.js";
import { byId, element, later, percent } from "./dom.js";
import { chosen, isSpecial, look, readable } from "./look-data.js";
import { number, t } from "./speech.js";

let exact = false, whole = null, question = null, asking = null, playing = null, shownChoice = null;
const LEAST = 0.005; // less likely ones are not worth a line
const draws = { temperature: 1, top_k: 0, top_p: 1 };

export function cards(numbers, ask) {
  exact = Boolean(numbers);
  whole = numbers?.score ?? null;
  question = ask;
  if (!look().predictions.length) return {};
  const all = { Steps: steps() };
  if (look().search.length) all.Beam = beam();
  return all;
}

function steps() {
  return [
    element("div", { class: "row" }, element("p", { class: "intro" }, t(look().source.length ? "stepsText" : "stepsOfText")), player("")),
    element("div", { id: "strip", class: "strip scroll", role: "group", "aria-label": t("stepsGroup") }),
    element("div", { class: "columns" },
      element("div", {}, element("h3", { id: "so-far-title" }), element("p", { id: "so-far", class: "so-far", dir: "auto" }),
        element("p", { id: "step-score", class: "muted small" }),
        whole && element("p", { id: "whole-score", class: "muted small" }, t("wholeScore", number(whole.logp, 3), number(whole.penalty, 3), number(whole.score, 3), percent(Math.exp(whole.logp / look().target.length)))), exact && sliders()),
      element("div", {}, element("h3", {}, t(look().source.length ? "couldWrite" : "couldFollow")), element("ol", { id: "bars", class: "bars" }), element("p", { id: "drawn", class: "muted small" }))),
  ];
}

// The same buttons stand at the probabilities and at the tree.
function player(at) {
  const button = (name, text, label) => element("button", { type: "button", id: `${at}${name}`, "data-move": name, class: "quiet", "aria-label": label }, text);
  const all = { back: button("back", "‹", t("previous")), play: button("play", t("play")), next: button("next", "›", t("next")) };
  all.back.addEventListener("click", () => goToStep(chosen.step - 1));
  all.next.addEventListener("click", () => goToStep(chosen.step + 1));
  all.play.addEventListener("click", toggle);
  return element("div", { class: "player", role: "group", "aria-label": t("stepsGroup") }, ...Object.values(all));
}

const movers = (name) => document.querySelectorAll(`[data-move="${name}"]`);

function sliders() {
  const one = (name, words, least, most, by) => {
    const said = element("output", { class: "number-text" }, String(draws[name]));
    const input = element("input", { type: "range", id: `draw-${name}`, min: least, max: most, step: by, value: draws[name] });
    input.addEventListener("input", () => { draws[name] = Number(input.value); said.textContent = input.value; soon(); });
    return element("label", { class: "draw", for: `draw-${name}` }, element("span", {}, t(words)), input, said);
  };
  return element("div", { class: "draws" }, one("temperature", "temperature", 0.1, 3, 0.1), one("top_k", "topK", 0, 20, 1), one("top_p", "topP", 0.05, 1, 0.05));
}

function beam() {
  const legend = ["kept", "ended", "dropped", "chosen"].map((name) => element("span", { class: name }, t(name)));
  return [element("div", { class: "row" }, element("p", { class: "intro" }, t("beamText")), player("tree-")), element("p", { class: "legend small" }, ...legend),
    element("div", { id: "beam" }, element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("beamScroll") },
      element("div", { id: "lattice", class: "lattice" }))),
    element("p", { id: "hypothesis", class: "readout", role: "status" })];
}

export function begin() {
  stop();
  if (!byId("strip")) return;
  byId("strip").replaceChildren(...look().target.map(column));
  if (look().search.length) { buildLattice(); showHypothesis(null); }
  if (look().states) buildStates();
  goToStep(Math.min(chosen.step, look().target.length - 1));
}

function column(token, step) {
  const p = Math.exp(look().scores[step]);
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.height = `${Math.max(2, 64 * p)}px`;
  return element("button", { type: "button", "aria-label": t("stepName", step + 1, readable(token), percent(p)), onclick: () => goToStep(step) },
    element("span", { class: "column" }, element("small", {}, percent(p)), bar), element("span", { class: "token" }, readable(token)));
}

export function goToStep(step) {
  const all = look();
  step = chosen.step = Math.max(0, Math.min(all.target.length - 1, step));
  [...byId("strip").children].forEach((button, place) => {
    button.setAttribute("aria-pressed", String(place === step));
    button.classList.toggle("later", place > step);
    if (place === step) globalThis.keepInSight(byId("strip"), button);
  });
  for (const button of movers("back")) button.disabled = step === 0;
  for (const button of movers("next")) button.disabled = step === all.target.length - 1;
  byId("so-far-title").textContent = t("stepOf", step + 1, all.target.length);
  const written = all.target.slice(0, step).filter((token) => !isSpecial(token)).join("").replaceAll("\u2581", " ").trim();
  const token = all.target[step], space = written && (token.startsWith("\u2581") || isSpecial(token)) ? " " : "";
  byId("so-far").replaceChildren(written + space, element("mark", {}, readable(token)));
  byId("step-score").textContent = compared(token, Math.exp(all.scores[step]), all.predictions[step]);
  byId("step-score").title = t("logp", all.scores[step].toFixed(3), percent(Math.exp(all.scores[step])));
  showBars(all.predictions[step].map(([name, p]) => [name, p, p]), token);
  byId("drawn").textContent = "";
  if (exact && (draws.temperature !== 1 || draws.top_k || draws.top_p !== 1)) ask();
  grow(step);
}

// How likely a token is beside the likeliest other.
function compared(token, p, likely) {
  const other = likely.find(([name]) => name !== token);
  if (!other || !(p > 0) || !(other[1] > 0)) return t("likely", percent(p));
  const times = (ratio) => (ratio >= 1000 ? `>${number(1000)}` : number(ratio, ratio < 10 ? 1 : 0));
  return p >= other[1] ? t("likelier", percent(p), times(p / other[1]), readable(other[0])) : t("lessLikely", percent(p), times(other[1] / p), readable(other[0]));
}

// Of the tree, what the search had seen by this step; with the last, also what it still tried in vain.
function grow(step) {
  if (!look().search.length) return;
  const ends = step === look().target.length - 1;
  nodes.forEach((candidates, place) => candidates.forEach((node) => {
    node.element.classList.toggle("later", place > step && !ends);
    node.line?.classList.toggle("later", place > step && !ends);
  }));
  markLattice();
}

const soon = later(120, () => ask());

async function ask() {
  asking?.abort();
  const mine = (asking = new AbortController());
  try {
    const answer = await api.numbers(question({ choice: { step: chosen.step, ...draws } }), mine.signal);
    if (asking !== mine) return;
    shownChoice = answer.choice;
    showBars(shownChoice.likely, look().target[chosen.step]);
    byId("drawn").textContent = t("drawn", number(shownChoice.possible));
  } catch (error) {
    if (error.name !== "AbortError") byId("drawn").textContent = error.message;
  }
}

// [token, the model's probability, the probability of being drawn]
function showBars(list, written) {
  const shown = list.slice(0, 10).filter(([token, own, drawn]) => token === written || Math.max(own, drawn) >= LEAST);
  byId("bars").replaceChildren(...shown.map(([token, own, drawn]) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" }), ghost = element("span", { class: "ghost", "aria-hidden": "true" });
    bar.style.width = `${Math.max(drawn > 0 ? 0.5 : 0, 100 * drawn)}%`;
    ghost.style.left = `${100 * own}%`;
    return element("li", { class: token === written ? "written" : null }, element("span", { class: "token" }, readable(token)),
      element("span", { class: "track" }, bar, ghost), element("span", { class: "number" }, percent(drawn)));
  }), shown.length < list.length ? element("li", { class: "muted small rest" }, t("rest")) : "");
}

export function stop() {
  clearInterval(playing);
  playing = null;
  for (const button of movers("play")) button.textContent = t("play");
}

function toggle() {
  if (playing) return stop();
  if (chosen.step === look().target.length - 1) goToStep(0);
  for (const button of movers("play")) button.textContent = t("pause");
  playing = setInterval(() => {
    if (chosen.step === look().target.length - 1) stop();
    else goToStep(chosen.step + 1);
  }, 900);
}
