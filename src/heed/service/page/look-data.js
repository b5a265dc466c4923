// What is looked at, what is chosen, and the maps that follow from it.
// The drawing scripts shared with `heed look` ask for these by their names, so they stand on the window.
import { byId, element, percent } from "./dom.js";
import { say, t } from "./speech.js";

export const SIDES = {
  encoder: { rows: "source", columns: "source" },
  decoder: { rows: "inputs", columns: "inputs" },
  cross: { rows: "target", columns: "source" },
};
export const chosen = {
  part: "cross", layer: -1, head: -1, view: "map", merged: false, special: true, own: false, outlines: true, mask: false,
  least: 0, step: 0, row: 0, taken: false, hover: null,
};
export const isSpecial = (token) => /^<(?!0x).+>$|^\[(PAD|UNK|CLS|SEP|MASK)\]$/.test(token);
export const isAlone = () => !data.source.length || !data.inputs.length; // a text without another: a language model's, or an encoder's
export const readable = (token) => token.replace(/^\u2581/, "").replaceAll("\u2581", " ") || "\u2423";
export const titles = { encoder: "titleEncoder", decoder: "titleDecoder", cross: "titleCross" };
const maps = new Map();
let data = null;

export const look = () => data;
export const attends = () => Object.keys(SIDES).filter((part) => data[part].length);

export function share(ramps, goToStep) {
  Object.assign(globalThis, {
    byId, element, percent, say, isSpecial, readable, goToStep, keepInSight, markedCell: () => chosen.hover,
    state: chosen, settings: { ramps, aligned: [], words: {} }, look: null,
  });
}

export function take(found) {
  data = globalThis.look = found;
  maps.clear();
  const parts = attends();
  Object.assign(chosen, { part: parts.includes("cross") ? "cross" : parts[0] ?? "cross", step: 0, row: 0, taken: false, hover: null, ...bestAligned() });
  regroup();
}

// The head whose attention follows the aligned words most; without any, the mean of all.
function bestAligned() {
  const all = (data.roles?.cross ?? []).flatMap((heads, layer) => heads.map(({ aligned }, head) => ({ layer, head, aligned })));
  const best = all.reduce((most, one) => (one.aligned > most.aligned ? one : most), { layer: -1, head: -1, aligned: 0 });
  return all.length > 1 ? { layer: best.layer, head: best.head } : { layer: -1, head: -1 };
}

// What a head does in this sentence, in words; nothing where it does no one thing.
export const roleOf = (...which) => globalThis.roleOf(...which);

export function regroup() {
  maps.clear();
  if (!data) return;
  for (const name of ["source", "target", "inputs"]) globalThis.settings.words[name] = groups(name);
  globalThis.settings.aligned = aligned();
}

export function keepInSight(holder, child) {
  const box = child.getBoundingClientRect(), frame = holder.getBoundingClientRect();
  if (box.left < frame.left || box.right > frame.right) holder.scrollLeft += box.left - frame.left - frame.width / 2;
}

const shownTokens = (name) => data[name].map((token, index) => ({ token, index })).filter(({ token }) => chosen.special || !isSpecial(token));

// Places (among the tokens shown) by word.
function groups(name) {
  const found = [];
  let before = null;
  shownTokens(name).forEach(({ token }, place) => {
    if (before === null || token.startsWith("\u2581") || isSpecial(token) || isSpecial(before)) found.push([]);
    found.at(-1).push(place);
    before = token;
  });
  return found;
}

function aligned() {
  const sides = [["source", data.source_text], ["target", data.target_text]].map(([name, text]) => {
    const tokens = shownTokens(name);
    const own = groups(name).map((group, number) => ({ group, number })).filter(({ group }) => !isSpecial(tokens[group[0]].token));
    return own.length === text.split(/\s+/).filter(Boolean).length ? own.map(({ number }) => number) : null;
  });
  return sides.includes(null) ? [] : data.alignment.map(([source, target]) => [sides[0][source], sides[1][target]]);
}

// The tokens of an axis, as pieces or as whole words: {text, indices, special, starts}.
export function axis(name) {
  const tokens = shownTokens(name), all = groups(name);
  const starts = new Set(all.map((group) => group[0]));
  const lists = chosen.merged ? all : tokens.map((_, place) => [place]);
  return lists.map((places) => ({
    text: readable(places.map((place) => tokens[place].token).join("")),
    indices: places.map((place) => tokens[place].index),
    special: isSpecial(tokens[places[0]].token),
    starts: starts.has(places[0]),
  }));
}

const mean = (list) => list[0].map((row, i) => row.map((_, j) => list.reduce((sum, map) => sum + map[i][j], 0) / list.length));

// The weights of one row, token by token, whatever the axes show.
export function rowWeights(part, layer, head, row) {
  const layers = data[part];
  return (layer < 0 ? mean(layers.flat()) : head < 0 ? mean(layers[layer]) : layers[layer][head])[row];
}

// What is looked at is summed, those who look are averaged.
function folded(map, rows, columns) {
  return rows.map(({ indices: from }) => columns.map(({ indices: to }) =>
    from.reduce((sum, i) => sum + to.reduce((inner, j) => inner + map[i][j], 0), 0) / from.length));
}

export function weights(part, layer, head) {
  const key = [part, layer, head].join();
  if (!maps.has(key)) {
    const layers = data[part];
    const map = layer < 0 ? mean(layers.flat()) : head < 0 ? mean(layers[layer]) : layers[layer][head];
    const { rows, columns } = SIDES[part];
    const whole = folded(map, axis(rows), axis(columns));
    maps.set(key, whole.map((row) => row.map((value) => (value < chosen.least ? 0 : value))));
  }
  return maps.get(key);
}

export const highest = (map) => Math.max(1e-6, ...map.map((row) => Math.max(...row)));

export function highestOfPart(part) {
  return Math.max(...data[part].flatMap((heads, layer) => heads.map((_, head) => highest(weights(part, layer, head)))));
}

export function titleOf(part, layer, head) {
  const heads = data[part][0].length, name = t(data.source.length ? titles[part] : "titleText");
  if (data[part].length * heads === 1) return name;
  if (layer < 0) return t("titleAll", name, data[part].length * heads);
  if (head < 0) return t("titleMean", name, layer + 1, heads);
  return [t("titleHead", name, layer + 1, head + 1), roleOf(part, layer, head)].filter(Boolean).join(" · ");
}
