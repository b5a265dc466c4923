// The third view: runs as they learn.
import * as api from "./api.js";
import { chart } from "./charts.js";
import { byId, element } from "./dom.js";
import { number, say, t } from "./speech.js";
import { writeAddress } from "./store.js";

const EVERY = 3000, QUIET = 300; // milliseconds between looks; seconds without news
// What runs of all tasks log: the field, its words, its axis. Between them stand the metrics that the tasks declare.
const FIRST = [["loss", "cLoss", {}], ["perplexity", "cPerplexity", { log: true }]];
const LAST = [["rate", "cRate", {}], ["tokens_per_second", "cSpeed", { zero: true }]];
const state = { served: false, list: [], first: "", second: "", timer: 0, asking: null };
const kept = new Map(); // name -> {lines, next, samples: Map(step -> of), about}
let moment = null; // the step whose samples are shown; null: the latest

export function build() {
  window.addEventListener("resize", () => { if (!byId("view-runs").hidden && state.list.length) drawCharts(); });
}

export function ready(known) {
  state.served = known.runs;
}

export function enter(values) {
  state.first = values.run ?? state.first;
  state.second = values.with ?? state.second;
  if (!state.served) return empty("noRuns");
  refresh();
}

export function leave() {
  clearTimeout(state.timer);
  state.asking?.abort();
}

export function respeak() {
  if (byId("view-runs").hidden || !state.served) return state.served || empty("noRuns");
  layOut();
}

export const relight = () => { if (state.list.length) drawCharts(); };

function empty(words) {
  byId("runs-body").replaceChildren(element("p", { class: "muted intro" }, t(words)));
  byId("runs-live").textContent = "";
}

const chosen = () => [state.first, state.second].filter(Boolean);
const facts = (name) => kept.get(name)?.about ?? state.list.find((run) => run.name === name);

async function refresh() {
  clearTimeout(state.timer);
  state.asking?.abort();
  const mine = (state.asking = new AbortController());
  try {
    const before = state.list.map((run) => run.name).join("\n");
    state.list = (await api.runs(mine.signal)).runs;
    const names = state.list.map((run) => run.name);
    if (!names.includes(state.first)) state.first = [...state.list].sort((a, b) => b.updated - a.updated)[0]?.name ?? "";
    if (!names.includes(state.second) || state.second === state.first) state.second = "";
    let news = before !== names.join("\n") || !byId("charts");
    for (const name of chosen()) news = (await fetchRun(name, mine.signal)) || news;
    if (!state.list.length) empty("emptyRuns");
    else if (!byId("charts")) layOut();
    else if (news) fill();
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("runs-live").textContent = error.message;
  }
  if (state.asking === mine && !byId("view-runs").hidden) state.timer = setTimeout(refresh, EVERY);
}

async function fetchRun(name, signal) {
  const own = kept.get(name) ?? { lines: [], next: 0, samples: new Map(), about: null };
  let news = !kept.has(name), more = true;
  if (news) await olderSamples(name, own, signal);
  while (more) {
    const found = await api.run(name, own.next, signal);
    if (found.restarted) own.lines = [];
    own.lines.push(...found.lines);
    own.next = found.next;
    own.about = found;
    if (found.samples) own.samples.set(found.samples.step, found.samples.of);
    news ||= found.lines.length > 0;
    more = found.more;
  }
  kept.set(name, own);
  return news;
}

