// The states of a recurrent model: a row a token, a column a unit.
const STATE_TOKENS = { encoder: "source", decoder: "inputs" };

function buildStates() {
  if (!look.states) return;
  byId("states").hidden = false;
  byId("state-maps").replaceChildren(...Object.entries(look.states).map(([part, rows]) => {
    const tokens = look[STATE_TOKENS[part]];
    const name = `${say(part === "encoder" ? "Encoder" : "Decoder")} · ${say("{0} tokens × {1} units", rows.length, rows[0].length)}`;
    const canvas = element("canvas", { role: "img", "aria-label": name, "data-part": part });
    canvas.style.height = `${18 * rows.length}px`;
    canvas.addEventListener("pointermove", (event) => pointAtState(event, part));
    canvas.addEventListener("pointerleave", () => { byId("state-readout").textContent = ""; });
    const list = element("ol", {}, ...tokens.map((token) => element("li", {}, readable(token))));
    return element("div", { class: "state-map" }, element("h3", {}, name), list, canvas);
  }));
  drawStates();
}

function drawStates() {
  for (const canvas of byId("state-maps").querySelectorAll("canvas")) drawSigned(canvas, look.states[canvas.dataset.part], 1);
}

function pointAtState(event, part) {
  const box = event.currentTarget.getBoundingClientRect(), rows = look.states[part];
  const row = Math.min(rows.length - 1, Math.floor(((event.clientY - box.top) / box.height) * rows.length));
  const unit = Math.min(rows[0].length - 1, Math.floor(((event.clientX - box.left) / box.width) * rows[0].length));
  const token = readable(look[STATE_TOKENS[part]][row]);
  byId("state-readout").textContent = say(part === "encoder" ? "After “{0}”, unit {1} of the encoder: {2}" : "After “{0}”, unit {1} of the decoder: {2}", token, unit + 1, rows[row][unit].toFixed(3));
}
