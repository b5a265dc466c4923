// Which language the page speaks, and how it says a thing.
import { remember, remembered } from "./store.js";
import { TEXTS, WORDS } from "./words.js";

const LOCALES = ["en", "ko"];
let locale = null;

export const localeNow = () => locale;

export function chooseLocale(asked) {
  const own = asked ?? remembered("locale", null) ?? (navigator.language.startsWith("ko") ? "ko" : "en");
  locale = LOCALES.includes(own) ? own : "en";
  if (asked) remember("locale", locale);
  document.documentElement.lang = locale;
}

const fill = (text, values) => text.replace(/\{(\d)\}/g, (_, place) => values[place]);

export function t(key, ...values) {
  if (!(key in WORDS)) throw new Error(`no words for ${key}`);
  return fill(WORDS[key][LOCALES.indexOf(locale)], values);
}

export const say = (text, ...values) => fill((locale === "ko" && TEXTS[text]) || text, values);

const names = {};
export function languageName(code, otherwise) {
  try {
    names[locale] ??= new Intl.DisplayNames([locale], { type: "language", fallback: "none" });
    return names[locale].of(code.replaceAll("_", "-")) ?? otherwise ?? code;
  } catch {
    return otherwise ?? code;
  }
}

export function number(value, digits = 0) {
  return value.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// Fill in all that stands in the document and waits for words.
export function speak(root = document) {
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of root.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
  for (const node of root.querySelectorAll("[data-placeholder]")) node.placeholder = t(node.dataset.placeholder);
}
