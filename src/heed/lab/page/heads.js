// All heads at a glance, and one map in detail.
function buildGrid() {
  const maps = look[state.part];
  const heads = maps[0].length;
  const grid = byId("grid");
  grid.style.gridTemplateColumns = `1.4em repeat(${heads + 1}, minmax(0, 1fr))`;
  const corner = [element("span"), element("span", { class: "name" }, "mean")];
  const names = maps[0].map((_, head) => element("span", { class: "name" }, String(head + 1)));
  const rows = maps.flatMap((_, layer) => [
    element("span", { class: "name side" }, String(layer + 1)),
    ...Array.from({ length: heads + 1 }, (_, place) => thumb(layer, place - 1)),
  ]);
  grid.replaceChildren(...corner, ...names, ...rows);
  buildRoles();
  drawGrid();
}

const nameOf = (layer, head) => {
  const own = head < 0 ? `Layer ${layer + 1}, mean of heads` : `Layer ${layer + 1}, head ${head + 1}`;
  return [own, roleOf(state.part, layer, head)].filter(Boolean).join(": ");
};

// The heads of this part that do one thing, the clearest first.
function buildRoles() {
  const all = look.roles[state.part].flatMap((heads, layer) => heads.map((own, head) => ({ ...own, layer, head })));
  const named = all.filter(({ role }) => role).sort((one, other) => other.share - one.share).slice(0, 8);
  byId("roles").replaceChildren(...named.map(({ layer, head }) => {
    const button = element("button", { type: "button", class: "quiet" }, nameOf(layer, head));
    button.addEventListener("click", () => choose(layer, head));
    return element("li", {}, button);
  }));
  byId("roles-note").hidden = !named.length;
}

function thumb(layer, head) {
  const name = nameOf(layer, head);
  const button = element("button", { type: "button", class: "thumb", "aria-label": name, title: name, "data-layer": layer, "data-head": head },
    element("canvas", { "aria-hidden": "true" }));
  button.addEventListener("click", () => choose(layer, head));
  return button;
}

function drawGrid() {
  if (!ATTENDS.length) return;
  for (const button of byId("grid").querySelectorAll(".thumb")) {
    const map = weights(state.part, Number(button.dataset.layer), Number(button.dataset.head));
    drawThumb(button.firstChild, map, state.own ? highest(map) : highestOfPart(state.part));
  }
  markGrid();
}

function markGrid() {
  for (const button of byId("grid").querySelectorAll(".thumb")) {
    const here = Number(button.dataset.layer) === state.layer && Number(button.dataset.head) === state.head;
    button.setAttribute("aria-pressed", String(here));
    button.tabIndex = here || (state.layer < 0 && button.dataset.layer === "0" && button.dataset.head === "-1") ? 0 : -1;
  }
  byId("all").setAttribute("aria-pressed", String(state.layer < 0));
}

function choose(layer, head) {
  state.layer = layer;
  state.head = layer < 0 ? -1 : head;
  state.hover = null;
  markGrid();
  drawDetail();
  lightLines();
}

function move(layers, heads) {
  if (!ATTENDS.length) return;
  const maps = look[state.part];
  const layer = Math.max(-1, Math.min(maps.length - 1, state.layer + layers + (heads && state.layer < 0 ? 1 : 0)));
  const head = Math.max(-1, Math.min(maps[0].length - 1, state.head + heads));
  choose(layer, head);
  const grid = byId("grid");
  if (grid.contains(document.activeElement)) grid.querySelector('[aria-pressed="true"]')?.focus();
}

// A single head is coloured on the scale of all heads, unless each has its own; means have their own.
function detailView() {
  const view = chosen();
  if (!state.own && state.head >= 0) view.top = highestOfPart(state.part);
  return view;
}

let scene = null;
function drawDetail() {
  if (!ATTENDS.length) return;
  const view = detailView();
  const room = byId("stage").clientWidth;
  scene = state.view === "map" ? heatMap(view, room) : lineMap(view, room);
  const canvas = byId("map");
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.ceil(scene.width * ratio);
  canvas.height = Math.ceil(scene.height * ratio);
  canvas.style.width = `${scene.width}px`;
  canvas.style.height = `${scene.height}px`;
  const title = titleOf(state.part, state.layer, state.head);
  byId("detail-title").textContent = title;
  byId("reading").textContent = state.view === "map" ? settings.reading[state.part] : `Thicker lines mean more attention; weights below ${LEAST} are hidden.`;
  canvas.setAttribute("aria-label", `${title}, ${view.rows.length} tokens by ${view.columns.length}`);
  document.querySelector(".scale").hidden = state.view === "lines";
  byId("top").textContent = view.top.toFixed(2);
  drawThumb(byId("ramp"), [Array.from({ length: 128 }, (_, i) => i / 127)], 1);
  repaintDetail();
}

function repaintDetail() {
  if (!ATTENDS.length) return;
  if (state.view === "lines") scene = lineMap(detailView(), byId("stage").clientWidth);
  const canvas = byId("map");
  const ratio = canvas.width / scene.width;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, scene.width, scene.height);
  const step = stepRow();
  const cell = markedCell() ?? (step === null ? null : { row: step });
  paint(context, [...scene.shapes, ...(cell ? scene.marks(cell) : [])]);
  byId("readout").textContent = readoutOf(markedCell());
}

function readoutOf(cell) {
  const { map, rows, columns } = chosen();
  if (!cell) return "Hover over a cell to see its weight.";
  const name = (token) => `“${token.text}”`;
  if (cell.row !== undefined && cell.column !== undefined) {
    return `${name(rows[cell.row])} attends to ${name(columns[cell.column])}: ${map[cell.row][cell.column].toFixed(3)}`;
  }
  const values = cell.row !== undefined ? map[cell.row] : map.map((row) => row[cell.column]);
  const best = values.indexOf(Math.max(...values));
  if (cell.row !== undefined) return `${name(rows[cell.row])} attends most to ${name(columns[best])}: ${values[best].toFixed(3)}`;
  return `${name(columns[cell.column])} gets most attention from ${name(rows[best])}: ${values[best].toFixed(3)}`;
}

function pointAt(event) {
  const box = byId("map").getBoundingClientRect();
  state.hover = scene.at(event.clientX - box.left, event.clientY - box.top);
  showLights();
}
