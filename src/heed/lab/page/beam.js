// The beam search, a column a step.
const NODE = { width: 124, height: 34, gapX: 40, gapY: 8, head: 30 };
let nodes = []; // [step][candidate] of {candidate, up, element, line}

function linkCandidates() {
  nodes = [];
  for (const candidates of look.search) {
    const kept = (nodes.at(-1) ?? []).filter((node) => node.candidate.state === "kept");
    nodes.push(candidates.map((candidate) => ({ candidate, up: candidate.parent < 0 ? null : kept[candidate.parent] })));
  }
}

function ancestry(node) {
  const path = [];
  for (let at = node; at; at = at.up) path.unshift(at);
  return path;
}

// The best hypothesis that wrote exactly the translation.
function chosenPath() {
  const last = nodes[look.target.length - 1] ?? [];
  const same = (node) => ancestry(node).map((at) => at.candidate.token).join("\n") === look.target.join("\n");
  const found = last.filter((node) => node.candidate.state !== "dropped" && same(node));
  return found.length ? ancestry(found.reduce((best, node) => (node.candidate.score > best.candidate.score ? node : best))) : [];
}

function buildLattice() {
  byId("beam").hidden = !look.search.length;
  if (!look.search.length) return;
  linkCandidates();
  const tallest = Math.max(...nodes.map((step) => step.length));
  const width = nodes.length * (NODE.width + NODE.gapX) - NODE.gapX;
  const height = NODE.head + tallest * (NODE.height + NODE.gapY);
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ width, height, "aria-hidden": "true" })) lines.setAttribute(name, value);
  const lattice = byId("lattice");
  lattice.style.width = `${width}px`;
  lattice.style.height = `${height}px`;
  lattice.replaceChildren(lines, ...nodes.map((step, number) => latticeColumn(step, number, lines)));
  chosenPath().forEach((node) => { node.element.classList.add("chosen"); node.line?.classList.add("chosen"); });
  lines.append(...lines.querySelectorAll(".chosen")); // what is drawn last lies on top
}

function latticeColumn(step, number, lines) {
  const title = element("button", { type: "button", class: "step" }, String(number + 1));
  title.setAttribute("aria-label", say("Go to step {0}", number + 1));
  title.addEventListener("click", () => goToStep(number));
  const list = element("ol", { "aria-label": say("Candidates at step {0}", number + 1) });
  const best = bestScore(step);
  step.forEach((node, place) => {
    const { token, score, state: fate } = node.candidate;
    node.x = number * (NODE.width + NODE.gapX);
    node.y = NODE.head + place * (NODE.height + NODE.gapY);
    node.element = element("li", { class: fate, title: `${readable(token)}: ${say(fate)}, log p ${score.toFixed(3)}` },
      element("span", { class: "token" }, readable(token)), element("span", { class: "number" }, percent(Math.exp(score - best))));
    node.element.addEventListener("pointerenter", () => showHypothesis(node));
    node.element.addEventListener("pointerleave", () => showHypothesis(null));
    if (node.up) lines.append((node.line = linkOf(node)));
    list.append(node.element);
  });
  const column = element("div", { class: "step-column" }, title, list);
  column.style.left = `${number * (NODE.width + NODE.gapX)}px`;
  return column;
}

// The log probability of the likeliest hypothesis of a step, with which the others are compared.
const bestScore = (step) => Math.max(...step.map((node) => node.candidate.score));

function linkOf({ x, y, up, candidate }) {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const middle = NODE.height / 2;
  path.setAttribute("d", pathOf({ kind: "curve", x1: up.x + NODE.width, y1: up.y + middle, x2: x, y2: y + middle }));
  path.setAttribute("class", candidate.state);
  return path;
}

function showHypothesis(node) {
  const path = new Set(ancestry(node));
  for (const other of nodes.flat()) {
    other.element.classList.toggle("traced", path.has(other));
    other.line?.classList.toggle("traced", path.has(other));
  }
  const shown = node ? [...path] : chosenPath();
  if (!shown.length) return void (byId("hypothesis").textContent = "");
  const { score, state: fate } = shown.at(-1).candidate;
  const text = shown.map((at) => at.candidate.token).filter((token) => !isSpecial(token)).join("").replaceAll("\u2581", " ").trim();
  const best = bestScore(nodes[shown.length - 1]), name = say(node ? fate : "chosen");
  byId("hypothesis").textContent = score === best ? say("{0}: “{1}”, the likeliest of its step", name, text)
    : say("{0}: “{1}”, {2} as likely as the likeliest of its step", name, text, percent(Math.exp(score - best)));
}

function markLattice() {
  byId("lattice").querySelectorAll(".step").forEach((title, index) => {
    title.setAttribute("aria-pressed", String(index === state.step));
    if (index === state.step) keepInSight(byId("lattice").parentElement, title);
  });
}
