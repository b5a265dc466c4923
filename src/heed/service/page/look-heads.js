// All heads at a glance, and one map in detail.
import { byId, element, save } from "./dom.js";
import { SIDES, attends, axis, chosen, highest, highestOfPart, isAlone, look, regroup, roleOf, titleOf, weights } from "./look-data.js";
import { t } from "./speech.js";

const NAMES = { encoder: "sideEncoder", decoder: "sideDecoder", cross: "sideCross" };
const READ = { encoder: "readEncoder", decoder: "readDecoder", cross: "readCross" };
let scene = null, pickRow = () => {}, changed = () => {};

export function cards() {
  if (!attends().length) return { Heads: [element("p", { class: "intro" }, t(look().source.length ? "noAttention" : "noAttentionText"))] };
  const one = isOnly(), intro = one && look().source.length ? ["oneMapText"] : ["headsText", "headRoles", ...(!one && look().cross.length && look().alignment.length ? ["headFirst"] : [])];
  return { Heads: [element("p", { class: "intro" }, intro.map((key) => t(key)).join(" ")), controls(), workspace()] };
}

// A recurrent model looks once a step: there is no choice among heads.
const isOnly = () => attends().every((part) => look()[part].length * look()[part][0].length === 1);

export function begin(pick, follow) {
  pickRow = pick;
  changed = follow;
  if (!attends().length) return;
  const canvas = byId("map");
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("click", () => { if (chosen.hover?.row !== undefined) pickRow(axis(SIDES[chosen.part].rows)[chosen.hover.row].indices[0]); });
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") { chosen.hover = null; repaint(); } });
  canvas.addEventListener("blur", () => { chosen.hover = null; repaint(); });
  canvas.addEventListener("keydown", walkCells);
  byId("grid").addEventListener("keydown", walkGrid);
  draw();
}

function segments(label, names, current, pick) {
  const holder = element("div", { class: "segments", role: "group", "aria-label": label });
  const mark = (name) => [...holder.children].forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.name === name)));
  for (const [name, text] of Object.entries(names)) {
    holder.append(element("button", { type: "button", "data-name": name, onclick: () => { mark(name); pick(name); } }, text));
  }
  mark(current);
  return holder;
}

function check(id, key, words, then) {
  const box = element("input", { type: "checkbox", id, checked: chosen[key] });
  box.addEventListener("change", () => { chosen[key] = box.checked; then(); });
  return element("label", { class: "check", id: `${id}-label` }, box, t(words));
}

function controls() {
  const parts = Object.fromEntries(attends().map((part) => [part, t(NAMES[part])]));
  const again = () => { regroup(); chosen.hover = null; draw(); };
  const least = element("input", { type: "range", id: "least", min: 0, max: 0.5, step: 0.01, value: chosen.least, "aria-label": t("thresholdName") });
  const said = element("output", { class: "number-text" }, t("threshold", chosen.least.toFixed(2)));
  least.addEventListener("input", () => { chosen.least = Number(least.value); said.textContent = t("threshold", chosen.least.toFixed(2)); again(); });
  const hide = element("input", { type: "checkbox", id: "no-special", checked: !chosen.special });
  hide.addEventListener("change", () => { chosen.special = !hide.checked; again(); });
  return element("div", { class: "controls" },
    Object.keys(parts).length > 1 && segments(t("part"), parts, chosen.part, pickPart),
    segments(t("drawing"), { map: t("heatMap"), lines: t("lines") }, chosen.view, (view) => { chosen.view = view; draw(); }),
    element("div", { class: "switches" },
      check("merged", "merged", "wholeWords", again), element("label", { class: "check" }, hide, t("noSpecial")),
      !isOnly() && check("own", "own", "ownScale", draw), check("outlines", "outlines", "wordLinks", draw), check("mask", "mask", "showMask", draw),
      element("span", { class: "check" }, least, said)));
}

