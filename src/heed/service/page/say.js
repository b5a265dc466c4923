// Text to speech: type, choose who speaks, and listen.
import * as api from "./api.js";
import { byId, element } from "./dom.js";
import { number, speak, t } from "./speech.js";
import { decoded } from "./sound.js";
import { drawSpectrogram } from "./spectrogram.js";

let known = [], model = null, sound = null, asking = null, address = null;

export function build() {
  const select = (name, words, work) => element("label", { id: `say-${name}-label`, class: "language" }, element("span", { class: "hidden-title", "data-t": words }),
    element("select", { id: `say-${name}`, onchange: work }));
  const section = element("section", { id: "view-say", class: "view", "aria-labelledby": "say-title", hidden: true },
    element("h1", { id: "say-title", class: "hidden-title", "data-t": "say" }),
    element("div", { class: "mode-bar" }, select("model", "modelToAsk", () => choose(byId("say-model").value)), select("speaker", "saySpeaker", () => {}),
      element("p", { id: "say-about", class: "model muted" })),
    element("form", { id: "say-form", class: "say-form", onsubmit: (event) => { event.preventDefault(); ask(); } },
      element("label", {}, element("span", { class: "hidden-title", "data-t": "sayText" }),
        element("textarea", { id: "say-text", rows: 3, maxlength: 1000, spellcheck: "false", "data-placeholder": "sayHere", onkeydown: (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); ask(); } } })),
      element("button", { type: "submit", id: "say-go", class: "quiet strong", "data-t": "sayGo" })),
    element("p", { id: "say-status", class: "muted small", role: "status" }),
    element("div", { id: "say-found", hidden: true }, element("audio", { id: "say-audio", controls: true, "data-label": "sayPlay" }),
      element("canvas", { id: "say-canvas", role: "img", "data-label": "listenPicture" })),
    element("p", { class: "hint muted small", "data-t": "sayHint" }));
  byId("view-look").before(section);
  speak(section);
}

export function ready(all) {
  known = all.voices ?? [];
  if (known.length) choose(known[0].name);
}

export function enter() { relight(); }

export const leave = () => byId("say-audio").pause();

export function relight() {
  if (sound && !byId("view-say").hidden) drawSpectrogram(byId("say-canvas"), sound, model.rate, null);
}

export function respeak() {
  if (model) describe();
  tell("");
}

function choose(name) {
  model = known.find((one) => one.name === name) ?? known[0];
  byId("say-model").replaceChildren(...known.map((one) => element("option", { value: one.name, selected: one === model }, one.name)));
  byId("say-model-label").hidden = known.length < 2;
  byId("say-speaker").replaceChildren(...model.speakers.map((one) => element("option", { value: one }, one)));
  byId("say-speaker-label").hidden = model.speakers.length < 2;
  describe();
}

function describe() {
  byId("say-about").textContent = t("readAbout", model.name, model.kind, number(model.weights / 1e6, 1));
}

function tell(text, wrong = false) {
  byId("say-status").textContent = text;
  byId("say-status").classList.toggle("error", wrong);
}

async function ask() {
  const text = byId("say-text").value.trim();
  if (!text) return byId("say-text").focus();
  asking?.abort();
  const mine = (asking = new AbortController());
  tell(t("asking"));
  try {
    const blob = await api.speech({ model: model.name, input: text, voice: byId("say-speaker").value || undefined }, mine.signal);
    const made = await decoded(blob, model.rate);
    if (asking !== mine) return;
    sound = made;
    if (address) URL.revokeObjectURL(address);
    address = URL.createObjectURL(blob);
    byId("say-audio").src = address;
    byId("say-found").hidden = false;
    tell("");
    relight();
    byId("say-audio").play().catch(() => {});
  } catch (error) {
    if (error.name !== "AbortError" && asking === mine) tell(error.message, true);
  }
}
