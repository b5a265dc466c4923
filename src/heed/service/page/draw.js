// A model draws: pixels appear as they come, from nothing, by class, from the upper part of an image, or from a small one.
import * as api from "./api.js";
import { byId, element, save } from "./dom.js";
import { base64, imageFrame } from "./read-parts.js";
import { number, t } from "./speech.js";

const own = (part) => byId(`drawing-${part}`);
const COUNTS = [1, 4, 9, 16], GAP = 2; // pixels of the model between two images
const view = { known: [], model: null, given: null, drawn: null, asking: null, said: null };

export function build() {
  const field = (name, words, ...inputs) => element("label", { id: `drawing-${name}-label` }, element("span", { "data-t": words }), ...inputs);
  const settings = element("form", { id: "drawing-form", class: "image-pane drawing-form", "data-label": "draw_settings", onsubmit: (event) => { event.preventDefault(); go(); } },
    field("class", "draw_class", element("select", { id: "drawing-class" })),
    field("count", "draw_count", element("select", { id: "drawing-count" }, ...COUNTS.map((one) => element("option", { value: one }, String(one))))),
    field("temperature", "draw_temperature", element("input", { id: "drawing-temperature", type: "range", min: 0.1, max: 1.5, step: 0.05, value: 1, oninput: temperature }), element("output", { id: "drawing-degrees", for: "drawing-temperature" })),
    field("seed", "draw_seed", element("input", { id: "drawing-seed", type: "number", min: 0, max: 2 ** 31, step: 1, "data-placeholder": "draw_random" })),
    element("label", { class: "drop image-drop", id: "drawing-drop" },
      element("input", { id: "drawing-file", type: "file", accept: "image/*", class: "hidden-title", onchange: (event) => { take(event.target.files[0]); event.target.value = ""; } }),
      element("strong", { id: "drawing-drop-title" }), element("span", { id: "drawing-drop-how", class: "muted small" })),
    element("div", { id: "drawing-given", class: "drawing-given", hidden: true },
      element("canvas", { id: "drawing-given-canvas", role: "img", "data-label": "draw_given" }),
      element("div", {},
        element("label", { id: "drawing-keep-label", for: "drawing-keep" }, element("span", { id: "drawing-keep-name" }),
          element("input", { id: "drawing-keep", type: "range", min: 10, max: 90, step: 5, value: 50, oninput: () => { showGiven(); } })),
        element("button", { type: "button", id: "drawing-remove", class: "quiet", "data-t": "draw_remove", onclick: () => { view.given = null; showGiven(); own("file").focus(); } }),
        element("p", { id: "drawing-given-size", class: "muted small" }))),
    element("div", { class: "row-start" },
      element("button", { type: "submit", id: "drawing-go", class: "quiet strong", "data-t": "draw_go" }),
      element("button", { type: "button", id: "drawing-stop", class: "quiet", "data-t": "draw_stop", hidden: true, onclick: stop })));
  const answer = element("div", { class: "read-answer" },
    element("div", { id: "drawing-out", class: "read-out drawing-out" },
      element("p", { id: "drawing-empty", class: "muted", "data-t": "draw_empty" }),
      element("p", { id: "drawing-error", class: "error", role: "alert", hidden: true }),
      element("canvas", { id: "drawing-canvas", role: "img", hidden: true }),
      element("progress", { id: "drawing-progress", max: 1, value: 0, "data-label": "draw_progress", hidden: true })),
    element("div", { class: "pane-foot" }, element("p", { id: "drawing-status", class: "muted small", role: "status" }),
      element("button", { type: "button", id: "drawing-download", class: "quiet", "data-t": "draw_download", hidden: true, onclick: download })));
  imageFrame("draw", "drawing", { pick: choose, take, panes: [settings, answer] });
}

export function ready(known) {
  view.known = known.image_generators ?? [];
  if (view.known.length) choose(view.known[0].name);
}

export const enter = () => paint();

export const leave = stop;

export function respeak() {
  if (!view.model) return;
  describe();
  showGiven();
  tell(...(view.said ?? []));
  name();
}

function choose(name) {
  stop();
  view.model = view.known.find((one) => one.name === name) ?? view.known[0];
  own("model").replaceChildren(...view.known.map((one) => element("option", { value: one.name, selected: one === view.model }, one.name)));
  own("model-label").hidden = view.known.length < 2;
  describe();
  keepAll();
  showGiven();
  temperature();
}