function workspace() {
  const button = (id, text) => element("button", { type: "button", id, class: "quiet" }, text);
  const [png, svgButton, json] = [button("save-png", "PNG"), button("save-svg", "SVG"), button("save-json", "JSON")];
  png.addEventListener("click", () => toPng(picture(), (blob) => save(fileName("png"), blob)));
  svgButton.addEventListener("click", () => save(fileName("svg"), toSvg(picture())));
  json.addEventListener("click", () => save("attention.json", new Blob([JSON.stringify(look())], { type: "application/json" })));
  return element("div", { class: isOnly() ? "workspace only" : "workspace" },
    element("div", { class: "heads", hidden: isOnly() },
      element("div", { class: "row" }, element("h3", {}, t("allHeads")),
        element("button", { type: "button", id: "all", class: "quiet", onclick: () => choose(-1, -1) }, t("meanOfAll"))),
      element("div", { id: "grid", class: "grid" })),
    element("div", { class: "detail" },
      element("div", { class: "row" }, element("h3", { id: "detail-title", class: "detail-title", "aria-live": "polite" }),
        element("div", { class: "exports", role: "group", "aria-label": t("saveAs") }, png, svgButton, json)),
      element("p", { id: "reading", class: "muted small" }),
      element("div", { class: "stage-frame" }, element("div", { class: "scroll", id: "stage" }, element("canvas", { id: "map", role: "img", tabindex: 0 })),
        element("span", { id: "tip", class: "tip number-text", "aria-hidden": "true", hidden: true })),
      element("div", { class: "scale" }, element("span", {}, "0"), element("canvas", { id: "ramp", width: 128, height: 1, "aria-hidden": "true" }), element("span", { id: "scale-top" })),
      element("p", { id: "readout", class: "readout", role: "status" })));
}

const picture = () => framed(scene, titleOf(chosen.part, chosen.layer, chosen.head));
const fileName = (suffix) => {
  const which = chosen.layer < 0 ? "mean" : `layer${chosen.layer + 1}-${chosen.head < 0 ? "mean" : `head${chosen.head + 1}`}`;
  return `attention-${chosen.part}-${which}.${suffix}`;
};

function pickPart(part) {
  chosen.part = part;
  chosen.hover = null;
  chosen.row = 0;
  chosen.taken = false;
  chosen.layer = Math.min(chosen.layer, look()[part].length - 1);
  chosen.head = Math.min(chosen.head, look()[part][0].length - 1);
  draw();
  changed();
}

export function draw() {
  if (!look() || !byId("grid")) return;
  byId("outlines-label").hidden = chosen.part !== "cross" || !globalThis.settings.aligned.length;
  byId("mask-label").hidden = chosen.part !== "decoder";
  drawGrid();
  drawDetail();
}

function drawGrid() {
  const layers = look()[chosen.part], heads = layers[0].length, grid = byId("grid");
  grid.style.gridTemplateColumns = `1.4em repeat(${heads + 1}, minmax(0, 1fr))`;
  const names = [element("span"), element("span", { class: "name" }, t("mean")), ...layers[0].map((_, head) => element("span", { class: "name" }, String(head + 1)))];
  const focused = grid.contains(document.activeElement);
  grid.replaceChildren(...names, ...layers.flatMap((_, layer) => [element("span", { class: "name side" }, String(layer + 1)),
    ...Array.from({ length: heads + 1 }, (_, place) => thumb(layer, place - 1))]));
  byId("all").setAttribute("aria-pressed", String(chosen.layer < 0));
  if (focused) grid.querySelector('[aria-pressed="true"]')?.focus();
}

function thumb(layer, head) {
  const own = head < 0 ? t("layerMean", layer + 1) : t("layerHead", layer + 1, head + 1);
  const name = [own, roleOf(chosen.part, layer, head)].filter(Boolean).join(": ");
  const here = layer === chosen.layer && head === chosen.head;
  const canvas = element("canvas", { "aria-hidden": "true" });
  const map = weights(chosen.part, layer, head);
  drawThumb(canvas, map, chosen.own ? highest(map) : highestOfPart(chosen.part));
  return element("button", {
    type: "button", class: "thumb", "aria-label": name, title: name, "aria-pressed": String(here), "data-layer": layer, "data-head": head,
    tabindex: here || (chosen.layer < 0 && !layer && head < 0) ? 0 : -1, onclick: () => choose(layer, head),
  }, canvas);
}

export function choose(layer, head) {
  Object.assign(chosen, { layer, head: layer < 0 ? -1 : head, hover: null });
  draw();
  changed();
}

function walkGrid(event) {
  const [layers, heads] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
  if (layers === undefined) return;
  event.preventDefault();
  const all = look()[chosen.part];
  choose(Math.max(0, Math.min(all.length - 1, chosen.layer + layers)), Math.max(-1, Math.min(all[0].length - 1, chosen.head + heads)));
}

function view() {
  const { rows, columns } = SIDES[chosen.part], map = weights(chosen.part, chosen.layer, chosen.head);
  const top = !chosen.own && chosen.head >= 0 ? highestOfPart(chosen.part) : highest(map);
  return { map, rows: axis(rows), columns: axis(columns), top };
}

const isMasked = (row, column) => chosen.part === "decoder" && column.indices[0] > row.indices.at(-1);

