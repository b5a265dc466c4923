// What was translated, in this browser alone; it can be switched off and cleared.
import { byId, element, later } from "./dom.js";
import { remember, remembered } from "./store.js";
import { t } from "./speech.js";

const MOST = 50;
let past = [];
let onUse = () => {};

export function build(use) {
  onUse = use;
  past = remembered("history", []);
  byId("keep-history").checked = remembered("keep", true);
  byId("keep-history").addEventListener("change", (event) => {
    remember("keep", event.target.checked);
    if (!event.target.checked) clear();
  });
  byId("clear-history").addEventListener("click", clear);
  draw();
}

function clear() {
  settled.cancel();
  past = [];
  remember("history", null);
  draw();
}

// A text counts when it has stood for a moment; one that only goes on replaces the one before.
const settled = later(1200, (entry) => {
  if (!byId("keep-history").checked) return;
  const grows = past[0] && past[0].to === entry.to && (entry.text.startsWith(past[0].text) || past[0].text.startsWith(entry.text));
  past = [entry, ...past.slice(grows ? 1 : 0).filter((old) => old.text !== entry.text || old.to !== entry.to)].slice(0, MOST);
  remember("history", past);
  draw();
});

export const note = (entry) => settled(entry);

export function draw() {
  const items = past.map((entry) => element("li", {}, element("button", { type: "button", class: "past-one", onclick: () => onUse(entry) },
    element("span", { class: "past-pair muted small" }, `${entry.from} → ${entry.to}`),
    element("span", { class: "past-text" }, entry.text), element("span", { class: "past-text muted" }, entry.translation))));
  byId("past").replaceChildren(...(items.length ? items : [element("li", { class: "muted small" }, t("noHistory"))]));
  byId("clear-history").disabled = !items.length;
}
