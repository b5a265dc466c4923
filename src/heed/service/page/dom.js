// Small tools for the document. Text goes in as text, never as markup.
export const byId = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function later(wait, work) {
  let timer = 0;
  const run = (...values) => { clearTimeout(timer); timer = setTimeout(() => work(...values), wait); };
  run.cancel = () => clearTimeout(timer);
  return run;
}

let toastTimer = 0;
export function toast(text) {
  const node = byId("toast");
  node.textContent = text;
  node.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => node.classList.remove("shown"), 2400);
}

// Pages on plain http have no clipboard of their own; a selection can still be copied.
export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try { return await navigator.clipboard.writeText(text), true; } catch { /* denied: the old way */ }
  }
  const area = element("textarea", { class: "hidden-title", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  const before = document.activeElement;
  area.select();
  let done = false;
  try { done = document.execCommand("copy"); } catch { done = false; }
  area.remove();
  before?.focus?.();
  return done;
}

export function save(name, blob) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// One stop for Tab, arrows within.
export function roving(holder, selector) {
  holder.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const ends = { Home: 0, End: -1 }[event.key];
    if (by === undefined && ends === undefined) return;
    const all = [...holder.querySelectorAll(selector)];
    const at = all.indexOf(document.activeElement);
    const next = ends !== undefined ? all.at(ends) : all[at + by];
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (!next) return;
    all.forEach((node) => (node.tabIndex = node === next ? 0 : -1));
    next.focus();
  });
}

// Row and column of a table of numbers that is drawn over the whole of what is pointed at.
export function unitUnder({ clientX, clientY, currentTarget }, rows) {
  const box = currentTarget.getBoundingClientRect();
  const place = (value, from, size, count) => Math.max(0, Math.min(count - 1, Math.floor(((value - from) / size) * count)));
  return [place(clientY, box.top, box.height, rows.length), place(clientX, box.left, box.width, rows[0].length)];
}

export const percent = (p) => (p >= 0.995 && p < 1 ? ">99%" : p > 0 && p < 0.005 ? "<1%" : `${Math.round(100 * p)}%`);
