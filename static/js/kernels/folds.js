// Sections of a page that can be folded away; which are is remembered for all pages of the kind.

import { recall, remember } from "../web/memory.js";

const KEY = "kiln.folds";

export function bindFolds() {
  bind();
  document.addEventListener("htmx:afterSettle", bind); // a live part came without its button
  addEventListener("hashchange", showNamed);
  showNamed();
}

function bind() {
  const folded = new Set(recall(KEY, []));
  for (const section of document.querySelectorAll("main section[aria-labelledby]")) {
    const head = section.querySelector(":scope > header");
    if (!head || head.querySelector(":scope > .fold")) continue;
    const name = section.getAttribute("aria-labelledby");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet fold";
    button.setAttribute("aria-label", `Fold ${head.querySelector("h2").textContent}`);
    button.addEventListener("click", () => {
      const fold = !section.classList.contains("folded");
      put(section, fold);
      keep(name, fold);
    });
    head.prepend(button);
    put(section, folded.has(name));
  }
  for (const details of document.querySelectorAll("details[data-fold]")) {
    if (details.dataset.bound) continue;
    details.dataset.bound = "true";
    const key = `open ${details.dataset.fold}`;
    if (folded.has(key)) details.open = true;
    details.querySelector(":scope > summary").addEventListener("click", () => keep(key, !details.open));
  }
}

function put(section, fold) {
  section.classList.toggle("folded", fold);
  section.querySelector(":scope > header > .fold").setAttribute("aria-expanded", String(!fold));
}

function keep(name, is) {
  const all = new Set(recall(KEY, []));
  all[is ? "add" : "delete"](name);
  remember(KEY, [...all]);
}

// An address that leads into a folded section opens it, for this time.
function showNamed() {
  const section = document.getElementById(location.hash.slice(1))?.closest("section.folded");
  if (!section) return;
  put(section, false);
  document.getElementById(location.hash.slice(1)).scrollIntoView();
}
