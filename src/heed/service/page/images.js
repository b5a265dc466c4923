// An image is dropped: its classes, what each head looks at from the patch one points at, and attention rollout.
import * as api from "./api.js";
import { byId, element } from "./dom.js";
import { bars, base64, imageFrame } from "./read-parts.js";
import { number, t } from "./speech.js";

const own = (part) => byId(`images-${part}`);
const view = { known: [], model: null, found: null, layer: 0, wanted: 0, head: null, patch: null, kept: null, rollout: true };
const TINT = [255, 122, 26]; // the colour of what is looked at
const PAUSE = 80; // milliseconds that the slider rests before a layer is asked for
let asking = null, fetching = null, last = null;

export function build() {
  const drop = element("label", { class: "drop image-drop", id: "images-drop" },
    element("input", { id: "images-file", type: "file", accept: "image/*", class: "hidden-title", onchange: (event) => take(event.target.files[0]) }),
    element("strong", { "data-t": "images_choose" }), element("span", { class: "muted small", "data-t": "images_kinds" }));
  const picture = element("div", { class: "image-pane" }, drop,
    element("div", { id: "images-stage", class: "image-stage", hidden: true },
      element("canvas", { id: "images-canvas", role: "img", tabindex: 0, "data-label": "images_canvas", onmousemove: point, onmouseleave: () => aim(view.kept), onclick: keep, onkeydown: step })),
    element("p", { id: "images-says", class: "muted small", role: "status" }));
  const answer = element("div", { class: "read-answer" },
    element("div", { id: "images-out", class: "read-out", role: "group", "data-label": "images_classes" }),
    element("div", { class: "pane-foot" }, element("p", { id: "images-status", class: "muted small", role: "status" })));
  const heads = element("div", { id: "images-inside", class: "card image-inside", hidden: true },
    element("div", { class: "row" },
      element("h2", { "data-t": "images_heads" }),
      element("div", { class: "row-start" },
        element("label", { class: "small", for: "images-layer", id: "images-layer-name" }),
        element("input", { id: "images-layer", type: "range", min: 1, step: 1, oninput: () => toLayer(own("layer").value - 1) }),
        element("button", { type: "button", id: "images-rollout", class: "quiet", "aria-pressed": "true", "data-t": "images_rollout", onclick: () => { view.rollout = !view.rollout; draw(); } }))),
    element("div", { id: "images-maps", class: "image-maps" }));
  imageFrame("images", "images", { pick: (name) => { choose(name); if (last) go(last); }, take, panes: [picture, answer], more: [heads] });
}

export function ready(known) {
  view.known = known.images ?? [];
  if (view.known.length) choose(view.known[0].name);
}

export const enter = () => show();

export function respeak() {
  if (view.model) { describe(); show(); }
}

function choose(name) {
  view.model = view.known.find((one) => one.name === name) ?? view.known[0];
  own("model").replaceChildren(...view.known.map((one) => element("option", { value: one.name, selected: one === view.model }, one.name)));
  own("model-label").hidden = view.known.length < 2;
  describe();
}

function describe() {
  const { name, kind, weights, labels, size, patch } = view.model;
  own("about").textContent = t("images_about", name, kind, number(weights / 1e6, 1), number(labels.length), size, patch);
}

async function take(file) {
  if (!file) return;
  last = await base64(file);
  go(last);
}

async function go(image) {
  asking?.abort();
  fetching?.abort();
  const mine = (asking = new AbortController());
  own("out").classList.add("stale");
  own("status").textContent = t("asking");
  try {
    const found = await api.lookImage({ image, model: view.model.name }, mine.signal);
    if (asking !== mine) return;
    view.found = { ...found, image, maps: new Map([[found.layer - 1, heads(found)]]), bytes: decoded(found.pixels) };
    Object.assign(view, { layer: found.layer - 1, wanted: found.layer - 1, head: null, patch: null, kept: null, rollout: true });
    show();
    own("status").textContent = t("took", number(found.seconds, 2));
  } catch (error) {
    if (error.name === "AbortError" || asking !== mine) return;
    view.found = null;
    show();
    own("out").replaceChildren(element("p", { class: "error", role: "alert" }, error.message));
  }
}

// The heads of a layer are asked for when they are looked at; those of the layer before stay until they are here.
async function toLayer(layer) {
  fetching?.abort();
  const mine = (fetching = new AbortController()), { found } = view;
  Object.assign(view, { wanted: layer, rollout: false });
  draw();
  if (view.layer === layer) return;
  try {
    await new Promise((done) => setTimeout(done, PAUSE));
    if (mine.signal.aborted) return;
    own("status").textContent = t("asking");
    const more = await api.lookImage({ image: found.image, model: found.model, layer: layer + 1 }, mine.signal);
    if (fetching !== mine || view.found !== found) return;
    found.maps.set(layer, heads(more));
    own("status").textContent = t("took", number(more.seconds, 2));
  } catch (error) {
    if (error.name === "AbortError" || fetching !== mine || view.found !== found) return;
    view.wanted = view.layer;
    own("status").textContent = error.message;
  }
  draw();
}

const heads = (found) => new Uint16Array(decoded(found.attention).buffer);
const decoded = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));

