// What the views of models that read have in common: parts of a text that are marked, and rows with bars.
import { element, percent } from "./dom.js";

// A text as nodes: `make(span, index)` for each span of it, by its characters, and what is between as it is.
export function marked(text, spans, make) {
  const letters = Array.from(text), found = [];
  let place = 0;
  spans.forEach((span, index) => {
    if (span.start > place) found.push(letters.slice(place, span.start).join(""));
    found.push(make(span, index));
    place = span.end;
  });
  if (place < letters.length) found.push(letters.slice(place).join(""));
  return found;
}

// Rows of {name, note, share, said}: `share` is the length of the bar, from 0 to 1. With `pick(index)` they are buttons.
export function bars(rows, { pick, chosen, label } = {}) {
  return element("ul", { class: "read-bars", "aria-label": label }, ...rows.map((row, index) => {
    const bar = element("span", { class: "choice-bar", "aria-hidden": "true" });
    bar.style.width = `${Math.max(0.5, 100 * Math.max(0, row.share))}%`;
    const parts = [element("span", { class: "choice-word" }, row.name, row.note && element("span", { class: "read-note" }, row.note)),
      element("span", { class: "choice-share number-text" }, row.said ?? percent(row.share)), bar];
    if (!pick) return element("li", { class: "read-row choice" }, ...parts);
    return element("li", {}, element("button", { type: "button", class: "choice", "aria-pressed": String(index === chosen), onclick: () => pick(index) }, ...parts));
  }));
}
