// What is kept: in the address what is shared, in the browser what is private.
export function remembered(key, otherwise) {
  try {
    const text = localStorage.getItem(`heed.${key}`);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function remember(key, value) {
  try {
    if (value === undefined || value === null) localStorage.removeItem(`heed.${key}`);
    else localStorage.setItem(`heed.${key}`, JSON.stringify(value));
  } catch { /* a browser that keeps nothing */ }
}

export function readAddress() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view, values: Object.fromEntries(new URLSearchParams(query)) };
}

export function addressOf(view, values) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = new URLSearchParams(given).toString();
  return `#${view}${query ? `?${query}` : ""}`;
}

// Replaced, not pushed: typing should not fill the way back.
export function writeAddress(view, values) {
  history.replaceState(null, "", addressOf(view, values));
}
