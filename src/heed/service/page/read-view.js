// The frame of a view for models that read: what is typed on one side, what the model says of it on the other.
import { byId, element, later } from "./dom.js";
import * as popover from "./popover.js";
import { number, speak, t } from "./speech.js";
import { addressOf, writeAddress } from "./store.js";

const LONGEST_LINK = 4000;
const isText = (text) => text.trim();

// `fields`: {name, rows, shown(model), enough(text, model)} of what is typed. `ask(values, model, signal)` asks the service; without it what is typed is
// drawn at once. `draw(found, view)` returns the nodes of the answer. `view` has `values`, `model`, and `set(name, text)`.
// `looks` is the field whose text can be looked at from inside.
export function readView({ name, verb, fields, ask, draw, looks }) {
  const view = { name, known: [], model: null, values: Object.fromEntries(fields.map((one) => [one.name, ""])), found: null, set };
  let asking = null, longest = 10000;
  const own = (part) => byId(`${name}-${part}`);

  function build() {
    const select = element("select", { id: `${name}-model`, onchange: () => { choose(own("model").value); take(); } });
    const inputs = fields.map((field) => element("label", { class: "read-field", id: `${name}-${field.name}-field` },
      element("span", { class: "read-label", "data-t": `${name}_${field.name}` }),
      element("textarea", { id: `${name}-${field.name}`, rows: field.rows ?? 4, spellcheck: "false", autocomplete: "off", "data-placeholder": `${name}_${field.name}_here`, oninput: typed })));
    const section = element("section", { id: `view-${name}`, class: "view", "aria-labelledby": `${name}-title`, hidden: true },
      element("h1", { id: `${name}-title`, class: "hidden-title", "data-t": name }),
      element("div", { class: "mode-bar" },
        element("label", { id: `${name}-model-label`, class: "language" }, element("span", { class: "hidden-title", "data-t": "modelToAsk" }), select),
        element("p", { id: `${name}-about`, class: "model muted" })),
      element("div", { class: "write-panes read-panes" }, element("div", { class: "read-fields" }, ...inputs),
        element("div", { class: "read-answer" }, element("div", { id: `${name}-out`, class: "read-out", role: "group", "data-label": `${name}_out` }),
          element("div", { class: "pane-foot" }, element("p", { id: `${name}-status`, class: "muted small", role: "status" }),
            element("div", { class: "actions" }, looks && element("button", { type: "button", id: `${name}-look`, class: "quiet", "data-t": "lookButton", onclick: lookInside }))))),
      element("p", { class: "hint muted small", "data-t": `${name}Hint` }));
    byId("view-look").before(section);
    speak(section);
  }

  function ready(known) {
    view.known = (known.encoders ?? []).filter((one) => one.verb === verb);
    longest = Math.min(10000, known.limits.characters);
    for (const field of fields) own(field.name).maxLength = longest;
    if (view.known.length) choose(view.known[0].name);
  }

  function enter(values) {
    if (!view.known.length) return;
    const given = fields.filter((one) => values[one.name] !== undefined);
    if (values.model) choose(values.model);
    for (const one of given) own(one.name).value = values[one.name];
    if (given.length || values.model) take();
    else writeBack();
  }

  const leave = () => popover.close(false);

  function respeak() {
    if (!view.model) return;
    popover.close(false);
    describe();
    if (view.found) show();
    else placeholder();
  }

  function choose(chosen) {
    view.model = view.known.find((one) => one.name === chosen) ?? view.known[0];
    own("model").replaceChildren(...view.known.map((one) => element("option", { value: one.name, selected: one === view.model }, one.name)));
    own("model-label").hidden = view.known.length < 2;
    for (const field of fields) own(`${field.name}-field`).hidden = field.shown ? !field.shown(view.model) : false;
    if (looks) own("look").hidden = !view.model.attention;
    describe();
    placeholder();
  }

  function lookInside() {
    location.hash = addressOf("look", { model: view.model.name, text: view.values[looks] });
  }

  function describe() {
    const { name: called, kind, layers, heads, weights } = view.model;
    const words = !layers ? "readAbout" : heads ? "writeAbout" : "writeAboutPlain";
    own("about").textContent = t(words, called, kind, number(weights / 1e6, 1), layers, heads);
  }

  const isShown = (field) => !own(`${field.name}-field`).hidden;

  function take() {
    for (const field of fields) view.values[field.name] = isShown(field) ? own(field.name).value : "";
    go();
  }

  // What is put in by a choice of words, not by typing.
  function set(field, text) {
    own(field).value = text;
    take();
  }

  function typed() {
    popover.close(false);
    asking?.abort();
    own("out").classList.add("stale");
    if (ask) soon();
    else take();
  }

  const soon = later(350, take);

  function placeholder() {
    view.found = null;
    own("out").replaceChildren(element("p", { class: "muted" }, t(`${name}_empty`)));
    own("out").classList.remove("stale");
    own("status").textContent = "";
  }

  async function go() {
    soon.cancel();
    asking?.abort();
    if (!own("out").closest(".view").hidden) writeBack();
    if (looks) own("look").disabled = !view.values[looks].trim();
    if (fields.some((field) => isShown(field) && !(field.enough ?? isText)(view.values[field.name], view.model))) return placeholder();
    if (!ask) return void ((view.found = {}), show());
    const mine = (asking = new AbortController());
    own("status").textContent = t("asking");
    try {
      const found = await ask(view.values, view.model, mine.signal);
      if (asking !== mine) return;
      view.found = found;
      show();
      own("status").textContent = t("took", number(found.seconds, 2));
    } catch (error) {
      if (error.name === "AbortError" || asking !== mine) return;
      placeholder();
      own("out").replaceChildren(element("p", { class: "error", role: "alert" }, error.message));
    }
  }

  function show() {
    own("out").replaceChildren(...draw(view.found, view));
    own("out").classList.remove("stale");
  }

  function writeBack() {
    const all = Object.entries(view.values).filter(([, text]) => text.length <= LONGEST_LINK);
    writeAddress(name, { model: view.known.length > 1 ? view.model.name : "", ...Object.fromEntries(all) });
  }

  return { verb, build, ready, enter, leave, respeak };
}
