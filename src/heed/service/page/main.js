// The frame: which view is shown, in which language, in which light.
import * as answering from "./answer.js";
import * as api from "./api.js";
import * as classifying from "./classify.js";
import { byId, element } from "./dom.js";
import * as drawing from "./draw.js";
import * as filling from "./fill.js";
import * as seeing from "./images.js";
import * as languages from "./languages.js";
import * as listening from "./listen.js";
import * as looking from "./look.js";
import * as recommending from "./recommend.js";
import * as watching from "./runs.js";
import * as comparing from "./similarity.js";
import * as saying from "./say.js";
import { readAddress, remember, remembered } from "./store.js";
import * as tagging from "./tag.js";
import * as translating from "./translate.js";
import * as writing from "./write.js";
import { chooseLocale, localeNow, speak, t } from "./speech.js";

const READING = { fill: filling, tag: tagging, answer: answering, classify: classifying, similarity: comparing };
const VIEWS = {
  translate: translating, write: writing, images: seeing, draw: drawing, ...READING, recommend: recommending, listen: listening, say: saying,
  look: looking, runs: watching,
};
let shown = null, usual = "translate";

const link = (view) => document.querySelector(`nav [data-view="${view}"]`);

function show() {
  const { view, values } = readAddress();
  const name = Object.hasOwn(VIEWS, view) && !link(view).hidden ? view : usual;
  for (const other of Object.keys(VIEWS)) byId(`view-${other}`).hidden = other !== name;
  for (const other of Object.keys(VIEWS)) {
    if (other === name) link(other).setAttribute("aria-current", "page");
    else link(other).removeAttribute("aria-current");
  }
  link(name).scrollIntoView({ block: "nearest", inline: "nearest" });
  document.title = `${t(name)} · Heed`;
  if (shown && shown !== name) VIEWS[shown].leave?.();
  shown = name;
  VIEWS[name].enter(values);
  focusEmptyField(byId(`view-${name}`));
}

// Where someone arrives with a mouse and has not focused anything, typing can begin at once. On a phone it would open the keyboard.
function focusEmptyField(view) {
  if (document.activeElement !== document.body || !matchMedia("(pointer: fine)").matches) return;
  const field = [...view.querySelectorAll("textarea, [role=combobox]")].find((one) => one.offsetParent && !one.disabled);
  if (field?.value === "" && !view.querySelector(".picked-one")) field.focus({ preventScroll: true }); // the suggestions would cover a history
}

const isDark = () => getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";

function nameTheme() {
  byId("theme").setAttribute("aria-label", t(isDark() ? "toLight" : "toDark"));
  byId("theme").title = t(isDark() ? "toLight" : "toDark");
}

function switchTheme() {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  remember("theme", next);
  relight();
}

function relight() {
  nameTheme();
  for (const view of Object.values(VIEWS)) view.relight?.();
}

function nameLocale() {
  byId("locale").textContent = t("otherLocale");
  byId("locale").setAttribute("aria-label", t("switchLocale"));
  byId("locale").lang = localeNow() === "en" ? "ko" : "en";
}

function switchLocale() {
  chooseLocale(localeNow() === "en" ? "ko" : "en");
  speak();
  nameLocale();
  nameTheme();
  document.title = `${t(shown ?? "translate")} · Heed`;
  for (const view of Object.values(VIEWS)) view.respeak?.();
}

function trouble(message, again) {
  const holder = byId("trouble");
  holder.hidden = !message;
  holder.replaceChildren(message ?? "");
  if (message && again) holder.append(" ", element("button", { type: "button", class: "quiet", onclick: again }, t("tryAgain")));
}

// A key is asked for where one is needed, and kept in this browser.
function askForKey() {
  const field = element("input", { id: "key", type: "password", autocomplete: "off", "aria-label": t("key") });
  const form = element("form", { class: "row-start" }, element("span", {}, t("keyAsk")), field,
    element("button", { class: "quiet", type: "submit" }, t("useKey")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    api.useKey(field.value.trim());
    begin();
  });
  byId("trouble").hidden = false;
  byId("trouble").replaceChildren(form);
}

async function begin() {
  trouble(null);
  let known;
  try {
    known = await api.models();
  } catch (error) {
    return error.status === 403 || trouble(error.message, begin);
  }
  if (known.keys && !api.apiKey()) askForKey();
  languages.ready(known);
  link("write").hidden = !known.language_models?.length;
  link("images").hidden = !known.images?.length;
  link("draw").hidden = !known.image_generators?.length;
  link("translate").hidden = !known.models.length;
  for (const [name, { verb }] of Object.entries(READING)) link(name).hidden = !known.encoders?.some((one) => one.verb === verb);
  link("recommend").hidden = !known.recommenders?.length;
  link("listen").hidden = !known.recognizers?.length;
  link("say").hidden = !known.voices?.length;
  link("look").hidden = link("translate").hidden && link("write").hidden && !known.encoders?.some((one) => one.attention);
  document.querySelector("nav").classList.toggle("many", Object.keys(VIEWS).filter((name) => !link(name).hidden).length > 5);
  usual = Object.keys(VIEWS).find((name) => !link(name).hidden);
  for (const view of Object.values(VIEWS)) view.ready(known);
  show();
}

// A machine without Hangul gets it from the service, before anything is said: text that was laid out before its glyphs
// came stays boxes in some browsers.
async function glyphs() {
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = "40px sans-serif";
  const width = (text) => ruler.measureText(text).width;
  if (width("\ud55c") !== width("\u{10fffe}")) return;
  try {
    await document.fonts.load('16px "Heed glyphs"', "\ud55c");
  } catch { /* then there are boxes */ }
}

async function start() {
  await glyphs();
  chooseLocale();
  speak();
  nameLocale();
  nameTheme();
  for (const view of Object.values(VIEWS)) view.build();
  byId("theme").addEventListener("click", switchTheme);
  byId("locale").addEventListener("click", switchLocale);
  window.addEventListener("hashchange", () => { if (location.hash !== "#main") show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!remembered("theme", null)) relight(); });
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
  window.addEventListener("heed-key", askForKey); // a key is missing, or not known
  begin();
}
start();