function describe() {
  const { name, kind, weights, size, labels } = view.model;
  own("about").textContent = t("draw_about", name, kind, number(weights / 1e6, 1), size);
  const chosen = own("class").value;
  own("class").replaceChildren(element("option", { value: "" }, t("draw_anyClass")), ...labels.map((one) => element("option", { value: one, selected: one === chosen }, one)));
  own("class-label").hidden = !labels.length;
}

const temperature = () => void (own("degrees").textContent = number(+own("temperature").value, 2));

// The image that is given

async function take(file) {
  if (!file) return;
  try {
    view.given = { data: await base64(file), picture: await createImageBitmap(file) };
    fail(null);
    keepAll();
  } catch {
    fail(t("draw_unreadable"));
  }
  showGiven();
}

// A picture wider than it is tall is an upper part itself: its height at the model's width. Otherwise null.
function partHeight() {
  const { given, model } = view, { picture } = given ?? {};
  if (!given || model.enlarges || picture.height >= picture.width) return null;
  const height = Math.max(1, Math.round((picture.height * model.size) / picture.width));
  return height < model.size ? height : null;
}

// At first all of an upper part is kept, and half of a whole picture.
function keepAll() {
  const height = partHeight(), most = height === null ? 90 : Math.max(1, Math.floor((100 * height) / view.model.size));
  const [low, step, value] = height === null ? [10, 5, 50] : [1, 1, most];
  Object.assign(own("keep"), { min: low, max: most, step, value });
}

const keepsAll = () => partHeight() !== null && own("keep").value === own("keep").max;

// As the model reads it: an upper part, or the middle of a whole picture; what is not kept is faint.
function showGiven() {
  const { given, model } = view, { size, enlarges } = model, keep = enlarges ? 1 : +own("keep").value / 100;
  own("drop-title").textContent = t(enlarges ? "draw_enlarge" : "draw_complete");
  own("drop-how").textContent = enlarges ? t("draw_enlargeHow", enlarges, size) : t("draw_completeHow");
  own("given").hidden = !given;
  own("keep-label").hidden = Boolean(enlarges);
  own("keep-name").textContent = t("draw_keep", own("keep").value);
  own("given-size").textContent = "";
  if (!given) return;
  const { picture } = given, side = Math.min(picture.width, picture.height), canvas = own("given-canvas"), shown = enlarges || size;
  const part = partHeight(), height = part ?? shown;
  canvas.width = canvas.height = shown;
  const context = canvas.getContext("2d"), kept = keepsAll() ? part : Math.min(height, Math.max(1, Math.round(keep * shown)));
  const corner = part === null ? [(picture.width - side) / 2, (picture.height - side) / 2, side, side] : [0, 0, picture.width, picture.height];
  if (part !== null) own("keep-name").textContent = t("draw_keepRows", kept, part);
  if (picture.width !== shown || picture.height !== height) own("given-size").textContent = t("draw_resized", picture.width, picture.height, shown, height);
  context.globalAlpha = 0.25;
  context.drawImage(picture, ...corner, 0, 0, shown, height);
  context.globalAlpha = 1;
  context.save();
  context.beginPath();
  context.rect(0, 0, shown, kept);
  context.clip();
  context.clearRect(0, 0, shown, kept);
  context.drawImage(picture, ...corner, 0, 0, shown, height);
  context.restore();
}

// Drawing

function request() {
  const { model, given } = view, seed = own("seed").value.trim();
  return {
    model: model.name, count: +own("count").value, temperature: +own("temperature").value,
    ...(own("class").value && model.labels.length ? { label: own("class").value } : {}),
    ...(seed ? { seed: +seed } : {}),
    ...(given && model.enlarges ? { enlarge: given.data } : {}),
    ...(given && !model.enlarges ? { complete: given.data, ...(keepsAll() ? {} : { keep: +own("keep").value / 100 }) } : {}),
  };
}

