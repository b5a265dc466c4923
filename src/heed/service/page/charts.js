// Small charts in SVG: lines by step, the nearest values on pointing or by arrow keys.
import { element, svg } from "./dom.js";
import { number, t } from "./speech.js";

const WIDE = 440, HIGH = 200, LEFT = 50, RIGHT = 14, TOP = 12, FOOT = 26;

// Round numbers between two ends.
function ticks(low, high, about = 4) {
  const rough = (high - low || 1) / about, power = 10 ** Math.floor(Math.log10(rough));
  const by = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / by) * by; at <= high + by * 1e-9; at += by) found.push(Number(at.toPrecision(12)));
  return found;
}

// As many digits as tell the marks of an axis apart, and no more.
const digits = (marks) => [0, 1, 2].find((count) => marks.every((value) => Math.abs(value - Number(value.toFixed(count))) < 1e-9)) ?? 3;
function short(value, marks) {
  const top = Math.max(...marks.map(Math.abs));
  if (top >= 10000) return value && marks.every((mark) => mark % 1000 === 0) ? `${number(value / 1000)}k` : number(value);
  if (top < 0.01) return value ? value.toExponential(0) : "0";
  return number(value, digits(marks));
}
const exact = (value) => (Math.abs(value) >= 100 ? number(value) : Math.abs(value) >= 0.01 ? number(value, 3) : value.toExponential(2));

function scales(series, { log, zero }) {
  const all = series.flatMap((one) => one.points), values = all.map(([, value]) => value).sort((a, b) => a - b);
  const last = Math.max(...all.map(([step]) => step), 1);
  let low = zero ? 0 : values[0], high = values.at(-1);
  if (!log && !zero) { const room = (high - low || Math.abs(high) || 1) * 0.06; low = low >= 0 ? Math.max(0, low - room) : low - room; high += room; }
  const bend = log ? (value) => Math.log(Math.max(value, 1e-12)) : (value) => value;
  const share = (value) => (bend(value) - bend(low)) / (bend(high) - bend(low) || 1);
  const marks = log ? [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 3000, 10000].filter((value) => value >= low && value <= high) : ticks(low, high);
  return {
    x: (step) => LEFT + (step / last) * (WIDE - LEFT - RIGHT), y: (value) => HIGH - FOOT - share(value) * (HIGH - TOP - FOOT), last,
    marks: marks.length > 6 ? marks.filter((_, place) => place % 2 === 0) : marks,
  };
}

export function chart(title, series, options) {
  const scale = scales(series, options);
  const frame = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "chart-lines", role: "img", "aria-label": t("chartName", title), tabindex: 0 });
  for (const mark of scale.marks) {
    frame.append(svg("line", { x1: LEFT, x2: WIDE - RIGHT, y1: scale.y(mark), y2: scale.y(mark), class: "grid-line" }),
      svg("text", { x: LEFT - 8, y: scale.y(mark) + 4, class: "tick", "text-anchor": "end" }, short(mark, scale.marks)));
  }
  const steps = ticks(0, scale.last);
  for (const step of steps) frame.append(svg("text", { x: scale.x(step), y: HIGH - 7, class: "tick", "text-anchor": "middle" }, short(step, steps)));
  for (const one of series) frame.append(...drawn(one, scale));
  const cursor = svg("line", { y1: TOP, y2: HIGH - FOOT, class: "cursor", visibility: "hidden" });
  frame.append(cursor);
  const names = new Set(series.map((one) => one.name)).size > 1;
  const said = element("p", { class: names ? "chart-said two number-text small" : "chart-said number-text small", role: "status" });
  pointing(frame, cursor, said, series, scale, names);
  const both = new Set(series.map((one) => one.kind)).size > 1;
  const legend = element("span", { class: "chart-legend small muted" }, ...(both ? [key("step", t("training")), key("valid", t("validation"))] : [options.hint]));
  return element("figure", { class: "card chart" }, element("figcaption", { class: "row" }, element("h2", {}, title), legend), frame, said);
}

const key = (kind, text) => element("span", { class: `key key-${kind}` }, text);

function drawn({ points, place, kind }, { x, y }) {
  const path = svg("path", { d: points.map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join(""), class: `line run-${place} of-${kind}` });
  if (kind !== "valid") return [path];
  return [path, ...points.map(([step, value]) => svg("circle", { cx: x(step), cy: y(value), r: 3, class: `dot run-${place}` }))];
}

function pointing(frame, cursor, said, series, scale, names) {
  let at = null;
  const steps = [...new Set(series.flatMap((one) => one.points.map(([step]) => step)))].sort((a, b) => a - b);
  const show = (step) => {
    at = step;
    cursor.setAttribute("visibility", step === null ? "hidden" : "visible");
    if (step === null) return void (said.textContent = "");
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, scale.x(step));
    const near = (points) => points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best));
    const own = (name) => series.filter((one) => one.name === name).map((one) => `${one.kind === "valid" ? "◦\u00a0" : ""}${exact(near(one.points)[1])}`).join(" ");
    const told = [...new Set(series.map((one) => one.name))].map((name) => (names ? `${name} ${own(name)}` : own(name)));
    said.textContent = `${t("atStep", number(step))}: ${told.join(" · ")}`;
  };
  const nearest = (step) => steps.reduce((best, other) => (Math.abs(other - step) < Math.abs(best - step) ? other : best));
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * WIDE;
    show(nearest(((x - LEFT) / (WIDE - LEFT - RIGHT)) * scale.last));
  });
  frame.addEventListener("pointerleave", () => show(null));
  frame.addEventListener("blur", () => show(null));
  frame.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    show(at === null ? steps.at(-1) : steps[Math.max(0, Math.min(steps.length - 1, steps.indexOf(at) + by))]);
  });
}
