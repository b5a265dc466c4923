// One token on its way through one layer: the mixing of heads (W_O), residual, norm and feed-forward network, with their numbers.
import * as api from "./api.js";
import { byId, element } from "./dom.js";
import { readable } from "./look-data.js";
import { t } from "./speech.js";

const NAMES = { attention: "partAttention", cross: "partCross", "feed-forward": "partFeedForward" };
const STEPS = ["before", "added", "sum", "after"];
const place = { part: "encoder", layer: 0, row: 0 };
let question = null, numbers = null, found = null, asking = null;

export function cards(known, ask) {
  numbers = known;
  question = ask;
  found = null;
  if (!numbers?.encoder.layers) return {};
  const intro = (text) => element("p", { class: "intro" }, t(text));
  const body = (name) => element("div", { id: `${name}-body`, class: "layer-body" });
  const field = (id, label) => element("label", { class: "check" }, t(label), element("select", { id }));
  return {
    Mixing: [intro("mixingText"), element("div", { class: "row-start layer-choice" }, field("layer-part", "layerStack"), field("layer-number", "sLayers"), field("layer-row", "layerToken")), body("mixing")],
    Residual: [intro("residualText"), body("residual")],
    Norm: [intro("normText"), body("norm")],
    FeedForward: [intro("feedForwardText"), body("feed-forward")],
  };
}

export function begin() {
  if (!byId("layer-part")) return;
  fill();
  for (const [id, name] of [["layer-part", "part"], ["layer-number", "layer"], ["layer-row", "row"]]) {
    byId(id).addEventListener("change", (event) => {
      place[name] = name === "part" ? event.target.value : Number(event.target.value);
      fill();
      ask();
    });
  }
  ask();
}

function fill() {
  const own = numbers[place.part], option = (value, text, chosen) => element("option", { value, selected: value === chosen }, text);
  place.layer = Math.min(place.layer, own.layers.length - 2);
  place.row = Math.min(place.row, own.tokens.length - 1);
  byId("layer-part").replaceChildren(...["encoder", "decoder"].map((part) => option(part, t(part === "encoder" ? "sideEncoder" : "sideDecoder"), place.part)));
  byId("layer-number").replaceChildren(...own.layers.slice(1).map((_, number) => option(number, String(number + 1), place.layer)));
  byId("layer-row").replaceChildren(...own.tokens.map((token, row) => option(row, `${row + 1}. ${readable(token)}`, place.row)));
}

async function ask() {
  asking?.abort();
  const mine = (asking = new AbortController());
  try {
    const answer = await api.numbers(question({ token: { ...place } }), mine.signal);
    if (asking !== mine) return;
    found = answer.token;
    draw();
  } catch (error) {
    if (error.name !== "AbortError" && asking === mine) byId("mixing-body").replaceChildren(element("p", { class: "error" }, error.message));
  }
}

const partName = (own) => t(NAMES[own.name]);
const cell = (text) => element("td", { class: "number-text" }, text);

function table(name, columns, rows) {
  return element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": name }, element("table", { class: "layer-table" },
    element("thead", {}, element("tr", {}, ...columns.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...rows)));
}

const row = (title, ...cells) => element("tr", {}, element("th", { scope: "row" }, title), ...cells);

export function draw() {
  if (!found || !byId("mixing-body")) return;
  byId("mixing-body").replaceChildren(...found.filter((own) => own.heads).map(mixing));
  byId("residual-body").replaceChildren(residual(), ...found.map(vectors));
  byId("norm-body").replaceChildren(normed());
  byId("feed-forward-body").replaceChildren(...found.filter((own) => own.hidden).map(hidden));
  for (const canvas of byId("residual-body").querySelectorAll("canvas")) drawSigned(canvas, canvas.rows, canvas.highest);
}

// How much each head gives to the output.
function mixing(own) {
  const most = Math.max(1e-6, ...own.heads);
  const rows = own.heads.map((size, head) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * size) / most}%`;
    return row(t("headNumber", head + 1), element("td", { class: "number-text weight" }, element("span", { class: "track" }, bar), size.toFixed(3)));
  });
  return element("div", {}, element("h3", {}, partName(own)), table(partName(own), [t("headColumn"), "‖W_O z‖"], rows));
}

function residual() {
  return table(t("sResidual"), [t("partColumn"), ...STEPS.map((step) => t(`step_${step}`))],
    found.map((own) => row(partName(own), ...STEPS.map((step) => cell(own.norms[step].toFixed(3))))));
}

function vectors(own) {
  const canvas = element("canvas", { role: "img", "aria-label": `${partName(own)}: ${STEPS.map((step) => t(`step_${step}`)).join(", ")}` });
  canvas.rows = STEPS.map((step) => own[step]);
  canvas.highest = Math.max(1e-6, ...canvas.rows.flat().map(Math.abs));
  canvas.style.height = `${18 * STEPS.length}px`;
  return element("div", { class: "state-map" }, element("h3", {}, partName(own)), element("ol", {}, ...STEPS.map((step) => element("li", {}, t(`step_${step}`)))), canvas);
}

function normed() {
  const figures = (spread) => [cell(spread.mean.toFixed(3)), cell(spread.deviation.toFixed(3))];
  const order = found[0].order === "pre" ? "orderPre" : "orderPost";
  return element("div", {}, element("p", { class: "small" }, t(order)),
    table(t("sNorm"), [t("partColumn"), t("meanBefore"), t("deviationBefore"), t("meanAfter"), t("deviationAfter")],
      found.map((own) => row(partName(own), ...figures(own.norm.from), ...figures(own.norm.to)))));
}

function hidden(own) {
  const { size, active, largest } = own.hidden;
  return element("div", {}, element("p", {}, t("hiddenActive", active, size)),
    table(t("sFeedForward"), [t("unitColumn"), t("valueColumn")], largest.map(([unit, value]) => row(String(unit + 1), cell(value.toFixed(3))))));
}
