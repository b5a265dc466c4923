// A small box at a word, with choices. One is open at a time.
import { element, percent, roving } from "./dom.js";

let open = null;
export const isOpen = (box) => open === box;

export function close(back = true) {
  if (!open) return;
  open.asking.abort();
  open.box.remove();
  document.removeEventListener("pointerdown", outside, true);
  const { anchor } = open;
  open = null;
  anchor.classList.remove("open");
  if (back && anchor.isConnected) anchor.focus();
}

function outside(event) {
  if (open && !open.box.contains(event.target)) close(false);
}

// {anchor, box, list, asking}: what is shown, and what is given up when it is closed.
export function show(anchor, title, label, first) {
  close(false);
  const list = element("ul", { class: "choices" }, first && element("li", { class: "muted small" }, first));
  const box = element("div", { class: "popover", role: "dialog", "aria-label": label, tabindex: -1 }, element("p", { class: "popover-title" }, title), list);
  open = { anchor, box, list, asking: new AbortController() };
  anchor.classList.add("open");
  document.body.append(box);
  place(open);
  box.focus();
  roving(box, "button");
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); close(); } });
  box.addEventListener("focusout", (event) => { if (event.relatedTarget && !box.contains(event.relatedTarget)) close(false); });
  document.addEventListener("pointerdown", outside, true);
  return open;
}

export function choice({ word, probability, current, text }, number, pick) {
  const bar = element("span", { class: "choice-bar", "aria-hidden": "true" });
  bar.style.width = `${Math.max(1, 100 * probability)}%`;
  return element("li", {}, element("button", {
    type: "button", class: current ? "choice current" : "choice", tabindex: number ? -1 : 0, "aria-current": current && "true",
    onclick: () => { close(); if (!current) pick(); },
  }, element("span", { class: "choice-word" }, word), element("span", { class: "choice-share number-text" }, percent(probability)), bar,
  text && element("span", { class: "choice-text" }, text)));
}

export function place({ anchor, box }) {
  const word = anchor.getBoundingClientRect(), margin = 8;
  const room = document.documentElement.clientWidth, wide = Math.min(360, room - 2 * margin);
  box.style.width = `${wide}px`;
  box.style.left = `${Math.max(margin, Math.min(word.left, room - wide - margin)) + window.scrollX}px`;
  const below = window.innerHeight - word.bottom;
  const above = below < box.offsetHeight + 2 * margin && word.top > box.offsetHeight + 2 * margin;
  box.style.top = `${(above ? word.top - box.offsetHeight - 6 : word.bottom + 6) + window.scrollY}px`;
}