// Crosses where the mask forbids to look.
function maskShapes({ rows, columns }, drawn) {
  if (!chosen.mask || chosen.part !== "decoder" || chosen.view !== "map") return [];
  const cells = drawn.shapes.filter((shape) => shape.kind === "rect");
  return rows.flatMap((row, i) => columns.map((column, j) => [row, column, cells[i * columns.length + j]]))
    .filter(([row, column]) => isMasked(row, column))
    .map(([, , { x, y, width, height }]) => ({ kind: "line", x1: x + 2, y1: y + height - 2, x2: x + width - 2, y2: y + 2, stroke: ink("muted"), thickness: 1, opacity: 0.55 }));
}

function drawScene() {
  const seen = view(), room = byId("stage").clientWidth;
  scene = chosen.view === "map" ? heatMap(seen, room) : lineMap(seen, room);
  scene.shapes.push(...maskShapes(seen, scene));
  return seen;
}

function drawDetail() {
  const seen = drawScene(), canvas = byId("map"), ratio = window.devicePixelRatio || 1;
  canvas.width = Math.ceil(scene.width * ratio);
  canvas.height = Math.ceil(scene.height * ratio);
  canvas.style.width = `${scene.width}px`;
  canvas.style.height = `${scene.height}px`;
  const title = titleOf(chosen.part, chosen.layer, chosen.head);
  byId("detail-title").textContent = title;
  const whole = chosen.part === "encoder" && isAlone();
  byId("reading").textContent = t(!look().source.length ? "readText" : whole ? "readWhole" : READ[chosen.part]);
  canvas.setAttribute("aria-label", t("mapName", title, seen.rows.length, seen.columns.length));
  document.querySelector(".scale").hidden = chosen.view === "lines";
  byId("scale-top").textContent = seen.top.toFixed(2);
  drawThumb(byId("ramp"), [Array.from({ length: 128 }, (_, i) => i / 127)], 1);
  repaint();
}

export function repaint() {
  if (!byId("map")) return;
  if (chosen.view === "lines") drawScene();
  const canvas = byId("map"), context = canvas.getContext("2d"), ratio = canvas.width / Math.ceil(scene.width);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, scene.width, scene.height);
  const taken = chosen.taken ? axis(SIDES[chosen.part].rows).findIndex(({ indices }) => indices.includes(chosen.row)) : -1;
  paint(context, [...scene.shapes, ...(taken >= 0 ? scene.marks({ row: taken }) : []), ...(chosen.hover ? scene.marks(chosen.hover) : [])]);
  byId("readout").textContent = reading(chosen.hover);
  byId("tip").hidden = true;
}

function reading(cell) {
  if (!cell) return t(chosen.view === "lines" ? "pointAtWord" : byId("query-row") ? "pointAt" : "pointAtCell");
  const { map, rows, columns } = view(), { row, column } = cell;
  if (row !== undefined && column !== undefined) {
    if (isMasked(rows[row], columns[column])) return t("masked", rows[row].text, columns[column].text);
    return t("looksAt", rows[row].text, columns[column].text, map[row][column].toFixed(3));
  }
  const values = row !== undefined ? map[row] : map.map((own) => own[column]), best = values.indexOf(Math.max(...values));
  if (row !== undefined) return t("looksMost", rows[row].text, columns[best].text, values[best].toFixed(3));
  return t("lookedAtMost", columns[column].text, rows[best].text, values[best].toFixed(3));
}

function point(event) {
  const box = byId("map").getBoundingClientRect();
  chosen.hover = scene.at(event.clientX - box.left, event.clientY - box.top);
  repaint();
  if (chosen.hover?.row !== undefined && chosen.hover.column !== undefined) showTip(event);
}

// The value beside the pointer; the line below the map says it whole.
function showTip({ clientX, clientY }) {
  const tip = byId("tip"), frame = tip.parentElement.getBoundingClientRect(), { row, column } = chosen.hover;
  tip.textContent = weights(chosen.part, chosen.layer, chosen.head)[row][column].toFixed(3);
  tip.hidden = false;
  tip.style.left = `${Math.min(clientX - frame.left + 14, frame.width - tip.offsetWidth)}px`;
  tip.style.top = `${Math.max(0, clientY - frame.top - 30)}px`;
}

// Arrows move the cell that is read; Enter takes its row as the query.
function walkCells(event) {
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
  const { rows, columns } = view(), at = chosen.hover;
  if (event.key === "Enter" && at?.row !== undefined) return pickRow(rows[at.row].indices[0]);
  if (down === undefined) return;
  event.preventDefault();
  const within = (value, count) => Math.max(0, Math.min(count - 1, value));
  chosen.hover = at ? { row: within((at.row ?? 0) + down, rows.length), column: within((at.column ?? 0) + right, columns.length) } : { row: 0, column: 0 };
  repaint();
}