// Samples of earlier validations, where the service tells them.
async function olderSamples(name, own, signal) {
  try {
    for (const { step, of } of (await api.samples(name, signal)).samples) own.samples.set(step, of);
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
}

function layOut() {
  if (!state.list.length) return empty("emptyRuns");
  const choose = (key, id, words, names) => {
    const select = element("select", { id }, ...names.map((name) => element("option", { value: name, selected: name === state[key] }, name || t("nothing"))));
    select.addEventListener("change", () => { state[key] = select.value; moment = null; writeAddress("runs", { run: state.first, with: state.second }); layOut(); refresh(); });
    return element("label", { class: "run-choice" }, element("span", { class: "muted small" }, t(words)), select);
  };
  const names = state.list.map((run) => run.name);
  byId("runs-body").replaceChildren(
    element("div", { class: "row-start run-bar" }, choose("first", "run-first", "allRuns", names), choose("second", "run-second", "compareWith", ["", ...names.filter((name) => name !== state.first)])),
    element("div", { id: "run-states", class: "run-states" }), element("div", { id: "charts", class: "charts" }),
    element("section", { id: "samples", class: "card samples", "aria-labelledby": "samples-title" }));
  fill();
}

function fill() {
  const busy = state.list.filter((run) => chosen().includes(run.name) && !run.finished && !isQuiet(run));
  byId("runs-live").replaceChildren(...(busy.length ? [element("span", { class: "pulse", "aria-hidden": "true" }), t("live")] : []));
  byId("run-states").replaceChildren(...chosen().map((name, place) => standing(facts(name), place)));
  drawCharts();
  drawSamples();
}

const isQuiet = (run) => Date.now() / 1000 - run.updated > QUIET;

function duration(seconds) {
  if (seconds < 60) return t("seconds", Math.ceil(seconds));
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? t("minutes", minutes) : t("hours", Math.floor(minutes / 60), minutes % 60);
}

function standing(run, place) {
  const share = run.steps ? Math.min(1, run.step / run.steps) : 0;
  const bar = element("span", { class: "run-bar-fill" });
  bar.style.width = `${100 * share}%`;
  const where = run.finished ? t("runDone") : isQuiet(run) ? t("runStopped", new Date(1000 * run.updated).toLocaleTimeString()) : run.seconds_left ? t("timeLeft", duration(run.seconds_left)) : "";
  const scores = run.metrics.filter(({ name }) => Number.isFinite(run.valid?.[name]))
    .map(({ name, label, decimals }) => `${say(label)} ${number(run.valid[name], decimals)}`);
  return element("div", { class: `run-state run-${place}` },
    element("div", { class: "row" }, element("h2", {}, element("span", { class: "run-dot", "aria-hidden": "true" }), run.name), element("p", { class: "number-text" }, scores.join(" · "))),
    element("div", { class: "run-track", role: "progressbar", "aria-label": t("progressOf", run.name), "aria-valuenow": Math.round(100 * share), "aria-valuemin": 0, "aria-valuemax": 100 }, bar),
    element("div", { class: "row small muted number-text" }, element("span", {}, run.steps ? t("runStep", number(run.step), number(run.steps)) : t("atStep", number(run.step))), element("span", {}, where)));
}

// Of all chosen runs: by field a title and how it is drawn.
function fields() {
  const fixed = (list) => list.map(([field, words, options]) => [field, [t(words), options]]);
  const metrics = chosen().flatMap((name) => facts(name)?.metrics ?? []).map(({ name, label, better }) =>
    [name, [titled(say(label)), { hint: t(better === "high" ? "higherBetter" : "lowerBetter") }]]);
  const own = new Set([...FIRST, ...LAST].map(([field]) => field));
  return new Map([...fixed(FIRST), ...metrics.filter(([name]) => !own.has(name)), ...fixed(LAST)]);
}

// "accuracy" begins a title as "Accuracy"; "chrF" is a name and stays.
const titled = (text) => (text === text.toLowerCase() ? text.charAt(0).toUpperCase() + text.slice(1) : text);

function drawCharts() {
  if (!byId("charts")) return;
  const figures = [...fields()].map(([field, [title, options]]) => {
    const series = chosen().flatMap((name, place) => ["step", "valid"].map((kind) => ({
      name, place, kind, points: (kept.get(name)?.lines ?? []).filter((line) => line.kind === kind && Number.isFinite(line[field])).map((line) => [line.step, line[field]]),
    }))).filter((one) => one.points.length);
    return series.length ? chart(title, series, options) : null;
  });
  byId("charts").replaceChildren(...figures.filter(Boolean));
}

function drawSamples() {
  const runs = chosen().map((name, place) => ({ name, place, samples: kept.get(name)?.samples ?? new Map() }));
  const steps = [...new Set(runs.flatMap((run) => [...run.samples.keys()]))].sort((a, b) => a - b);
  const holder = byId("samples");
  const title = element("h2", { id: "samples-title" }, t("samplesTitle"));
  if (!steps.length) return holder.replaceChildren(title, element("p", { class: "muted" }, t("noSamples")));
  const body = element("div", { class: "sample-list" });
  const slider = element("input", { type: "range", id: "moment", min: 0, max: steps.length - 1, "aria-label": t("sampleStep") });
  const said = element("output", { class: "number-text" });
  const showAt = (place) => {
    slider.value = place;
    said.textContent = t("atStep", number(steps[place]));
    slider.setAttribute("aria-valuetext", said.textContent);
    body.replaceChildren(...samplesAt(runs, steps[place]));
  };
  slider.addEventListener("input", () => { const place = Number(slider.value); moment = place === steps.length - 1 ? null : steps[place]; showAt(place); });
  holder.replaceChildren(title, element("p", { class: "intro" }, t("samplesText")), element("div", { class: "row-start slider" }, slider, said), body);
  showAt(moment === null || !steps.includes(moment) ? steps.length - 1 : steps.indexOf(moment));
}

// Of each run the samples of this step, or of the last validation before it.
function samplesAt(runs, step) {
  const found = runs.map((run) => {
    const at = Math.max(...[...run.samples.keys()].filter((other) => other <= step));
    return { ...run, of: run.samples.get(at) ?? [], said: at === step ? null : element("span", { class: "small muted sample-step" }, t("atStep", number(at))) };
  });
  const sources = [...new Map(found.flatMap((run) => run.of.map((one) => [one.source, one.reference])))];
  return sources.map(([source, reference]) => element("div", { class: "sample" },
    element("p", { class: "sample-source" }, source), element("p", { class: "muted" }, element("span", { class: "small" }, `${t("reference")}: `), reference),
    ...found.map((run) => run.of.filter((one) => one.source === source).map((one) => element("p", { class: `sample-said run-${run.place}` },
      element("span", { class: "run-dot", "aria-hidden": "true" }), found.length > 1 && element("span", { class: "hidden-title" }, `${run.name}: `), one.translation, run.said?.cloneNode(true)))).flat()));
}
