// The pages that a reader opened last, for the palette: pages below one of the bar, such as a kernel.
// They are stored in the browser, for each account.

import { recall, remember } from "./memory.js";

const MOST = 6;
const KEPT = 12;

export function rememberPage() {
  if (document.querySelectorAll(".stages [data-stage]").length < 2) return;
  const page = {
    text: document.title.replace(/ · Kiln$/, ""),
    where: document.querySelector(".stages [data-stage]").textContent.trim(),
    url: location.pathname + location.search,
  };
  const others = stored().filter((other) => pathOf(other) !== location.pathname);
  remember(key(), [page, ...others].slice(0, KEPT));
}

export function recentPages() {
  return stored().filter((page) => pathOf(page) !== location.pathname).slice(0, MOST);
}

function stored() {
  const pages = recall(key(), []);
  // The palette opens what is stored here: addresses of this site alone.
  return Array.isArray(pages) ? pages.filter((page) => /^\/(?!\/)/.test(page?.url ?? "")) : [];
}

function pathOf(page) {
  return page.url.split("?")[0];
}

function key() {
  return `recent:${document.querySelector(".topbar .account span")?.textContent.trim() ?? ""}`;
}
