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
  byId("step-score").textContent = compared(token, Math.exp(look.scores[step]), look.predictions[step]);
  byId("step-score").title = `log probability ${look.scores[step].toFixed(3)}`;
  showBars(step, token);
  markLattice();
}

// How likely a token is compared with the most likely other one.
function compared(token, p, likely) {
  const other = likely.find(([name]) => name !== token);
  if (!other || !(p > 0) || !(other[1] > 0)) return percent(p);
  const times = (ratio) => (ratio >= 1000 ? ">1,000" : ratio.toFixed(ratio < 10 ? 1 : 0)), name = readable(other[0]);
  return p >= other[1] ? `${percent(p)}: ${times(p / other[1])} times as likely as “${name}”` : `${percent(p)}: “${name}” was ${times(other[1] / p)} times as likely`;
}

const UNLIKELY = 0.005; // less likely ones are not worth a line

function showBars(step, token) {
  const list = look.predictions[step].filter(([other, p]) => other === token || p >= UNLIKELY);
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
