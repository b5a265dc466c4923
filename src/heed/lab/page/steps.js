// Decoding, one token a step.
function buildStrip() {
  byId("strip").replaceChildren(...look.target.map((token, step) => {
    const p = Math.exp(look.scores[step]);
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.height = `${Math.max(2, 64 * p)}px`;
    const button = element("button", { type: "button", "aria-label": `Step ${step + 1}: ${readable(token)}, ${percent(p)}` },
      element("span", { class: "column" }, element("small", {}, percent(p)), bar), element("span", { class: "token" }, readable(token)));
    button.addEventListener("click", () => goToStep(step));
    return button;
  }));
}

function goToStep(step) {
  state.step = Math.max(0, Math.min(look.target.length - 1, step));
  state.hover = null;
  showStep();
  showLights();
}

function showStep() {
  const { step } = state;
  [...byId("strip").children].forEach((button, index) => {
    button.setAttribute("aria-pressed", String(index === step));
    button.classList.toggle("later", index > step);
    if (index === step) keepInSight(byId("strip"), button);
  });
  byId("so-far-title").textContent = `Step ${step + 1} of ${look.target.length}`;
  const written = look.target.slice(0, step).filter((token) => !isSpecial(token)).join("");
  const token = look.target[step];
  const space = written && (token.startsWith("\u2581") || isSpecial(token)) ? " " : "";
  byId("so-far").replaceChildren(written.replaceAll("\u2581", " ").trim() + space, element("mark", {}, readable(token)));
  byId("step-score").textContent = `log probability ${look.scores[step].toFixed(3)}, that is ${percent(Math.exp(look.scores[step]))}`;
  showBars(step, token);
  markLattice();
}

function showBars(step, token) {
  const list = [...look.predictions[step]];
  if (!list.some(([other]) => other === token)) list.push([token, Math.exp(look.scores[step])]);
  byId("bars").replaceChildren(...list.map(([other, p]) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${Math.max(0.5, 100 * p)}%`;
    const item = element("li", {}, element("span", { class: "token" }, readable(other)), element("span", { class: "track" }, bar), element("span", { class: "number" }, percent(p)));
    item.classList.toggle("written", other === token);
    item.classList.toggle("joined", !other.startsWith("\u2581") && !isSpecial(other));
    return item;
  }));
}

function keepInSight(holder, child) {
  const box = child.getBoundingClientRect(), frame = holder.getBoundingClientRect();
  if (box.left < frame.left || box.right > frame.right) holder.scrollLeft += box.left - frame.left - frame.width / 2;
}

let playing = null;
function togglePlay() {
  const stop = () => { clearInterval(playing); playing = null; byId("play").textContent = "Play"; };
  if (playing) return stop();
  if (state.step === look.target.length - 1) goToStep(0);
  byId("play").textContent = "Pause";
  playing = setInterval(() => {
    if (state.step === look.target.length - 1) stop();
    else goToStep(state.step + 1);
  }, 900);
}
