// A sound as a picture: time to the right, frequency upwards, darker where it is louder; and over it what a word attends to.
const SIZE = 512, ROWS = 160, MOST = 1200;

// The fast Fourier transform, in place.
function transform(re, im) {
  for (let i = 1, j = 0; i < SIZE; i++) {
    let bit = SIZE >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [re[i], re[j], im[i], im[j]] = [re[j], re[i], im[j], im[i]];
  }
  for (let size = 2; size <= SIZE; size *= 2) {
    for (let start = 0; start < SIZE; start += size) {
      for (let k = 0; k < size / 2; k++) {
        const angle = (-2 * Math.PI * k) / size, a = start + k, b = a + size / 2;
        const x = re[b] * Math.cos(angle) - im[b] * Math.sin(angle), y = re[b] * Math.sin(angle) + im[b] * Math.cos(angle);
        [re[b], im[b], re[a], im[a]] = [re[a] - x, im[a] - y, re[a] + x, im[a] + y];
      }
    }
  }
}

let kept = { samples: null, columns: null };

// Loudness in each column from low to high frequency, between 0 and 1.
function columnsOf(samples) {
  if (kept.samples === samples) return kept.columns;
  const count = Math.max(1, Math.min(MOST, Math.floor(samples.length / 128))), columns = [];
  let top = -Infinity;
  for (let column = 0; column < count; column++) {
    const re = new Float64Array(SIZE), im = new Float64Array(SIZE);
    const first = Math.floor(((column + 0.5) * samples.length) / count) - SIZE / 2;
    for (let i = 0; i < SIZE; i++) re[i] = (samples[first + i] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / SIZE));
    transform(re, im);
    const own = Float64Array.from({ length: ROWS }, (_, row) => {
      const bin = 1 + Math.round((((row + 0.5) / ROWS) ** 1.6) * (SIZE / 2 - 2));
      return 20 * Math.log10(1e-6 + Math.hypot(re[bin], im[bin]));
    });
    top = Math.max(top, ...own);
    columns.push(own);
  }
  for (const own of columns) own.forEach((value, row) => { own[row] = Math.max(0, 1 + (value - top) / 70); });
  kept = { samples, columns };
  return columns;
}

function colour(name) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}

export function drawSpectrogram(canvas, samples, rate, word) {
  const columns = columnsOf(samples), from = colour("--surface"), to = colour("--accent");
  canvas.width = columns.length;
  canvas.height = ROWS;
  const pen = canvas.getContext("2d"), image = pen.createImageData(columns.length, ROWS);
  columns.forEach((own, x) => own.forEach((value, row) => {
    const at = 4 * ((ROWS - 1 - row) * columns.length + x);
    for (let part = 0; part < 3; part++) image.data[at + part] = from[part] + (to[part] - from[part]) * value;
    image.data[at + 3] = 255;
  }));
  pen.putImageData(image, 0, 0);
  if (!word) return;
  const seconds = samples.length / rate, place = (time) => (time / seconds) * columns.length;
  const warm = colour("--warm");
  const ink = (alpha) => `rgba(${warm[0]}, ${warm[1]}, ${warm[2]}, ${alpha})`;
  const top = Math.max(...(word.attention ?? []), 1e-9);
  (word.attention ?? []).forEach((weight, i) => {
    pen.fillStyle = ink(0.75 * (weight / top));
    pen.fillRect(place(i * word.step), 0, Math.max(1, place(word.step)), ROWS);
  });
  pen.strokeStyle = ink(1);
  pen.lineWidth = 2;
  pen.strokeRect(place(word.start), 1, Math.max(2, place(word.end - word.start)), ROWS - 2);
}
