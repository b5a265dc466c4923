// The languages, and the ways between them. The service tells them in groups: a model may have two hundred.
import { element } from "./dom.js";
import { languageName, localeNow, t } from "./speech.js";
import { remember, remembered } from "./store.js";

const MANY = 20, RECENT = 6; // more languages than MANY are sorted by name, after those that were used last
let known = { directions: [], languages: [], models: [] };
let names = { of: null }; // by code, in the language of the page

export function ready(service) {
  known = service;
  names = { of: null };
}

// The browser's names, which are in the reader's language; where it has none, or one for two codes, the service's.
export function nameOf(code) {
  if (names.of !== localeNow()) {
    const found = known.languages.map((one) => [one, languageName(one.code, one.name)]);
    const count = new Map();
    for (const [, name] of found) count.set(name, (count.get(name) ?? 0) + 1);
    names = { of: localeNow(), by: new Map(found.map(([one, name]) => [one.code, count.get(name) > 1 ? one.name : name])) };
  }
  return names.by.get(code) ?? code;
}

// {source, target, through}: the language in the middle, if there are two steps; nothing where there is no way.
export function way(source, target) {
  if (source === target) return undefined;
  const found = known.directions.find((one) => one.sources.includes(source) && one.targets.includes(target));
  return found && { source, target, through: found.through };
}

// Whether a pair is translated here; either language may be left open.
export function served(source, target) {
  if (source && target) return source === target || way(source, target) !== undefined;
  return source ? sources().includes(source) : !target || targets("auto").includes(target);
}

const groups = (direct) => known.directions.filter((one) => !direct || !one.through);
const different = (codes) => [...new Set(codes)];

// With `direct`, only what one model does alone.
export const sources = (direct = false) => different(groups(direct).flatMap((one) => one.sources));

export function targets(source, direct = false) {
  if (source === "auto") return different(groups(direct).flatMap((one) => one.targets));
  const own = groups(direct).filter((one) => one.sources.includes(source));
  return different(own.flatMap((one) => one.targets)).filter((code) => code !== source);
}

// What to choose of `codes` where nothing is chosen: what was used last, what the model says, what the reader speaks.
export function likely(codes) {
  const wishes = [...remembered("recent", []), ...known.models.filter((one) => one.directions === 1).map((one) => one.target), localeNow(), "en"];
  return (codes.length > MANY && wishes.find((code) => codes.includes(code))) || codes[0] || "";
}

export function used(code) {
  if (code === "auto" || !code) return;
  remember("recent", different([code, ...remembered("recent", [])]).slice(0, RECENT));
}

const option = (value, text, chosen) => element("option", { value, selected: value === chosen }, text);

// A few languages stand as they are served; many are sorted, so that typing a letter or two finds one.
export function fill(select, codes, chosen, first = []) {
  const named = (code) => option(code, nameOf(code), chosen);
  if (codes.length <= MANY) return select.replaceChildren(...first, ...codes.map(named));
  const { compare } = new Intl.Collator(localeNow());
  const recent = different([chosen, ...remembered("recent", [])]).filter((code) => codes.includes(code));
  const rest = codes.filter((code) => !recent.includes(code)).sort((one, other) => compare(nameOf(one), nameOf(other)));
  const group = (label, own) => (own.length ? [element("optgroup", { label }, ...own.map(named))] : []);
  select.replaceChildren(...first, ...group(t("recentLanguages"), recent), ...group(t("allLanguages"), rest));
}
