// Pictures as lists of shapes, which are painted on a canvas or written as SVG.
const FONT = '"Segoe UI", "Helvetica Neue", Arial, "Heed glyphs", system-ui, sans-serif';
const LEAST = 0.02; // lines thinner than this are left out

const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text, size) {
  ruler.font = `${size}px ${FONT}`;
  return ruler.measureText(text).width;
}
const longest = (tokens, size) => Math.max(...tokens.map((token) => textWidth(token.text, size)));
const tokenColor = (token) => (token.starts && !token.special ? ink("ink") : ink("muted"));

function heatMap(view, room) {
  const { map, rows, columns, top } = view;
  const size = room < 480 ? 13 : 15;
  const left = Math.ceil(longest(rows, size)) + 18;
  const cell = Math.max(room < 480 ? 17 : 13, Math.min(56, Math.floor((room - left - 4) / columns.length)));
  const letters = Math.min(size, cell * 0.72);
  const wide = longest(columns, letters);
  const flat = wide <= cell - 4;
  const above = flat ? letters + 18 : Math.ceil(wide * 0.94) + 18;
  const lean = flat ? 0 : Math.ceil(wide * 0.36);
  const shapes = [];
  const gap = cell > 24 ? 2 : 1;
  map.forEach((row, i) => row.forEach((value, j) => shapes.push({
    kind: "rect", x: left + j * cell, y: above + i * cell, width: cell - gap, height: cell - gap, fill: theme.fill(value / top),
  })));
  if (cell >= 34) map.forEach((row, i) => row.forEach((value, j) => value >= 0.095 && shapes.push({
    kind: "text", x: left + (j + 0.5) * cell - gap / 2, y: above + (i + 0.5) * cell, size: 10.5, anchor: "middle",
    text: value.toFixed(2).replace(/^0/, ""), fill: theme.on(value / top),
  })));
  rows.forEach((token, i) => shapes.push({
    kind: "text", x: left - 12, y: above + (i + 0.5) * cell, size: letters, anchor: "end", text: token.text, fill: tokenColor(token),
  }));
  columns.forEach((token, j) => shapes.push({
    kind: "text", x: left + (j + 0.5) * cell, y: above - (flat ? letters : 10), size: letters, text: token.text,
    fill: tokenColor(token), anchor: flat ? "middle" : "start", turn: flat ? 0 : -68,
  }));
  shapes.push(...brackets(rows, (from, to) => ({ x1: left - 6, x2: left - 6, y1: above + from * cell, y2: above + to * cell })));
  shapes.push(...brackets(columns, (from, to) => ({ y1: above - 6, y2: above - 6, x1: left + from * cell, x2: left + to * cell })));
  if (state.part === "cross" && state.outlines) shapes.push(...outlines(left, above, cell, gap));
  return {
    shapes, width: left + columns.length * cell + lean + 2, height: above + rows.length * cell + 2,
    at(x, y) {
      const row = Math.floor((y - above) / cell), column = Math.floor((x - left) / cell);
      const inRows = row >= 0 && row < rows.length, inColumns = column >= 0 && column < columns.length;
      if (inRows && inColumns) return { row, column };
      if (inRows && x < left) return { row };
      return inColumns && y < above ? { column } : null;
    },
    marks({ row, column }) {
      const frames = [];
      const frame = (x, y, width, height) => frames.push({ kind: "frame", x, y, width, height, stroke: ink("ink"), thickness: 1.5 });
      if (row !== undefined && column === undefined) frame(left - 1, above + row * cell - 1, columns.length * cell, cell);
      if (column !== undefined && row === undefined) frame(left + column * cell - 1, above - 1, cell, rows.length * cell);
      if (column !== undefined && row !== undefined) frame(left + column * cell - 1, above + row * cell - 1, cell, cell);
      return frames;
    },
  };
}

// A thin line beside the pieces of one word.
function brackets(tokens, place) {
  const groups = [];
  tokens.forEach((token, index) => (token.starts ? groups.push([index, index]) : (groups.at(-1)[1] = index)));
  return groups.filter(([first, last]) => last > first).map(([first, last]) => ({
    kind: "line", ...place(first + 0.2, last + 0.8), stroke: ink("hairline"), thickness: 2, opacity: 1,
  }));
}

function outlines(left, above, cell, gap) {
  return settings.aligned.map(([source, target]) => {
    const across = state.merged ? [source] : settings.words.source[source];
    const along = state.merged ? [target] : settings.words.target[target];
    return {
      kind: "frame", x: left + across[0] * cell - gap / 2, y: above + along[0] * cell - gap / 2,
      width: across.length * cell, height: along.length * cell, stroke: ink("warm"), thickness: 1.5,
    };
  });
}

