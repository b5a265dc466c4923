// Speech to text: record or drop a recording, see its spectrogram with the words over it, and where the model looked for each.
import * as api from "./api.js";
import { byId, copyText, element, toast } from "./dom.js";
import { number, speak, t } from "./speech.js";
import { decoded, recorder, wav } from "./sound.js";
import { drawSpectrogram } from "./spectrogram.js";

let known = [], model = null, sound = null, found = null, chosen = null, recording = null, asking = null, address = null;

export function build() {
  const own = (name, ...rest) => element("div", { id: `listen-${name}`, class: `listen-${name}` }, ...rest);
  const section = element("section", { id: "view-listen", class: "view", "aria-labelledby": "listen-title", hidden: true },
    element("h1", { id: "listen-title", class: "hidden-title", "data-t": "listen" }),
    element("div", { class: "mode-bar" },
      element("label", { id: "listen-model-label", class: "language" }, element("span", { class: "hidden-title", "data-t": "modelToAsk" }),
        element("select", { id: "listen-model", onchange: () => { choose(byId("listen-model").value); if (sound) ask(); } })),
      element("p", { id: "listen-about", class: "model muted" })),
    element("div", { class: "listen-ways" },
      element("label", { class: "drop", id: "listen-drop" }, element("input", { id: "listen-file", type: "file", accept: "audio/*", class: "hidden-title", onchange: picked }),
        element("strong", { "data-t": "listenFile" }), element("span", { class: "muted small", "data-t": "listenKinds" })),
      element("button", { type: "button", id: "listen-record", class: "quiet strong", "aria-pressed": "false", onclick: toggle }, element("span", { "data-t": "listenRecord" }))),
    element("p", { id: "listen-status", class: "muted small", role: "status" }),
    element("div", { id: "listen-found", hidden: true },
      element("audio", { id: "listen-audio", controls: true, "data-label": "listenPlay" }),
      own("picture", element("canvas", { id: "listen-canvas", role: "img", "data-label": "listenPicture" }), element("div", { id: "listen-words", role: "group", "data-label": "listenWords" })),
      element("p", { id: "listen-text", class: "read-text" }),
      element("div", { class: "actions" }, element("button", { type: "button", id: "listen-copy", class: "quiet", "data-t": "copy", onclick: copy }))),
    element("p", { class: "hint muted small", "data-t": "listenHint" }));
  byId("view-look").before(section);
  speak(section);
  const drop = byId("listen-drop");
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  drop.addEventListener("drop", (event) => { if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]); });
  byId("listen-audio").addEventListener("timeupdate", mark);
}

export function ready(all) {
  known = all.recognizers ?? [];
  if (known.length) choose(known[0].name);
  byId("listen-record").hidden = !navigator.mediaDevices?.getUserMedia;
}

export function enter() { relight(); }

export function leave() {
  byId("listen-audio").pause();
  if (recording) toggle();
}

export function relight() {
  if (sound && !byId("view-listen").hidden) draw();
}

export function respeak() {
  if (!model) return;
  describe();
  byId("listen-record").firstChild.textContent = t(recording ? "listenStop" : "listenRecord");
  say("");
  if (found) show();
}

function choose(name) {
  model = known.find((one) => one.name === name) ?? known[0];
  byId("listen-model").replaceChildren(...known.map((one) => element("option", { value: one.name, selected: one === model }, one.name)));
  byId("listen-model-label").hidden = known.length < 2;
  describe();
}

function describe() {
  byId("listen-about").textContent = t("readAbout", model.name, model.kind, number(model.weights / 1e6, 1));
}

const say = (text, wrong = false) => {
  byId("listen-status").textContent = text;
  byId("listen-status").classList.toggle("error", wrong);
};

function picked() {
  const [file] = byId("listen-file").files;
  if (file) take(file);
  byId("listen-file").value = "";
}

async function toggle() {
  const button = byId("listen-record");
  if (recording) {
    const done = recording;
    recording = null;
    button.setAttribute("aria-pressed", "false");
    button.firstChild.textContent = t("listenRecord");
    return take(await done.stop());
  }
  try {
    recording = await recorder();
  } catch {
    return say(t("listenNoMicrophone"), true);
  }
  button.setAttribute("aria-pressed", "true");
  button.firstChild.textContent = t("listenStop");
  say(t("listenRecording"));
}

async function take(blob) {
  asking?.abort();
  say(t("asking"));
  try {
    sound = await decoded(blob, model.rate);
  } catch {
    sound = null;
    byId("listen-found").hidden = true;
    return say(t("listenNoSound"), true);
  }
  found = chosen = null;
  if (address) URL.revokeObjectURL(address);
  address = URL.createObjectURL(wav(sound, model.rate));
  byId("listen-audio").src = address;
  byId("listen-found").hidden = false;
  byId("listen-text").textContent = "";
  byId("listen-words").replaceChildren();
  draw();
  await ask();
}

async function ask() {
  const mine = (asking = new AbortController());
  try {
    const answer = await api.transcribe(wav(sound, model.rate), { model: model.name, response_format: "verbose_json", attention: "true" }, mine.signal);
    if (asking !== mine) return;
    [found, chosen] = [answer, null];
    show();
  } catch (error) {
    if (error.name !== "AbortError" && asking === mine) say(error.message, true);
  }
}

function show() {
  say(t("listenTook", number(found.duration, 1), number(found.seconds, 2)));
  byId("listen-text").textContent = found.text || t("listenNothing");
  byId("listen-words").replaceChildren(...found.words.map((word, i) => {
    const node = element("button", { type: "button", class: "listen-word", "aria-pressed": "false", onclick: () => pick(i), title: t("listenWord", number(word.start, 2), number(word.end, 2), number(100 * word.probability)) }, word.word);
    node.style.left = `${(100 * word.start) / found.duration}%`;
    node.style.minWidth = `${(100 * Math.max(0, word.end - word.start)) / found.duration}%`;
    return node;
  }));
  spread();
  press();
}

// Words that would cover each other go to the next line.
function spread() {
  const ends = [];
  for (const node of byId("listen-words").children) {
    let line = ends.findIndex((end) => end <= node.offsetLeft);
    if (line < 0) line = ends.push(0) - 1;
    ends[line] = node.offsetLeft + node.offsetWidth + 2;
    node.style.top = `${line * 30}px`;
  }
  byId("listen-words").style.height = `${Math.max(1, ends.length) * 30}px`;
}

function pick(i) {
  chosen = chosen === i ? null : i;
  if (chosen !== null) byId("listen-audio").currentTime = found.words[i].start;
  press();
}

function press() {
  [...byId("listen-words").children].forEach((node, i) => node.setAttribute("aria-pressed", String(i === chosen)));
  draw();
}

function mark() {
  const now = byId("listen-audio").currentTime;
  [...byId("listen-words").children].forEach((node, i) => node.classList.toggle("now", now >= found.words[i].start && now < found.words[i].end));
}

function draw() {
  const word = chosen === null ? null : found?.words[chosen];
  drawSpectrogram(byId("listen-canvas"), sound, model.rate, word);
}

async function copy() {
  if (found && (await copyText(found.text))) toast(t("copied"));
}
