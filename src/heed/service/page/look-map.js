// The map of the walk: the architecture of Figure 1 in Vaswani et al. (2017), drawn anew, with the station in sight lit.
import { element } from "./dom.js";
import { t } from "./speech.js";

const NS = "http://www.w3.org/2000/svg";
const LEFT = 34, RIGHT = 190, WIDTH = 116;

function svg(name, attributes, ...children) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Each box: station, text, x, y, width, height, colour.
function boxes() {
  const norm = (x, y) => [["Residual", t("mapAdd"), x, y, WIDTH / 2, 20, "norm"], ["Norm", t("mapNorm"), x + WIDTH / 2, y, WIDTH / 2, 20, "norm"]];
  const attention = (text, x, y) => [["Heads Query", text, x, y, WIDTH, 34, "attention"], ["Mixing", "W_O", x, y - 15, WIDTH, 15, "mixing"]];
  return [
    ["Beam", t("sBeam"), RIGHT, 8, WIDTH, 20, "output"],
    ["Steps", "Softmax", RIGHT, 42, WIDTH, 20, "softmax"],
    ["Steps", "Linear", RIGHT, 74, WIDTH, 20, "linear"],
    ...norm(RIGHT, 118), ["FeedForward", t("partFeedForward"), RIGHT, 148, WIDTH, 26, "feed"],
    ...norm(RIGHT, 192), ...attention(t("mapCross"), RIGHT, 237),
    ...norm(RIGHT, 290), ...attention(t("mapMasked"), RIGHT, 335),
    ...norm(LEFT, 192), ["FeedForward", t("partFeedForward"), LEFT, 222, WIDTH, 26, "feed"],
    ...norm(LEFT, 290), ...attention(t("mapAttention"), LEFT, 335),
    ["Positions", "+ ∿", LEFT, 402, WIDTH, 20, "position"], ["Positions", "+ ∿", RIGHT, 402, WIDTH, 20, "position"],
    ["Embeddings", t("sEmbeddings"), LEFT, 434, WIDTH, 22, "embedding"], ["Embeddings", t("sEmbeddings"), RIGHT, 434, WIDTH, 22, "embedding"],
    ["Tokens", t("mapInputs"), LEFT, 470, WIDTH, 22, "output"], ["Tokens", t("mapOutputs"), RIGHT, 470, WIDTH, 22, "output"],
  ];
}

const path = (d, name = "wire") => svg("path", { d, class: name });

export function build(there, goTo) {
  const left = LEFT + WIDTH / 2, right = RIGHT + WIDTH / 2;
  const wires = [
    path(`M${left} 470V192`), path(`M${left} 192V178H${(LEFT + WIDTH + RIGHT) / 2}V254H${RIGHT}`), path(`M${right} 470V28`),
    path(`M${left} 384H${LEFT - 10}V300H${LEFT}`), path(`M${left} 272H${LEFT - 10}V202H${LEFT}`),
    path(`M${right} 384H${RIGHT + WIDTH + 10}V300H${RIGHT + WIDTH}`), path(`M${right} 283H${RIGHT + WIDTH + 10}V202H${RIGHT + WIDTH}`), path(`M${right} 184H${RIGHT + WIDTH + 10}V128H${RIGHT + WIDTH}`),
  ];
  const stack = (x, y, height) => svg("rect", { x, y, width: WIDTH + 32, height, rx: 9, class: "stack", "data-station": "Layers" });
  const drawn = svg("svg", { viewBox: "0 0 340 500", class: "map", role: "group", "aria-label": t("mapName") },
    stack(LEFT - 16, 184, 208), stack(RIGHT - 16, 110, 282), ...wires,
    text("N×", LEFT - 25, 290, "times"), text("N×", RIGHT + WIDTH + 24, 250, "times"), ...boxes().map((own) => box(own, there, goTo)));
  drawn.querySelectorAll("[data-station=Layers]").forEach((node) => node.addEventListener("click", () => goTo("Layers")));
  return element("aside", { class: "card architecture", "aria-label": t("mapName") }, drawn, element("p", { class: "muted small" }, t("mapText")));
}

function text(words, x, y, name) {
  const node = svg("text", { x, y, "text-anchor": "middle", "dominant-baseline": "central", class: name });
  node.textContent = words;
  return node;
}

// A box that leads to its station; without that station it is only drawn.
function box([stations, words, x, y, width, height, color], there, goTo) {
  const name = stations.split(" ").find((own) => there.includes(own));
  const group = svg("g", { class: `box ${color}`, "data-station": stations },
    svg("rect", { x, y, width, height, rx: 4 }), text(words, x + width / 2, y + height / 2, "box-text"));
  if (!name) return group;
  group.setAttribute("role", "link");
  group.setAttribute("tabindex", "0");
  group.setAttribute("aria-label", `${words}: ${t(`s${name}`)}`);
  group.addEventListener("click", () => goTo(name));
  group.addEventListener("keydown", (event) => { if (event.key === "Enter") goTo(name); });
  return group;
}

export function light(name) {
  document.querySelectorAll(".map [data-station]").forEach((node) => node.classList.toggle("lit", node.dataset.station.split(" ").includes(name)));
}
