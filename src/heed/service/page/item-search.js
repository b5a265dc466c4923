// A field in which items are searched for by name, with suggestions below it: by mouse, or with arrows and Enter.
import { element, later } from "./dom.js";
import { number, t } from "./speech.js";

// `find(text, signal)` returns {items, total}; `pick(item)` takes one; `back()` is the key before an empty field.
export function buildSearch(holder, { name, find, pick, back }) {
  const list = element("ul", { id: `${name}-options`, class: "item-options", role: "listbox", "data-label": `${name}_options`, hidden: true, onmousedown: (event) => event.preventDefault() });
  const note = element("p", { class: "item-note muted small", role: "status", hidden: true });
  const input = element("input", { id: `${name}-input`, role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": `${name}-options`, autocomplete: "off", spellcheck: "false", maxlength: 200,
    "data-placeholder": `${name}_search`, "data-label": `${name}_search`, oninput: () => soon(), onfocus: () => ask(), onblur: close, onkeydown: pressed });
  const box = element("div", { class: "item-box", hidden: true }, list, note);
  let asking = null, found = [], at = -1;
  holder.append(input, box);

  async function ask() {
    soon.cancel();
    asking?.abort();
    const mine = (asking = new AbortController());
    try {
      const { items, total } = await find(input.value, mine.signal);
      if (asking !== mine) return;
      found = items;
      draw(total);
    } catch (error) {
      if (error.name === "AbortError" || asking !== mine) return;
      found = [];
      draw(0, error.message);
    }
  }

  const soon = later(120, ask);

  function draw(total, trouble) {
    list.replaceChildren(...found.map((item, place) => element("li", { id: `${name}-option-${place}`, role: "option", "aria-selected": "false", onclick: () => take(place) }, item)));
    note.textContent = trouble ?? (!found.length ? t("noItems", input.value.trim()) : total > found.length ? t("moreItems", number(total - found.length)) : "");
    note.classList.toggle("error", Boolean(trouble));
    note.hidden = !note.textContent;
    list.hidden = !found.length;
    box.hidden = document.activeElement !== input;
    input.setAttribute("aria-expanded", String(!box.hidden && found.length > 0));
    move(input.value.trim() && found.length ? 0 : -1);
  }

  function move(place) {
    at = place;
    [...list.children].forEach((node, index) => node.setAttribute("aria-selected", String(index === at)));
    if (at < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  }

  function take(place) {
    const item = found[place];
    input.value = "";
    close();
    pick(item);
  }

  function close() {
    soon.cancel();
    asking?.abort();
    asking = null;
    box.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function pressed(event) {
    if (event.isComposing) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      if (box.hidden) ask();
      else if (found.length) move((at + by + found.length) % found.length);
    } else if (event.key === "Enter" && !box.hidden && at >= 0) {
      event.preventDefault();
      take(at);
    } else if (event.key === "Escape" && !box.hidden) {
      event.stopPropagation();
      close();
    } else if (event.key === "Backspace" && !input.value) back();
  }

  return { close, focus: () => input.focus() };
}
