// Terms and what they must become; a term that becomes nothing stays as it is.
import { byId, element, save } from "./dom.js";
import { remember, remembered } from "./store.js";
import { t } from "./speech.js";

let all = {};
let onChange = () => {};

// As a request says it.
export function fields() {
  const pairs = Object.entries(all), become = pairs.filter(([, target]) => target), stay = pairs.filter(([, target]) => !target);
  return { ...(become.length && { glossary: Object.fromEntries(become) }), ...(stay.length && { keep: stay.map(([source]) => source) }) };
}

export function build(changed) {
  all = remembered("terms", {});
  onChange = changed;
  byId("term-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const source = byId("term-source").value.trim(), target = byId("term-target").value.trim();
    if (!source) return;
    change({ ...all, [source]: target === source ? "" : target });
    byId("term-form").reset();
    byId("term-source").focus();
  });
  byId("terms-file").addEventListener("change", load);
  byId("terms-save").addEventListener("click", () => {
    const lines = Object.entries(all).map(([source, target]) => `${source}\t${target || source}\n`);
    save("glossary.tsv", new Blob(lines, { type: "text/tab-separated-values" }));
  });
  draw();
}

function change(next) {
  all = next;
  remember("terms", Object.keys(all).length ? all : null);
  draw();
  onChange();
}

async function load() {
  const file = byId("terms-file").files[0];
  if (!file) return;
  const lines = (await file.text()).split(/\r?\n/).filter((line) => line.trim());
  const parts = lines.map((line) => line.split("\t").map((part) => part.trim())).filter((part) => part.length > 1 && part[0] && part[1]);
  change({ ...all, ...Object.fromEntries(parts.map(([source, target]) => [source, target === source ? "" : target])) });
  byId("terms-note").textContent = t("termsLoaded", parts.length, lines.length - parts.length);
  byId("terms-file").value = "";
}

export function draw() {
  const items = Object.entries(all).map(([source, target]) => element("li", {},
    element("span", {}, source), ...(target ? [element("span", { class: "muted", "aria-hidden": "true" }, "→"), element("span", {}, target)] : [element("span", { class: "muted small" }, t("asItIs"))]),
    element("button", {
      type: "button", class: "small-x", "aria-label": t("remove", source),
      onclick: () => { const { [source]: _, ...rest } = all; change(rest); byId("term-source").focus(); },
    }, "×")));
  byId("terms").replaceChildren(...(items.length ? items : [element("li", { class: "muted small" }, t("noTerms"))]));
  byId("terms-save").disabled = !items.length;
}