async function go() {
  stop();
  fail(null);
  if (view.model.enlarges && !view.given) return void (fail(t("draw_needs")), own("file").focus());
  const mine = (view.asking = new AbortController()), began = performance.now();
  view.drawn = null;
  working(true);
  tell("draw_begins");
  paint();
  try {
    for await (const data of api.drawing(request(), mine.signal)) {
      if (view.asking !== mine) return;
      if (data.offsets) begin(data);
      else add(data);
    }
    if (view.asking === mine) tell("draw_done", number((performance.now() - began) / 1000, 1), view.drawn.seed);
  } catch (error) {
    if (error.name === "AbortError" || view.asking !== mine) return;
    tell();
    fail(error.message);
  }
  view.asking = null;
  working(false);
  paint();
}

function begin(head) {
  const bytes = decoded(head.offsets), offsets = new Uint32Array(bytes.buffer), { size, channels, count } = head;
  view.drawn = {
    ...head, offsets, done: 0, columns: Math.ceil(Math.sqrt(count)),
    pixels: Array.from({ length: count }, () => new Uint8Array(size * size * channels)), known: new Uint8Array(size * size),
  };
}

function add({ turn, values }) {
  const { drawn } = view, { count, channels, offsets, pixels, known } = drawn, bytes = decoded(values), step = count * drawn.values;
  for (let at = 0; at < bytes.length; at += step, turn++) {
    const offset = offsets[turn];
    known[Math.floor(offset / channels)] = 1;
    for (let image = 0; image < count; image++) pixels[image].set(bytes.subarray(at + image * drawn.values, at + (image + 1) * drawn.values), offset);
  }
  drawn.done = turn;
  requestAnimationFrame(paint);
}

function stop() {
  if (!view.asking) return;
  view.asking.abort();
  view.asking = null;
  working(false);
  if (view.drawn) tell("draw_stopped", share(), view.drawn.seed);
  else tell();
  paint();
}

const share = () => Math.floor((100 * view.drawn.done) / view.drawn.turns);

function working(yes) {
  own("stop").hidden = own("progress").hidden = !yes;
  own("out").setAttribute("aria-busy", String(yes));
}

function tell(word, ...values) {
  view.said = word ? [word, ...values] : null;
  own("status").textContent = word ? t(word, ...values) : "";
}

function fail(message) {
  own("error").hidden = !message;
  own("error").textContent = message ?? "";
  own("empty").hidden = Boolean(message || view.drawn || view.asking);
}

function paint() {
  const { drawn, asking } = view;
  own("canvas").hidden = !drawn;
  own("download").hidden = !drawn || Boolean(asking);
  own("empty").hidden = Boolean(drawn || asking || !own("error").hidden);
  if (!drawn) return own("progress").removeAttribute("value");
  own("progress").value = drawn.done / drawn.turns;
  picture(own("canvas"), drawn, drawn.done < drawn.turns && Boolean(asking));
  name();
}

const name = () => view.drawn && own("canvas").setAttribute("aria-label", t("draw_canvas", share()));

// Images side by side; what is not drawn yet is clear, and the newest pixel is marked.
function picture(canvas, drawn, marked) {
  const { size, channels, count, columns, pixels, known, done, offsets } = drawn, step = size + GAP;
  canvas.width = columns * step - GAP;
  canvas.height = Math.ceil(count / columns) * step - GAP;
  const context = canvas.getContext("2d"), image = context.createImageData(size, size);
  const newest = marked && done ? Math.floor(offsets[done - 1] / channels) : -1;
  pixels.forEach((bytes, which) => {
    for (let i = 0; i < size * size; i++) {
      for (let channel = 0; channel < 3; channel++) image.data[4 * i + channel] = bytes[channels * i + (channels === 3 ? channel : 0)];
      image.data[4 * i + 3] = known[i] ? 255 : 0;
    }
    if (newest >= 0) image.data.set([255, 122, 26, 255], 4 * newest);
    context.putImageData(image, (which % columns) * step, Math.floor(which / columns) * step);
  });
}

// As large as on the page: small images would be looked at blurred.
function download() {
  const { drawn } = view, small = document.createElement("canvas"), large = document.createElement("canvas");
  picture(small, drawn, false);
  const scale = Math.max(1, Math.floor(512 / small.width));
  large.width = small.width * scale;
  large.height = small.height * scale;
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, large.width, large.height);
  large.toBlob((blob) => save(`${drawn.model}-${drawn.seed}.png`, blob));
}

const decoded = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