function lineMap(view, room) {
  const { map, rows, columns, top } = view;
  const size = 14, pitch = 27, head = 30;
  const left = Math.ceil(longest(rows, size)) + 14, right = Math.ceil(longest(columns, size)) + 14;
  const width = Math.max(left + right + 120, Math.min(room, left + right + 420));
  const y = (index) => head + (index + 0.5) * pitch;
  const shapes = [
    { kind: "text", x: left - 12, y: 10, size: 11.5, anchor: "end", text: say("looks"), fill: ink("muted") },
    { kind: "text", x: width - right + 12, y: 10, size: 11.5, anchor: "start", text: say("at"), fill: ink("muted") },
  ];
  const { row: onlyRow, column: onlyColumn } = markedCell() ?? {};
  map.forEach((weightsOfRow, i) => weightsOfRow.forEach((value, j) => {
    const aside = (onlyRow !== undefined && onlyRow !== i) || (onlyColumn !== undefined && onlyColumn !== j);
    if (value < LEAST) return;
    shapes.push({
      kind: "curve", x1: left, y1: y(i), x2: width - right, y2: y(j), stroke: ink("accent"), thickness: 0.8 + 4 * value,
      opacity: (aside ? 0.06 : 1) * Math.min(1, 0.08 + 0.92 * (value / top)),
    });
  }));
  rows.forEach((token, i) => shapes.push({
    kind: "text", x: left - 12, y: y(i), size, anchor: "end", text: token.text, fill: i === onlyRow ? ink("accent") : tokenColor(token),
  }));
  columns.forEach((token, j) => shapes.push({
    kind: "text", x: width - right + 12, y: y(j), size, anchor: "start", text: token.text, fill: j === onlyColumn ? ink("accent") : tokenColor(token),
  }));
  return {
    shapes, width, height: head + pitch * Math.max(rows.length, columns.length) + 4,
    at(x, place) {
      const index = Math.floor((place - head) / pitch);
      if (index < 0) return null;
      if (x < left + 40) return index < rows.length ? { row: index } : null;
      return x > width - right - 40 && index < columns.length ? { column: index } : null;
    },
    marks: () => [],
  };
}

function paint(context, shapes) {
  context.textBaseline = "middle";
  for (const shape of shapes) {
    context.globalAlpha = shape.opacity ?? 1;
    context.fillStyle = shape.fill ?? "none";
    context.strokeStyle = shape.stroke ?? "none";
    context.lineWidth = shape.thickness ?? 1;
    if (shape.kind === "rect") context.fillRect(shape.x, shape.y, shape.width, shape.height);
    else if (shape.kind === "frame") context.strokeRect(shape.x, shape.y, shape.width, shape.height);
    else if (shape.kind === "text") paintText(context, shape);
    else context.stroke(new Path2D(pathOf(shape)));
  }
  context.globalAlpha = 1;
}

function paintText(context, shape) {
  context.save();
  context.font = `${shape.weight ?? 400} ${shape.size}px ${FONT}`;
  context.textAlign = { middle: "center", end: "right" }[shape.anchor] ?? "left";
  context.translate(shape.x, shape.y);
  context.rotate(((shape.turn ?? 0) * Math.PI) / 180);
  context.fillText(shape.text, 0, 0);
  context.restore();
}

function pathOf({ kind, x1, y1, x2, y2 }) {
  if (kind === "line") return `M${x1} ${y1}L${x2} ${y2}`;
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

// A scene with its title, on a margin.
function framed(scene, title) {
  const margin = 24, head = 40;
  const shift = (shape) => {
    const moved = { ...shape };
    for (const key of ["x", "x1", "x2"]) if (key in moved) moved[key] += margin;
    for (const key of ["y", "y1", "y2"]) if (key in moved) moved[key] += margin + head;
    return moved;
  };
  const shapes = [{ kind: "text", x: margin, y: margin + 8, size: 17, weight: 600, text: title, fill: ink("ink") }, ...scene.shapes.map(shift)];
  const width = Math.ceil(Math.max(scene.width, textWidth(title, 18.5)) + 2 * margin);
  return { shapes, width, height: Math.ceil(scene.height + head + 2 * margin) };
}

function toPng({ shapes, width, height }, done) {
  const canvas = element("canvas", { width: 2 * width, height: 2 * height });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.fillStyle = ink("surface");
  context.fillRect(0, 0, width, height);
  paint(context, shapes);
  canvas.toBlob(done, "image/png");
}

function toSvg({ shapes, width, height }) {
  const space = "http://www.w3.org/2000/svg";
  const root = document.createElementNS(space, "svg");
  const add = (tag, attributes, text) => {
    const node = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    root.append(node);
  };
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT })) root.setAttribute(name, value);
  add("style", {}, byId("fonts").textContent);
  add("rect", { width, height, fill: ink("surface") });
  for (const shape of shapes) {
    const { kind, x, y, fill, stroke, thickness, opacity = 1 } = shape;
    if (kind === "rect") add("rect", { x, y, width: shape.width, height: shape.height, fill });
    else if (kind === "frame") add("rect", { x, y, width: shape.width, height: shape.height, fill: "none", stroke, "stroke-width": thickness });
    else if (kind === "text") {
      add("text", {
        x, y, fill, "font-size": shape.size, "font-weight": shape.weight ?? 400, "text-anchor": shape.anchor ?? "start",
        "dominant-baseline": "central", transform: `rotate(${shape.turn ?? 0} ${x} ${y})`,
      }, shape.text);
    } else add("path", { d: pathOf(shape), fill: "none", stroke, "stroke-width": thickness, "stroke-opacity": opacity });
  }
  return new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" });
}
