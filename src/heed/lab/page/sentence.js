// The two lines of tokens on top, and which of them are lit.
const lineName = (line) => (line === "source" ? "source" : state.part === "decoder" ? "inputs" : "target");
const rowLine = () => (state.part === "encoder" ? "source" : "target");
const columnLine = () => (state.part === "decoder" ? "target" : "source");

// The cell, row or column of the chosen map that is pointed at, or the row of the current step.
function markedCell() {
  const hover = state.hover;
  if (!hover) return null;
  if (!hover.line) return hover;
  if (hover.line === rowLine()) return { row: hover.index };
  return hover.line === columnLine() ? { column: hover.index } : null;
}

function stepRow() {
  if (state.part === "encoder") return null;
  return axis(SIDES[state.part].rows).findIndex((token) => token.indices.includes(state.step));
}

// What is lit: {asking: {line, index}, line, values}.
function lights() {
  const hover = state.hover;
  if (!ATTENDS.length) return null;
  if (hover?.line && !markedCell()) {
    if (state.part === "decoder") return null;
    return { asking: hover, line: "source", values: weights("cross", -1, -1)[hover.index], note: "mean of all cross attention" };
  }
  const map = weights(state.part, state.layer, state.head);
  const cell = markedCell() ?? (stepRow() === null ? null : { row: stepRow() });
  if (!cell) return null;
  if (cell.row !== undefined) return { asking: { line: rowLine(), index: cell.row }, line: columnLine(), values: map[cell.row] };
  return { asking: { line: columnLine(), index: cell.column }, line: rowLine(), values: map.map((row) => row[cell.column]), back: true };
}

function buildLine(line) {
  const holder = byId(`${line}-line`);
  const tokens = axis(lineName(line));
  const chips = tokens.map((token, index) => {
    const chip = element("button", { type: "button", class: "chip", tabindex: index ? -1 : 0, "aria-label": token.text },
      element("span", {}, token.text), element("small", { "aria-hidden": "true" }));
    chip.classList.toggle("joined", !token.starts);
    chip.classList.toggle("special", token.special);
    const point = () => { state.hover = { line, index }; showLights(); };
    const leave = (event) => { if (event.pointerType !== "touch") { state.hover = null; showLights(); } };
    chip.addEventListener("pointerenter", point);
    chip.addEventListener("focus", point);
    chip.addEventListener("pointerleave", leave);
    chip.addEventListener("blur", leave);
    chip.addEventListener("click", () => line === "target" && goToStep(token.indices[0]));
    return chip;
  });
  holder.replaceChildren(...inWords(tokens, chips));
  byId("target-name").textContent = state.part === "decoder" ? "Decoder input" : "Translation";
}

// Words stay together at the end of a line, unless a text without spaces is one long word.
function inWords(tokens, chips) {
  const words = [];
  tokens.forEach((token, index) => {
    if (token.starts) words.push(element("span", { class: "word" }));
    words.at(-1).append(chips[index]);
  });
  words.forEach((word) => word.classList.toggle("short", word.textContent.length < 24));
  return words;
}

const chipsOf = (line) => [...byId(`${line}-line`).querySelectorAll(".chip")];

function moveInLine(event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const chips = [...event.currentTarget.querySelectorAll(".chip")];
  const next = by && chips[chips.indexOf(document.activeElement) + by];
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  if (!next) return;
  chips.forEach((chip) => (chip.tabIndex = chip === next ? 0 : -1));
  next.focus();
}

function lightLines() {
  const lit = lights();
  const top = lit && Math.max(...lit.values);
  for (const line of ["source", "target"]) {
    chipsOf(line).forEach((chip, index) => {
      const value = lit?.line === line ? lit.values[index] : 0;
      const share = value ? value / Math.max(top, 0.25) : 0;
      const on = value > 0 && (share > 0.18 || value === top);
      chip.classList.toggle("lit", on);
      chip.classList.toggle("asking", lit?.asking.line === line && lit.asking.index === index);
      chip.style.backgroundColor = on ? theme.fill(share) : "";
      chip.style.color = on ? theme.on(share) : "";
      chip.lastChild.textContent = on ? percent(value) : "";
    });
  }
  byId("lit-note").textContent = noteOf(lit);
}

function noteOf(lit) {
  if (!lit) return ATTENDS.length ? "Hover over a token to see what it attends to." : "";
  const asking = axis(lineName(lit.asking.line))[lit.asking.index].text;
  const from = lit.note ?? titleOf(state.part, state.layer, state.head);
  return lit.back ? `Highlighted: the tokens that attend to “${asking}” (${from}).` : `Highlighted: what “${asking}” attends to (${from}).`;
}
