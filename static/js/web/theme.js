// The theme follows the system; a choice is kept in a cookie, which the server reads, so that
// the first paint is already right.

const ORDER = ["", "light", "dark"];

export function bindTheme() {
  document.querySelector("[data-theme-toggle]")?.addEventListener("click", nextTheme);
}

export function nextTheme() {
  const root = document.documentElement;
  const next = ORDER[(ORDER.indexOf(root.dataset.theme ?? "") + 1) % ORDER.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  document.cookie = `theme=${next}; path=/; max-age=${next ? 31536000 : 0}; samesite=lax`;
  document.dispatchEvent(new CustomEvent("theme"));
}
