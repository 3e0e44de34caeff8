// Details of a kernel's page that a reader opened: they are open on all pages of the kind.

import { recall, remember } from "../web/memory.js";

const KEY = "kiln.folds";

export function bindFolds() {
  bind();
  document.addEventListener("htmx:afterSettle", bind); // a section was loaded
}

function bind() {
  const opened = new Set(recall(KEY, []));
  for (const details of document.querySelectorAll("details[data-fold]:not([data-bound])")) {
    details.dataset.bound = "true";
    const key = `open ${details.dataset.fold}`;
    if (opened.has(key)) details.open = true;
    details.querySelector(":scope > summary").addEventListener("click", () => keep(key, !details.open));
  }
}

function keep(key, isOpen) {
  const all = new Set(recall(KEY, []));
  all[isOpen ? "add" : "delete"](key);
  remember(KEY, [...all]);
}
