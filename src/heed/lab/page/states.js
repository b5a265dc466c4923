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

// Below zero towards the warm colour, above it towards the accent, on the paper of the page.
function drawStates() {
  const inks = ["warm", "surface", "accent"].map((name) => rampOf([ink(name), ink(name)])[0]);
  const mixed = (value) => inks[1].map((paper, k) => Math.round(paper + Math.min(1, Math.abs(value)) * (inks[value < 0 ? 0 : 2][k] - paper)));
  for (const canvas of byId("state-maps").querySelectorAll("canvas")) {
    const rows = look.states[canvas.dataset.part];
    canvas.width = rows[0].length;
    canvas.height = rows.length;
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    rows.flat().forEach((value, index) => image.data.set([...mixed(value), 255], 4 * index));
    context.putImageData(image, 0, 0);
  }
}

function pointAtState(event, part) {
  const box = event.currentTarget.getBoundingClientRect(), rows = look.states[part];
  const row = Math.min(rows.length - 1, Math.floor(((event.clientY - box.top) / box.height) * rows.length));
  const unit = Math.min(rows[0].length - 1, Math.floor(((event.clientX - box.left) / box.width) * rows[0].length));
  const token = readable(look[STATE_TOKENS[part]][row]);
  byId("state-readout").textContent = say(part === "encoder" ? "After “{0}”, unit {1} of the encoder: {2}" : "After “{0}”, unit {1} of the decoder: {2}", token, unit + 1, rows[row][unit].toFixed(3));
}
