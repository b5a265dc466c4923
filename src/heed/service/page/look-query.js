// One query of one head, number by number: q, k, scores, softmax, and the weighted sum.
import * as api from "./api.js";
import { byId, element, unitUnder } from "./dom.js";
import { SIDES, attends, chosen, look, readable, rowWeights, titleOf, titles } from "./look-data.js";
import { repaint } from "./look-heads.js";
import { t } from "./speech.js";

let question = null, found = null, asking = null, asNumbers = false;

export function cards(numbers, ask) {
  found = null;
  question = ask;
  if (!numbers?.encoder.layers || !attends().length) return {};
  const box = element("input", { type: "checkbox", id: "as-numbers", checked: asNumbers });
  box.addEventListener("change", () => { asNumbers = box.checked; draw(); });
  return {
    Query: [element("p", { class: "intro" }, t("queryText")),
      element("div", { class: "row-start" }, element("label", { class: "check", for: "query-row" }, t("queryWho")), element("select", { id: "query-row" }),
        element("span", { id: "query-where", class: "muted small" }), element("label", { class: "check" }, box, t("asNumbers"))),
      element("div", { id: "query-body" }), element("p", { id: "unit-query", class: "readout small", role: "status" })],
  };
}

export function begin() {
  byId("query-row")?.addEventListener("change", () => choose(Number(byId("query-row").value)));
  follow();
}

// A row of the map was taken: it stays marked there.
export function choose(row) {
  if (!byId("query-row")) return;
  Object.assign(chosen, { row, taken: true });
  byId("query-row").value = String(row);
  repaint();
  ask();
}

// A mean over heads has weights, but no query of its own.
const isMean = () => chosen.head < 0 && look()[chosen.part].length * look()[chosen.part][0].length > 1;

// Another part, layer or head was taken.
export function follow() {
  const select = byId("query-row");
  if (!select) return;
  const rows = look()[SIDES[chosen.part].rows];
  chosen.row = Math.min(chosen.row, rows.length - 1);
  select.replaceChildren(...rows.map((token, place) => element("option", { value: place, selected: place === chosen.row }, `${place + 1}. ${readable(token)}`)));
  ask();
}

async function ask() {
  asking?.abort();
  const mine = (asking = new AbortController());
  if (isMean()) {
    byId("query-where").textContent = titleOf(chosen.part, chosen.layer, chosen.head);
    const weights = rowWeights(chosen.part, chosen.layer, chosen.head, chosen.row);
    found = { mean: true, weights, mask: weights.map((_, column) => chosen.part !== "decoder" || column <= chosen.row) };
    return draw();
  }
  const layer = Math.max(0, chosen.layer), head = Math.max(0, chosen.head);
  byId("query-where").textContent = t("queryIn", t(titles[chosen.part]), layer + 1, head + 1);
  try {
    const answer = await api.numbers(question({ query: { part: chosen.part, layer, head, row: chosen.row } }), mine.signal);
    if (asking !== mine) return;
    found = answer.query;
    draw();
  } catch (error) {
    if (error.name !== "AbortError" && asking === mine) byId("query-body").replaceChildren(element("p", { class: "error" }, error.message));
  }
}

export function draw() {
  if (!found || !byId("query-body")) return;
  const columns = look()[SIDES[chosen.part].columns];
  const form = asNumbers ? figures : picture;
  if (found.mean) return byId("query-body").replaceChildren(element("p", { class: "muted small" }, t("chooseHead")), table(columns));
  byId("query-body").replaceChildren(
    form(t("queryIs"), [found.q]), form(t("keysAre"), found.k, columns), table(columns),
    form(t("valuesAre"), found.v, columns), form(t("mixedIs"), [found.mixed]));
  for (const canvas of byId("query-body").querySelectorAll("canvas")) drawSigned(canvas, canvas.rows, canvas.highest);
}

function picture(title, rows, names) {
  const canvas = element("canvas", { role: "img", "aria-label": `${title}, ${rows.length} × ${rows[0].length}` });
  canvas.rows = rows;
  canvas.highest = Math.max(1e-6, ...rows.flat().map(Math.abs));
  canvas.style.height = `${(names ? 18 : 22) * rows.length}px`;
  canvas.addEventListener("pointermove", (event) => {
    const [row, unit] = unitUnder(event, rows);
    byId("unit-query").textContent = t("unitIs", names ? readable(names[row]) : title, unit + 1, rows[row][unit].toFixed(4));
  });
  canvas.addEventListener("pointerleave", () => (byId("unit-query").textContent = ""));
  return element("div", { class: names ? "state-map" : "state-map alone" }, element("h3", {}, title),
    names && element("ol", {}, ...names.map((name) => element("li", {}, readable(name)))), canvas);
}

// The same, to be read.
function figures(title, rows, names) {
  const body = rows.map((row, place) => element("tr", {}, names && element("th", { scope: "row" }, readable(names[place])), ...row.map((value) => element("td", {}, value.toFixed(2)))));
  return element("div", { class: "state-map alone" }, element("h3", {}, title),
    element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }, element("table", { class: "figures number-text" }, element("tbody", {}, ...body))));
}

function table(columns) {
  const scale = Math.sqrt(found.width);
  const body = columns.map((token, place) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${100 * found.weights[place]}%`; // of 1, so that 0.5 is half
    const cell = (text) => element("td", { class: "number-text" }, text);
    const open = found.mask[place];
    return element("tr", { class: open ? null : "closed" }, element("th", { scope: "row" }, readable(token)),
      ...(found.mean ? [] : [cell((found.scores[place] * scale).toFixed(2)), cell(found.scores[place].toFixed(2))]),
      element("td", { class: "number-text weight" }, element("span", { class: "track" }, bar), open ? found.weights[place].toFixed(3) : t("maskedCell")));
  });
  const names = found.mean ? [t("keyColumn"), t("meanColumn")] : [t("keyColumn"), t("dotColumn"), t("scoreColumn", found.width), t("weightColumn")];
  const head = names.map((text) => element("th", { scope: "col" }, text));
  const sum = found.weights.reduce((total, value) => total + value, 0);
  return element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("weightColumn") }, element("table", { class: "query-table" },
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body),
    element("tfoot", {}, element("tr", {}, element("td", { colspan: names.length - 1 }), element("td", { class: "number-text" }, t("sumsTo", sum.toFixed(3)))))));
}
