// What comes next: items are picked, what is recommended after them is seen at once, and what in the history it goes by.
import * as api from "./api.js";
import { buildSearch } from "./item-search.js";
import { byId, element, percent } from "./dom.js";
import { number, speak, t } from "./speech.js";
import { writeAddress } from "./store.js";

const COUNT = 10, MOST = 50; // items that are recommended, and that a history has here
const own = (part) => byId(`recommend-${part}`);
const view = { known: [], model: null, history: [], found: null, lit: null, pinned: null };
let asking = null, search = null;

export function build() {
  const select = element("select", { id: "recommend-model", onchange: () => { choose(own("model").value); set([]); } });
  const picking = element("div", { class: "read-fields pick-pane" },
    element("div", { class: "pick-search", id: "recommend-search" }),
    element("p", { class: "read-label", id: "recommend-history-label", "data-t": "recommend_history" }),
    element("ol", { id: "recommend-history", class: "picked", "aria-labelledby": "recommend-history-label" }),
    element("p", { id: "recommend-goes-by", class: "muted small", role: "status" }),
    element("div", { class: "pane-foot" },
      element("form", { id: "recommend-user-form", class: "row-start", autocomplete: "off", onsubmit: takeUser },
        element("label", { class: "small muted", for: "recommend-user", "data-t": "recommend_user" }),
        element("input", { id: "recommend-user", maxlength: 1000 }),
        element("button", { class: "quiet", type: "submit", "data-t": "recommend_takeUser" })),
      element("div", { class: "actions" }, element("button", { type: "button", id: "recommend-clear", class: "quiet", "data-t": "recommend_clear", onclick: () => { set([]); search.focus(); } }))));
  const answer = element("div", { class: "read-answer" },
    element("div", { id: "recommend-out", class: "read-out", role: "group", "data-label": "recommend_out" }),
    element("div", { class: "pane-foot" }, element("p", { id: "recommend-status", class: "muted small", role: "status" }),
      element("label", { class: "check" }, element("input", { id: "recommend-unseen", type: "checkbox", checked: true, onchange: go }), element("span", { "data-t": "recommend_unseen" }))));
  const section = element("section", { id: "view-recommend", class: "view", "aria-labelledby": "recommend-title", hidden: true },
    element("h1", { id: "recommend-title", class: "hidden-title", "data-t": "recommend" }),
    element("div", { class: "mode-bar" },
      element("label", { id: "recommend-model-label", class: "language" }, element("span", { class: "hidden-title", "data-t": "modelToAsk" }), select),
      element("p", { id: "recommend-about", class: "model muted" })),
    element("div", { class: "write-panes read-panes" }, picking, answer),
    element("p", { class: "hint muted small", "data-t": "recommendHint" }));
  byId("view-look").before(section);
  search = buildSearch(own("search"), { name: "recommend", find: (q, signal) => api.items(view.model.name, q, signal), pick: add, back: () => set(view.history.slice(0, -1)) });
  speak(section);
}

export function ready(known) {
  view.known = known.recommenders ?? [];
  if (view.known.length) choose(view.known[0].name);
}

export function enter(values) {
  if (!view.model) return;
  if (values.model) choose(values.model);
  if (values.items !== undefined) set(values.items.split("\n").filter(Boolean).slice(-MOST));
  else show();
}

export const leave = () => search.close();

export function respeak() {
  if (!view.model) return;
  search.close();
  describe();
  show();
}

function choose(name) {
  view.model = view.known.find((one) => one.name === name) ?? view.known[0];
  view.found = null;
  own("model").replaceChildren(...view.known.map((one) => element("option", { value: one.name, selected: one === view.model }, one.name)));
  own("model-label").hidden = view.known.length < 2;
  own("user-form").hidden = !view.model.users;
  describe();
}

function describe() {
  const { name, kind, weights, items } = view.model;
  own("about").textContent = t("recommend_about", name, kind, number(weights / 1e6, 1), number(items));
}

function add(item) {
  set([...view.history, item]);
}

function set(history) {
  view.history = history.slice(-MOST);
  view.lit = view.pinned = null;
  go();
}

async function takeUser(event) {
  event.preventDefault();
  const user = own("user").value.trim();
  if (!user) return;
  await asked(async (signal) => {
    const { results } = await api.recommend({ user, k: 1, model: view.model.name }, signal);
    view.history = results[0].history.slice(-MOST);
    view.lit = view.pinned = null;
    return ask(signal);
  });
}

const go = () => asked(ask);

async function ask(signal) {
  const { results, seconds } = await api.recommend({ items: view.history, k: COUNT, exclude_seen: own("unseen").checked, explain: true, model: view.model.name }, signal);
  return { ...results[0], seconds };
}

