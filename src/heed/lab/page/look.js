// The wiring.
function showLights() {
  lightLines();
  repaintDetail();
}

function rebuild() {
  state.hover = null;
  buildLine("source");
  buildLine("target");
  buildGrid();
  drawDetail();
  lightLines();
}

function repaintAll() {
  readTheme();
  byId("theme").textContent = theme.dark ? "Light" : "Dark";
  drawGrid();
  drawDetail();
  lightLines();
  drawStates();
}

function segments(id, names, current, pick) {
  const holder = byId(id);
  const mark = (name) => [...holder.children].forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.name === name)));
  for (const [name, text] of Object.entries(names)) {
    const button = element("button", { type: "button", "data-name": name }, text);
    button.addEventListener("click", () => { mark(name); pick(name); });
    holder.append(button);
  }
  mark(current);
}

function withoutAttention() {
  for (const node of document.querySelectorAll(".controls, #workspace")) node.hidden = true;
  byId("no-attention").hidden = false;
  buildLine("source");
  buildLine("target");
}

function pickPart(part) {
  state.part = part;
  const layers = look[part].length, heads = look[part][0].length;
  state.layer = Math.min(state.layer, layers - 1);
  state.head = Math.min(state.head, heads - 1);
  byId("outlines-label").hidden = part !== "cross" || !settings.aligned.length;
  rebuild();
}

function save(name, blob) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function fileName(suffix) {
  const which = state.layer < 0 ? "mean" : `layer${state.layer + 1}-${state.head < 0 ? "mean" : `head${state.head + 1}`}`;
  return `attention-${state.part}-${which}.${suffix}`;
}

function picture() {
  return framed(scene, titleOf(state.part, state.layer, state.head));
}

function switchTheme() {
  document.documentElement.dataset.theme = theme.dark ? "light" : "dark";
  repaintAll();
}

function onKey(event) {
  const typing = event.target.closest("input, select, textarea, .beam .scroll");
  if (typing || event.altKey || event.ctrlKey || event.metaKey) return;
  const [layers, heads] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
  const vertical = layers && !byId("workspace").contains(event.target); // elsewhere these keys scroll the page
  if (layers === undefined || vertical) return;
  event.preventDefault();
  if (heads && event.target.closest(".steps")) goToStep(state.step + heads);
  else move(layers, heads);
}

function start() {
  readTheme();
  byId("model").textContent = look.model;
  const names = { encoder: "Encoder", decoder: "Decoder", cross: "Cross" };
  segments("parts", Object.fromEntries(ATTENDS.map((part) => [part, names[part]])), state.part, pickPart);
  segments("views", { map: "Heat map", lines: "Lines" }, state.view, (view) => { state.view = view; drawDetail(); });
  byId("merged").addEventListener("change", (event) => { state.merged = event.target.checked; rebuild(); });
  byId("own").addEventListener("change", (event) => { state.own = event.target.checked; drawGrid(); drawDetail(); });
  byId("outlines").addEventListener("change", (event) => { state.outlines = event.target.checked; drawDetail(); });
  byId("all").addEventListener("click", () => choose(-1, -1));
  byId("back").addEventListener("click", () => goToStep(state.step - 1));
  byId("next").addEventListener("click", () => goToStep(state.step + 1));
  byId("play").addEventListener("click", togglePlay);
  byId("map").addEventListener("pointermove", pointAt);
  byId("map").addEventListener("pointerdown", pointAt);
  byId("map").addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") { state.hover = null; showLights(); } });
  byId("save-png").addEventListener("click", () => toPng(picture(), (blob) => save(fileName("png"), blob)));
  byId("save-svg").addEventListener("click", () => save(fileName("svg"), toSvg(picture())));
  byId("save-json").addEventListener("click", () => save("attention.json", new Blob([byId("look").textContent], { type: "application/json" })));
  byId("theme").addEventListener("click", switchTheme);
  for (const line of ["source-line", "target-line"]) byId(line).addEventListener("keydown", moveInLine);
  document.addEventListener("keydown", onKey);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintAll);
  window.addEventListener("resize", drawDetail);
  document.body.classList.toggle("long", Math.max(look.source.length, look.target.length) > 24);
  buildStrip();
  buildLattice();
  buildStates();
  if (ATTENDS.length) pickPart(state.part);
  else withoutAttention();
  showStep();
  showHypothesis(null);
  document.fonts.ready.then(() => { repaintAll(); buildLattice(); buildStates(); showStep(); });  // text laid out before its glyphs came stays boxes
}
start();
