// What stands in place of a translation where there is none: why, and what is offered instead.
import { byId, element, percent } from "./dom.js";
import { nameOf, sources, targets } from "./languages.js";
import { languageName, t } from "./speech.js";

const OFFERED = 6; // languages, or pairs of them

const named = (code) => (code ? languageName(code, nameOf(code)) : t("auto"));

function show(message, offers) {
  byId("target-empty").hidden = true;
  byId("target").classList.remove("stale");
  byId("target").replaceChildren(element("div", { class: "notice", role: "alert" }, message,
    element("div", { class: "offers" }, ...offers.map(([label, act]) => element("button", { type: "button", class: "quiet", onclick: act }, label)))));
}

export function offerPairs(from, to, use) {
  const pairs = sources().flatMap((source) => targets(source).map((target) => [source, target]));
  const offers = pairs.slice(0, OFFERED).map(([source, target]) => [t("pairOf", nameOf(source), nameOf(target)), () => use(source, target)]);
  show(t("noPair", named(from), named(to)), offers);
}

// The text is in a language from which nothing is translated: it is translated as another one only if that is asked for.
export function offerSources({ detected, sources: known }, use) {
  const name = languageName(detected.language, detected.name);
  byId("detected").textContent = t("detectedAs", name, percent(detected.confidence));
  show(t("looksLike", name), known.slice(0, OFFERED).map((source) => [t("translateAs", nameOf(source)), () => use(source)]));
}