// What is asked for takes the place of what was asked before; an error is said where the answer would be.
async function asked(call) {
  asking?.abort();
  const mine = (asking = new AbortController());
  if (call === ask && !view.history.length) return void ((view.found = null), show());
  drawHistory();
  own("out").classList.add("stale");
  own("status").textContent = t("asking");
  try {
    const found = await call(mine.signal);
    if (asking !== mine) return;
    view.found = found;
    show();
    own("status").textContent = t("took", number(found.seconds, 2));
  } catch (error) {
    if (error.name === "AbortError" || asking !== mine) return;
    view.found = null;
    show();
    own("out").replaceChildren(element("p", { class: "error", role: "alert" }, error.message));
  }
}

function show() {
  if (!own("out").closest(".view").hidden) writeAddress("recommend", { model: view.known.length > 1 ? view.model.name : "", items: view.history.join("\n") });
  own("out").classList.remove("stale");
  own("status").textContent = "";
  if (!view.found) own("out").replaceChildren(element("p", { class: "muted" }, t("recommend_empty")));
  else if (!view.found.items.length) own("out").replaceChildren(element("p", { class: "muted" }, t("recommend_nothing")));
  else own("out").replaceChildren(element("ol", { class: "read-bars recommended", "aria-label": t("recommend_out"), onmouseleave: () => light(view.pinned) }, ...view.found.items.map(row)));
  drawHistory();
}

function row({ item, score }, index) {
  const bar = element("span", { class: "choice-bar", "aria-hidden": "true" });
  bar.style.width = `${Math.max(0.5, 100 * Math.exp(score - view.found.items[0].score))}%`;
  const pin = () => { view.pinned = view.pinned === index ? null : index; light(view.pinned); };
  return element("li", { class: "recommended-one", onmouseenter: () => light(index) },
    element("button", { type: "button", class: "choice", "aria-pressed": "false", onclick: pin, onfocus: () => light(index), onblur: () => light(view.pinned) },
      element("span", { class: "choice-word" }, item), element("span", { class: "choice-share number-text" }, number(score, 2)), bar),
    element("button", { type: "button", class: "small-x", "aria-label": t("recommend_add", item), title: t("recommend_add", item), onclick: () => add(item) }, "+"));
}

// The items of the history, with what a recommendation goes by, or with the attention that all of them share.
function light(index) {
  view.lit = index;
  own("out").querySelectorAll(".choice").forEach((node, place) => node.setAttribute("aria-pressed", String(place === view.pinned)));
  own("out").querySelectorAll(".recommended-one").forEach((node, place) => node.classList.toggle("lit", place === index));
  mark();
}

function drawHistory() {
  own("history").replaceChildren(...view.history.map((item, place) => element("li", { class: "picked-one" },
    element("span", { class: "picked-name" }, item), element("span", { class: "picked-number number-text" }),
    element("button", { type: "button", class: "small-x", "aria-label": t("recommend_remove", item), onclick: () => remove(place) }, element("span", { "aria-hidden": "true" }, "×")),
    element("span", { class: "picked-bar", "aria-hidden": "true" }))));
  own("clear").disabled = !view.history.length;
  own("history-label").hidden = !view.history.length;
  mark();
}

function remove(place) {
  set(view.history.filter((_, index) => index !== place));
  const left = own("history").querySelectorAll("button");
  (left[Math.min(place, left.length - 1)] ?? own("input")).focus();
}

function mark() {
  const { found, lit } = view, chosen = found && lit !== null ? found.items[lit] : null;
  const fits = found && found.history.join("\n") === view.history.join("\n");
  const attention = fits ? found.history.map((_, place) => mean(found.attention.map((layer) => layer[place]))) : null;
  const most = chosen ? Math.max(...chosen.influence.map(Math.abs), 1e-9) : 0;
  own("history").querySelectorAll(".picked-one").forEach((node, place) => {
    const influence = fits && chosen ? chosen.influence[place] : 0;
    node.style.setProperty("--strength", `${Math.round((45 * Math.abs(influence)) / (most || 1))}%`);
    node.classList.toggle("for", influence > 0);
    node.classList.toggle("against", influence < 0);
    node.querySelector(".picked-bar").style.transform = `scaleX(${attention && !chosen ? attention[place] : 0})`;
    node.querySelector(".picked-number").textContent = !fits ? "" : chosen ? signed(influence) : percent(attention[place]);
  });
  own("goes-by").textContent = !fits ? "" : chosen ? t("recommend_goesBy", chosen.item) : t("recommend_attention");
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const signed = (value) => `${value < 0 ? "\u2212" : "+"}${number(Math.abs(value), 2)}`;
