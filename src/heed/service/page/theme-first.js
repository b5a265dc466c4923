// Runs before the first paint, so that a page in the dark does not flash white.
try {
  const chosen = JSON.parse(localStorage.getItem("heed.theme"));
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch { /* a browser that keeps nothing */ }
