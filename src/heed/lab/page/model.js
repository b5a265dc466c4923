// The data of the page, what is chosen, and the maps that follow from it.
const byId = (id) => document.getElementById(id);
const look = JSON.parse(byId("look").textContent);
const settings = JSON.parse(byId("settings").textContent);
const SIDES = {
  encoder: { rows: "source", columns: "source" },
  decoder: { rows: "inputs", columns: "inputs" },
  cross: { rows: "target", columns: "source" },
};
const ATTENDS = Object.keys(SIDES).filter((part) => look[part].length); // a recurrent model has fewer, or none
const state = {
  part: settings.part, layer: settings.layer, head: settings.head, // -1: the mean
  view: "map", merged: false, own: false, outlines: true,
  step: 0, hover: null, // hover: {line: "source" or "target", index} or {row, column}
};

const isSpecial = (token) => token.length > 2 && token.startsWith("<") && token.endsWith(">");
const readable = (token) => token.replace(/^\u2581/, "").replaceAll("\u2581", " ") || "\u2423";
// What people read, {0} and {1} filled in; another page that uses these scripts may say it in another language.
const say = (text, ...values) => text.replace(/\{(\d)\}/g, (_, place) => values[place]);
const percent = (p) => (p >= 0.995 && p < 1 ? ">99%" : p > 0 && p < 0.005 ? "<1%" : `${Math.round(100 * p)}%`);

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// The tokens of an axis, as pieces or as whole words: {text, indices, special, starts}.
function axis(name) {
  const tokens = look[name];
  const groups = settings.words[name];
  const starts = new Set(groups.map((group) => group[0]));
  const lists = state.merged ? groups : tokens.map((_, index) => [index]);
  return lists.map((indices) => ({
    text: readable(indices.map((index) => tokens[index]).join("")),
    indices,
    special: isSpecial(tokens[indices[0]]),
    starts: starts.has(indices[0]),
  }));
}

function mean(maps) {
  return maps[0].map((row, i) => row.map((_, j) => maps.reduce((sum, map) => sum + map[i][j], 0) / maps.length));
}

// Whole words: what is looked at is summed, those who look are averaged, so that rows still sum to 1.
function merge(map, rows, columns) {
  return rows.map(({ indices: from }) => columns.map(({ indices: to }) =>
    from.reduce((sum, i) => sum + to.reduce((inner, j) => inner + map[i][j], 0), 0) / from.length));
}

const remembered = new Map();
function weights(part, layer, head) {
  const key = [part, layer, head, state.merged].join();
  if (!remembered.has(key)) {
    const layers = look[part];
    const map = layer < 0 ? mean(layers.flat()) : head < 0 ? mean(layers[layer]) : layers[layer][head];
    const { rows, columns } = SIDES[part];
    remembered.set(key, state.merged ? merge(map, axis(rows), axis(columns)) : map);
  }
  return remembered.get(key);
}

const highest = (map) => Math.max(1e-6, ...map.map((row) => Math.max(...row)));

function highestOfPart(part) {
  const key = [part, "highest", state.merged].join();
  if (!remembered.has(key)) {
    const maps = look[part].flatMap((heads, layer) => heads.map((_, head) => highest(weights(part, layer, head))));
    remembered.set(key, Math.max(...maps));
  }
  return remembered.get(key);
}

function chosen() {
  const { rows, columns } = SIDES[state.part];
  const map = weights(state.part, state.layer, state.head);
  return { map, rows: axis(rows), columns: axis(columns), top: highest(map) };
}

function titleOf(part, layer, head) {
  const heads = look[part][0].length;
  if (look[part].length * heads === 1) return settings.titles[part];
  if (layer < 0) return `${settings.titles[part]} · mean of all ${look[part].length * heads} heads`;
  const name = `${settings.titles[part]} · layer ${layer + 1} · ${head < 0 ? `mean of ${heads} heads` : `head ${head + 1}`}`;
  return [name, roleOf(part, layer, head)].filter(Boolean).join(" · ");
}
