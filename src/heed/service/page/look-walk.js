// The first stations: tokens, embeddings, positions, layers; and the states of recurrent models.
import { byId, element, unitUnder } from "./dom.js";
import { isAlone, isSpecial, look, readable } from "./look-data.js";
import { t } from "./speech.js";

let numbers = null, layer = 0;
const SIDE = { encoder: "sideEncoder", decoder: "sideDecoder" };

export function cards(found, why) {
  numbers = found;
  layer = numbers?.encoder.layers ? Math.min(layer, numbers.encoder.layers.length - 1) : 0;
  const all = { Tokens: tokens() };
  if (!numbers && why) all.Tokens.push(element("p", { class: "muted small" }, t("noNumbers", why)));
  else if (numbers) all.Embeddings = station([t("embeddingsText", numbers.dim), scaled(), t("unitsText", numbers.encoder.embeddings[0].length)].join(" "), "embeddings");
  if (numbers?.encoder.layers) {
    all.Positions = station(t("positionsText"), "positions");
    all.Layers = [intro(t("layersText")), layerSlider(), ...vectors("layers")];
  }
  if (look().states) all.States = states();
  return all;
}

// By what the embeddings were multiplied; some models do not.
function scaled() {
  const { scale, dim } = numbers;
  if (scale === 1) return "";
  return t("scaledText", Math.abs(scale * scale - dim) < 1e-3 ? `√${dim}` : String(Number(scale.toFixed(4))));
}

const intro = (text) => element("p", { class: "intro" }, text);
const station = (text, kind) => [intro(text), ...vectors(kind)];

function tokens() {
  const line = (name, side, ids) => element("div", { class: "token-line" }, element("h3", {}, t(isAlone() ? "tokensOfText" : SIDE[side])),
    element("ul", { class: "chips" }, ...look()[name].map((token, place) => element("li", { class: isSpecial(token) ? "chip special" : "chip" },
      element("span", { class: "chip-text" }, token.replaceAll("\u2581", "\u00b7")),
      ids && element("span", { class: "chip-id number-text" }, String(ids[place]))))));
  return [intro(t("tokensText")), look().source.length ? line("source", "encoder", numbers?.encoder.ids ?? look().ids) : null,
    look().inputs.length ? line("inputs", "decoder", numbers?.decoder.ids ?? look().ids) : null].filter(Boolean);
}

function vectors(kind) {
  const maps = ["encoder", "decoder"].map((side) => {
    const rows = rowsOf(side, kind), names = numbers[side].tokens.map(readable);
    const title = t("vectorsOf", t(SIDE[side]), rows.length, rows[0].length);
    const canvas = element("canvas", { role: "img", "aria-label": title, "data-side": side, "data-kind": kind, class: "vectors" });
    canvas.style.height = `${18 * rows.length}px`;
    canvas.addEventListener("pointermove", (event) => tell(event, canvas));
    canvas.addEventListener("pointerleave", () => (byId(`unit-${kind}`).textContent = ""));
    return element("div", { class: "state-map" }, element("h3", {}, title), element("ol", {}, ...names.map((name) => element("li", {}, name))), canvas);
  });
  return [element("div", { class: "state-maps two" }, ...maps), element("p", { class: "readout small", id: `unit-${kind}`, role: "status" })];
}

function rowsOf(side, kind) {
  const own = numbers[side];
  return kind === "layers" ? own.layers[Math.min(layer, own.layers.length - 1)] : own[kind];
}

function layerSlider() {
  const most = Math.max(numbers.encoder.layers.length, numbers.decoder.layers.length) - 1;
  const name = () => (layer ? t("afterLayer", layer) : t("layerInput"));
  const said = element("output", { class: "number-text" }, name());
  const slider = element("input", { type: "range", id: "layer", min: 0, max: most, value: layer, "aria-label": t("sLayers"), "aria-valuetext": name() });
  slider.addEventListener("input", () => {
    layer = Number(slider.value);
    said.textContent = name();
    slider.setAttribute("aria-valuetext", name());
    draw();
  });
  return element("div", { class: "row-start slider" }, slider, said);
}

export function draw() {
  if (!numbers) return;
  for (const canvas of document.querySelectorAll("canvas.vectors")) {
    const rows = rowsOf(canvas.dataset.side, canvas.dataset.kind);
    const sizes = rows.flat().map(Math.abs).sort((a, b) => a - b);
    drawSigned(canvas, rows, Math.max(1e-6, sizes[Math.floor(sizes.length * 0.98)])); // a few outliers should not pale the rest
  }
}

function tell(event, canvas) {
  const { side, kind } = canvas.dataset, rows = rowsOf(side, kind), [row, unit] = unitUnder(event, rows);
  byId(`unit-${kind}`).textContent = t("unitIs", readable(numbers[side].tokens[row]), unit + 1, rows[row][unit].toFixed(4));
}

function states() {
  return [intro(t("statesText")), element("div", { id: "states" }, element("div", { id: "state-maps", class: "state-maps" })),
    element("p", { id: "state-readout", class: "readout small", role: "status" })];
}
