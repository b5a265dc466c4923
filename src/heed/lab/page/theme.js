// The colours in use, read from the style once and again when they change.
let theme = null;
const ink = (name) => theme.inks[name];

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "muted", "hairline", "surface", "accent", "warm"];
  const dark = style.getPropertyValue("--dark").trim() === "1";
  const table = rampOf(settings.ramps[dark ? "dark" : "light"]);
  const at = (share) => table[Math.round(255 * Math.min(1, Math.max(0, share)))];
  const light = (share) => (share > 0.45) === dark; // whether the colour itself is a light one
  theme = {
    dark,
    inks: Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])),
    rgb: at,
    fill: (share) => `rgb(${at(share).join(",")})`,
    on: (share) => (light(share) ? "#0f181c" : "#ffffff"),
  };
}

// 256 colours between the stops of a ramp.
function rampOf(stops) {
  const channel = (stop, k) => parseInt(stops[stop].slice(1 + 2 * k, 3 + 2 * k), 16);
  return Array.from({ length: 256 }, (_, number) => {
    const place = (number / 255) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    return [0, 1, 2].map((k) => Math.round(channel(low, k) + (place - low) * (channel(low + 1, k) - channel(low, k))));
  });
}

// A map as a picture, a pixel a weight.
function drawThumb(canvas, map, top) {
  canvas.width = map[0].length;
  canvas.height = map.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  map.flat().forEach((value, index) => image.data.set([...theme.rgb(value / top), 255], 4 * index));
  context.putImageData(image, 0, 0);
}

// Numbers of both signs: below zero towards the warm colour, above it towards the accent, on the paper of the page.
function drawSigned(canvas, rows, top) {
  const inks = ["warm", "surface", "accent"].map((name) => rampOf([ink(name), ink(name)])[0]);
  const share = (value) => Math.min(1, Math.abs(value) / top);
  const mixed = (value) => inks[1].map((paper, k) => Math.round(paper + share(value) * (inks[value < 0 ? 0 : 2][k] - paper)));
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  rows.flat().forEach((value, index) => image.data.set([...mixed(value), 255], 4 * index));
  context.putImageData(image, 0, 0);
}
