// What the views of models that read have in common: parts of a text that are marked, and rows with bars.
import { byId, element, percent } from "./dom.js";
import { speak } from "./speech.js";

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

// The frame of a view of images, `name` of which begins the ids: the model, panes, a hint. An image can be dropped anywhere in it.
export function imageFrame(view, name, { pick, take, panes, more = [] }) {
  const section = element("section", { id: `view-${view}`, class: "view", "aria-labelledby": `${name}-title`, hidden: true },
    element("h1", { id: `${name}-title`, class: "hidden-title", "data-t": view }),
    element("div", { class: "mode-bar" },
      element("label", { id: `${name}-model-label`, class: "language" }, element("span", { class: "hidden-title", "data-t": "modelToAsk" }),
        element("select", { id: `${name}-model`, onchange: (event) => pick(event.target.value) })),
      element("p", { id: `${name}-about`, class: "model muted" })),
    element("div", { class: "write-panes read-panes" }, ...panes), ...more,
    element("p", { class: "hint muted small", "data-t": `${view}Hint` }));
  byId("view-look").before(section);
  const dragged = (event) => {
    event.preventDefault();
    byId(`${name}-drop`).classList.toggle("over", event.type === "dragover");
    if (event.type === "drop") take(event.dataTransfer.files[0]);
  };
  for (const kind of ["dragover", "dragleave", "drop"]) section.addEventListener(kind, dragged);
  speak(section);
}

export async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}
