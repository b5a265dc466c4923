// The continuations: a column for each control code, or one. Tokens are coloured by how likely the model found them.
import * as api from "./api.js";
import { byId, copyText, element, percent, roving, toast } from "./dom.js";
import * as popover from "./popover.js";
import { t } from "./speech.js";

const LEVELS = [0.5, 0.2, 0.05]; // below the first a token is tinted, below each next one more
let all = [], hooks = null, text = "";

export function build(given) {
  hooks = given;
}

export function lay(codes) {
  giveUp();
  all = (codes.length ? codes : [null]).map((code) => make(code));
  byId("columns").replaceChildren(...all.map((own) => own.node));
  byId("write-panes").classList.toggle("several", all.length > 1);
}

function make(code) {
  const own = { code, tokens: [], kept: 0, promptIds: null, asking: null };
  own.out = element("div", { class: "continuation", role: "group", "aria-label": code ? t("continuationOf", code) : t("continuation"), dir: "auto" });
  own.status = element("p", { class: "muted small column-status", role: "status" });
  const button = (words, run, strong) => element("button", { type: "button", class: strong ? "quiet strong" : "quiet", "data-t": words, disabled: true, onclick: run }, t(words));
  own.buttons = [button("copy", () => copy(own)), button("takeOver", () => hooks.take(said(own)), true)];
  own.node = element("section", { class: "text-column", "aria-label": code ?? t("continuation") }, code && element("h2", { class: "column-code" }, code),
    own.out, element("div", { class: "pane-foot" }, own.status, element("div", { class: "actions" }, ...own.buttons)));
  roving(own.out, ".tok");
  own.out.addEventListener("click", (event) => open(own, event.target.closest(".tok")));
  own.out.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open(own, event.target.closest(".tok"));
  });
  placeholder(own);
  return own;
}

export function respeak() {
  for (const own of all) {
    for (const node of own.buttons) node.textContent = t(node.dataset.t);
    if (own.tokens.length && !own.asking) sayShare(own);
    else if (!text.trim()) placeholder(own);
  }
}

export function giveUp() {
  for (const own of all) {
    own.asking?.abort();
    own.asking = null;
    own.out.classList.add("stale");
  }
}

const said = (own) => own.tokens.map((token) => token.text).join("");

export function takeFirst() {
  if (all[0]?.tokens.length && !all[0].out.classList.contains("stale")) hooks.take(said(all[0]));
}

async function copy(own) {
  toast(t((await copyText(text + said(own))) ? "copied" : "copyFailed"));
}

function placeholder(own) {
  own.out.replaceChildren(element("span", { class: "muted" }, t("continuesHere")));
  own.out.classList.remove("stale");
  own.status.textContent = "";
}

export function ask(given) {
  text = given;
  for (const own of all) {
    Object.assign(own, { tokens: [], kept: 0, promptIds: null });
    for (const node of own.buttons) node.disabled = true;
    if (text.trim()) go(own);
    else {
      own.asking?.abort();
      own.asking = null;
      placeholder(own);
    }
  }
}

// The text goes on after what is kept: all that stands there, up to the token that was chosen.
async function go(own) {
  own.asking?.abort();
  const mine = (own.asking = new AbortController()), { kept } = own;
  const prompt = kept ? [...own.promptIds, ...own.tokens.map((token) => token.id)] : text;
  own.status.textContent = t("writing");
  own.out.setAttribute("aria-busy", "true");
  try {
    for await (const part of api.completion({ ...hooks.request(own.code), prompt }, mine.signal)) {
      if (own.asking !== mine) return;
      if (part.prompt_token_ids && !kept) own.promptIds = part.prompt_token_ids;
      own.tokens.push(...tokensOf(part));
      draw(own);
    }
    sayShare(own);
  } catch (error) {
    if (error.name === "AbortError" || own.asking !== mine) return;
    own.status.textContent = "";
    if (!own.tokens.length) own.out.replaceChildren();
    own.out.append(element("p", { class: "error", role: "alert" }, error.message));
    own.out.classList.remove("stale");
  }
  own.asking = null;
  own.out.removeAttribute("aria-busy");
}

const sayShare = (own) => (own.status.textContent = t("meanProbability", percent(mean(own.tokens))));

// The geometric mean: what one token was given on average.
const mean = (tokens) => Math.exp(tokens.reduce((sum, token) => sum + token.logprob, 0) / tokens.length);

function tokensOf({ token_ids: ids, logprobs }) {
  return ids.map((id, i) => ({ id, text: logprobs.tokens[i], logprob: logprobs.token_logprobs[i], likely: logprobs.top_tokens[i] }));
}

function draw(own) {
  const at = own.out.contains(document.activeElement) ? document.activeElement.dataset.index : null;
  own.out.replaceChildren(...own.tokens.map((token, index) => token.text && node(own, token, index)).filter(Boolean));
  own.out.classList.remove("stale");
  for (const button of own.buttons) button.disabled = false;
  const first = (at !== null && own.out.querySelector(`[data-index="${at}"]`)) || own.out.querySelector(".tok");
  if (first) first.tabIndex = 0;
  if (at !== null) first?.focus();
}

const readable = (written) => (written.trim() ? written : written.replaceAll("\n", "\u23ce\n"));

function node(own, token, index) {
  const p = Math.exp(token.logprob), level = LEVELS.filter((edge) => p < edge).length;
  const name = `tok level-${level}${index === own.kept - 1 ? " kept" : ""}`;
  return element("span", {
    class: name, role: "button", tabindex: -1, "data-index": index, "aria-haspopup": "dialog", title: percent(p), "aria-label": `${token.text}, ${percent(p)}`,
  }, readable(token.text));
}

function open(own, anchor) {
  if (!anchor || own.out.classList.contains("stale")) return;
  const index = Number(anchor.dataset.index), token = own.tokens[index];
  const mine = popover.show(anchor, t("otherTokens"), t("otherWordsFor", token.text.trim()));
  const rows = token.likely.some(({ id }) => id === token.id) ? token.likely : [...token.likely, token];
  mine.list.classList.add("compact");
  mine.list.replaceChildren(...rows.map((one, number) => popover.choice(
    { word: name(one.text), probability: Math.exp(one.logprob), current: one.id === token.id }, number, () => turn(own, index, one))));
  mine.list.querySelector("button").focus();
  popover.place(mine);
}

const name = (written) => (written === "\n" ? `\u23ce ${t("lineEnds")}` : written.replace(/^ /, "\u2423").replaceAll(" ", "\u2423") || "\u2423");

// Another token at a place: what was before stays, and the text goes on after it.
function turn(own, index, { id, text: written, logprob }) {
  const { likely } = own.tokens[index];
  own.tokens = [...own.tokens.slice(0, index), { id, text: written, logprob, likely }];
  own.kept = own.tokens.length;
  draw(own);
  own.out.querySelector(`[data-index="${index}"]`)?.focus();
  go(own);
}