function show() {
  const { found } = view;
  own("out").classList.remove("stale");
  own("status").textContent = "";
  own("stage").hidden = own("inside").hidden = !found;
  if (!found) return void own("out").replaceChildren(element("p", { class: "muted" }, t("images_empty")));
  const rows = found.classes.map(({ label, probability }) => ({ name: label, share: probability }));
  own("out").replaceChildren(element("p", { class: "read-label-found" }, found.classes[0].label), bars(rows, { label: t("images_classes") }));
  own("layer").max = found.layers;
  draw();
}

// Weights of all patches, from the patch that is pointed at, or from what is classified.
function weights(head) {
  const { positions, class_token, maps, rows } = view.found, first = class_token ? 1 : 0, attention = maps.get(view.layer);
  const row = (query) => Array.from({ length: rows * rows }, (_, i) => attention[(head * positions + query) * positions + first + i] / 65535);
  if (view.patch !== null) return row(first + view.patch);
  if (class_token) return row(0);
  const sum = new Array(rows * rows).fill(0);
  for (let query = 0; query < positions; query++) row(query).forEach((value, i) => (sum[i] += value / positions));
  return sum;
}

function shownWeights() {
  const { found, head, rollout, patch } = view;
  if (rollout && patch === null) return found.rollout;
  if (head !== null) return weights(head);
  const each = Array.from({ length: found.heads }, (_, i) => weights(i));
  return each[0].map((_, i) => each.reduce((sum, one) => sum + one[i], 0) / each.length);
}

function draw() {
  const { found, wanted, rollout, patch, head } = view;
  if (!found) return;
  if (found.maps.has(wanted)) view.layer = wanted;
  const { layer } = view;
  own("layer").value = wanted + 1;
  own("layer-name").textContent = t("images_layer", wanted + 1, found.layers);
  own("rollout").setAttribute("aria-pressed", String(rollout));
  paint(own("canvas"), Math.max(1, Math.round(420 / found.size)), shownWeights(), patch);
  const what = patch !== null ? t("images_fromPatch", Math.floor(patch / found.rows) + 1, (patch % found.rows) + 1) : rollout ? t("images_isRollout") : t("images_fromWhole");
  own("says").textContent = patch === null && rollout ? what : `${what} ${head === null ? t("images_meanOfHeads", layer + 1) : t("images_oneHead", layer + 1, head + 1)}`;
  const maps = own("maps");
  maps.classList.toggle("stale", layer !== wanted);
  if (maps.children.length !== found.heads) maps.replaceChildren(...Array.from({ length: found.heads }, (_, i) => tile(i)));
  [...maps.children].forEach((node, i) => {
    node.setAttribute("aria-pressed", String(head === i));
    node.querySelector("span").textContent = found.mean_of_heads ? t("images_allHeads") : t("images_head", i + 1);
    paint(node.querySelector("canvas"), Math.max(1, Math.round(112 / found.size)), weights(i), patch);
  });
}

function tile(head) {
  const press = () => { view.head = view.head === head ? null : head; view.rollout = false; draw(); };
  return element("button", { type: "button", class: "image-map", "aria-pressed": "false", onclick: press }, element("canvas", { "aria-hidden": "true" }), element("span", { class: "small muted" }));
}

// The image in grey, with what is looked at in colour, and the patch that looks outlined.
function paint(canvas, scale, shares, patch) {
  const { size, channels, bytes, rows } = view.found, side = size / rows, most = Math.max(...shares, 1e-9);
  canvas.width = canvas.height = size * scale;
  const context = canvas.getContext("2d"), image = context.createImageData(size, size);
  for (let i = 0; i < size * size; i++) {
    const share = shares[Math.floor(Math.floor(i / size) / side) * rows + Math.floor((i % size) / side)] / most;
    const light = channels === 3 ? 0.3 * bytes[3 * i] + 0.59 * bytes[3 * i + 1] + 0.11 * bytes[3 * i + 2] : bytes[i];
    for (let channel = 0; channel < 3; channel++) image.data[4 * i + channel] = (1 - 0.62 * share) * light + 0.62 * share * TINT[channel];
    image.data[4 * i + 3] = 255;
  }
  const small = new OffscreenCanvas(size, size);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (patch === null) return;
  context.lineWidth = Math.max(2, scale / 2);
  context.strokeStyle = "#35d0d6";
  context.strokeRect((patch % rows) * side * scale, Math.floor(patch / rows) * side * scale, side * scale, side * scale);
}

function under({ clientX, clientY }) {
  const box = own("canvas").getBoundingClientRect(), { rows } = view.found;
  const at = (value, start, length) => Math.min(rows - 1, Math.max(0, Math.floor((rows * (value - start)) / length)));
  return at(clientY, box.top, box.height) * rows + at(clientX, box.left, box.width);
}

function aim(patch) {
  if (view.patch === patch) return;
  view.patch = patch;
  draw();
}

const point = (event) => view.found && aim(under(event));

function keep(event) {
  const patch = under(event);
  view.kept = view.kept === patch ? null : patch;
  aim(view.kept);
}

// Arrows move the patch; Escape lets it go.
function step(event) {
  const { rows } = view.found, by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -rows, ArrowDown: rows }[event.key];
  if (event.key === "Escape") return void ((view.kept = null), aim(null));
  if (by === undefined) return;
  event.preventDefault();
  const next = view.patch === null ? 0 : view.patch + by;
  if (next >= 0 && next < rows * rows) aim((view.kept = next));
}
