// A short tour: a card that goes from station to station.
import { byId, element } from "./dom.js";
import { goTo } from "./look.js";
import { t } from "./speech.js";

let card = null, back = null;

export function end() {
  card?.remove();
  card = null;
  document.body.classList.remove("touring");
  document.querySelectorAll(".station.toured").forEach((node) => node.classList.remove("toured"));
  if (back?.isConnected) back.focus();
  back = null;
}

export function start(names) {
  end();
  const stops = names.filter((name) => byId(`station-${name}`));
  back = document.activeElement;
  card = element("div", { class: "tour", role: "dialog", "aria-label": t("tourName"), tabindex: -1 });
  card.addEventListener("keydown", (event) => { if (event.key === "Escape") end(); });
  document.body.append(card);
  document.body.classList.add("touring");
  show(stops, 0);
}

// Of attention what there is: heads to choose from, one map, or none.
function said(name) {
  if (name !== "Heads") return t(`tour${name}`);
  return t(!byId("map") ? "noAttention" : document.querySelector(".heads").hidden ? "oneMapText" : "tourHeads");
}

function show(stops, place) {
  const name = stops[place], last = place === stops.length - 1;
  document.querySelectorAll(".station").forEach((node) => node.classList.toggle("toured", node.id === `station-${name}`));
  goTo(name);
  const button = (text, work, strong) => element("button", { type: "button", class: strong ? "quiet strong" : "quiet", onclick: work }, text);
  const next = button(t(last ? "tourEnd" : "tourNext"), () => (last ? end() : show(stops, place + 1)), true);
  card.replaceChildren(
    element("div", { class: "row" }, element("h3", {}, t(`s${name}`)), element("span", { class: "muted small number-text" }, t("tourOf", place + 1, stops.length))),
    element("p", { "aria-live": "polite" }, said(name)),
    element("div", { class: "row" }, button(t("close"), end), element("span", { class: "row-start" }, place > 0 && button(t("tourBack"), () => show(stops, place - 1)), next)));
  next.focus();
}
