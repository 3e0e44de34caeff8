// What a browser remembers of how somebody likes pages. Where it may not (a private window, storage
// that is switched off or full) it is remembered as long as the page stands.

const here = new Map();

export function recall(key, otherwise) {
  try {
    const kept = localStorage.getItem(key);
    return kept === null ? (here.get(key) ?? otherwise) : JSON.parse(kept);
  } catch {
    return here.get(key) ?? otherwise;
  }
}

export function remember(key, value) {
  here.set(key, value);
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // It is in `here`.
  }
}
