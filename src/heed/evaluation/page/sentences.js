"use strict";
// A few groups of rows exist at a time: those near the window are filled, the others keep only their height.
const data = JSON.parse(document.getElementById("data").textContent);
const paired = data.paired, all = data.rows, size = 40;
const byId = (id) => document.getElementById(id);
const columns = paired
  ? [["n", "Line"], ["a", "chrF of A", "A"], ["b", "chrF of B", "B"], ["d", "B − A"]]
  : [["n", "Line"], ["a", "chrF"], ["u", "BLEU"]];
const start = { query: "", low: null, side: null, key: paired ? "d" : "a", up: true };
let state = { ...start }, rowHeight = 150;

for (const row of all) {
  row.found = [row.s, ...row.t.map((runs) => runs.map((run) => run[1]).join(""))].join("\n").toLocaleLowerCase();
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function number(row, key, label) {
  const signed = key === "d";
  const text = key === "n" ? row.n.toLocaleString("en") : signed ? difference(row.d) : row[key].toFixed(1);
  const side = !signed || row.d === 0 ? "" : row.d > 0 ? " more" : " less";
  const cell = element("div", "number " + (key === "n" ? "line" : key) + side);
  cell.append(element("span", "", label), text);
  if (key === "n") return cell;
  const track = element("div"), bar = element("i");
  const width = signed ? Math.min(Math.abs(row.d), 100) / 2 : row[key];
  bar.style.width = width + "%";
  if (signed) bar.style.left = (row.d < 0 ? 50 - width : 50) + "%";
  track.append(bar);
  cell.append(track);
  return cell;
}

function difference(value) {
  return value === 0 ? "0.0" : (value > 0 ? "+" : "−") + Math.abs(value).toFixed(Math.abs(value) < 0.05 ? 2 : 1);
}

function text(runs) {
  const cell = element("dd");
  cell.dir = "auto";
  for (const [kind, words] of runs) {
    if (kind === 0) { cell.append(words); continue; }
    const mark = element(kind === 4 ? "ins" : "del", "", words);
    if (paired && (kind === 1 || kind === 2)) mark.dataset.by = kind === 1 ? "A" : "B";
    cell.append(mark);
  }
  if (!cell.textContent.trim()) { cell.className = "none"; cell.textContent = "empty"; }
  return cell;
}

function draw(row) {
  const made = element("div", "row"), texts = element("dl", "texts");
  made.setAttribute("role", "listitem");
  for (const [key, label, short] of columns) made.append(number(row, key, short || label));
  if (row.s) {
    const source = text([[0, row.s]]);
    source.classList.add("source");
    texts.append(element("dt", "", "Source"), source);
  }
  const labels = paired ? ["Reference", "A", "B"] : ["Reference", "Hypothesis"];
  row.t.slice(0, labels.length).forEach((runs, at) => texts.append(element("dt", "", labels[at]), text(runs)));
  made.append(texts);
  return made;
}

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting && !target.firstChild) {
      target.append(...target.rows.map(draw));
      target.style.height = "";
    } else if (!isIntersecting && target.firstChild) {
      rowHeight = target.offsetHeight / target.rows.length;
      target.style.height = target.offsetHeight + "px";
      target.replaceChildren();
    }
  }
}, { rootMargin: "1800px 0px" });

function fits(row) {
  if (state.query && !row.found.includes(state.query)) return false;
  if (state.side !== null && Math.sign(row.d) !== state.side) return false;
  if (state.low === null) return true;
  return row.a >= state.low && (row.a < state.low + data.step || state.low + data.step === 100);
}

function show() {
  const sign = state.up ? 1 : -1, key = state.key;
  const rows = all.filter(fits).sort((x, y) => sign * (x[key] - y[key]) || x.n - y.n);
  const list = byId("rows"), filtered = rows.length !== all.length;
  watcher.disconnect();
  list.replaceChildren();
  for (let at = 0; at < rows.length; at += size) {
    const group = element("div", "group");
    group.setAttribute("role", "presentation");
    group.rows = rows.slice(at, at + size);
    group.style.height = group.rows.length * rowHeight + "px";
    list.append(group);
    watcher.observe(group);
  }
  const count = (value) => value.toLocaleString("en");
  byId("count").textContent = filtered ? `${count(rows.length)} of ${count(all.length)}` : count(all.length) + " sentences";
  byId("clear").hidden = !filtered;
  byId("nothing").hidden = rows.length > 0;
  press(".histogram", (button) => state.low === Number(button.dataset.low));
  press(".wins", (button) => state.side === Number(button.dataset.side));
  for (const head of byId("heads").children) {
    head.setAttribute("aria-pressed", head.dataset.key === key);
    head.dataset.order = state.up ? "up" : "down";
    head.title = head.dataset.key !== key ? "Sort by this" : state.up ? "Lowest first; turn around" : "Highest first; turn around";
  }
  const top = document.querySelector(".list").getBoundingClientRect().top;
  if (top < 0) window.scrollBy(0, top);
}

function press(selector, chosen) {
  const group = document.querySelector(selector);
  if (!group) return;
  let any = false;
  for (const button of group.querySelectorAll("button")) {
    const on = chosen(button);
    any = any || on;
    button.setAttribute("aria-pressed", on);
  }
  group.classList.toggle("chosen", any);
}

function choose(change) {
  state = { ...state, ...change };
  show();
}

function reset() {
  byId("query").value = "";
  choose({ query: "", low: null, side: null });
}

if (paired) {
  document.body.classList.add("paired");
  document.querySelector(".key").hidden = false;
}
for (const [key, label] of columns) {
  const head = element("button", "", label);
  head.type = "button";
  head.dataset.key = key;
  head.addEventListener("click", () => choose({ key, up: state.key === key ? !state.up : true }));
  byId("heads").append(head);
}
for (const bar of document.querySelectorAll(".histogram button")) {
  const low = Number(bar.dataset.low);
  bar.addEventListener("click", () => choose({ low: state.low === low ? null : low }));
}
for (const part of document.querySelectorAll(".wins button")) {
  const side = Number(part.dataset.side);
  part.addEventListener("click", () => choose({ side: state.side === side ? null : side }));
}
byId("query").addEventListener("input", (event) => choose({ query: event.target.value.trim() && event.target.value.toLocaleLowerCase() }));
byId("clear").addEventListener("click", reset);
byId("again").addEventListener("click", reset);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== byId("query")) { event.preventDefault(); byId("query").focus(); }
});
show();
