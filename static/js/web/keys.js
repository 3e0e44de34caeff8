// Single keys, never while somebody types, never with a modifier.

import { filterBox, moveRow, openRow, tickRow } from "./rows.js";
import { nextTheme } from "./theme.js";

const ACTIONS = {
  "/": () => focus(document.querySelector("[data-search]")),
  f: () => focus(filterBox()),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  Enter: openRow,
  "[": () => follow('a[rel="prev"]'),
  "]": () => follow('a[rel="next"]'),
  u: () => follow(".stages a[data-stage]:last-of-type", ".stages a[data-stage]"),
  s: tickRow,
  p: () => document.dispatchEvent(new CustomEvent("next-peak")),
  t: nextTheme,
  "?": announce,
};

export function bindKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && typing(event.target)) return event.target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return; // what lies below answers no keys
    if (event.key === "Enter" && answersEnter(event.target)) return;
    const action = ACTIONS[event.key] ?? (() => press(event.key));
    if (action() !== false) event.preventDefault();
  });
  document.querySelector("[data-keys-open]")?.addEventListener("click", ACTIONS["?"]);
}

// The list has the keys that this page answers, as it is now, and no others.
function announce() {
  const dialog = document.getElementById("keys");
  for (const entry of dialog.querySelectorAll("[data-when]")) {
    entry.hidden = !document.querySelector(entry.dataset.when);
  }
  dialog.showModal();
}

// A closed dialog's button keeps the focus until the page is drawn again.
function answersEnter(element) {
  return element.closest("a, button, summary, [role=button]") && !element.closest("dialog:not([open])");
}

function typing(element) {
  return element.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select") !== null;
}

// What a page names a key for: a button is pressed, a field is gone to.
function press(key) {
  const part = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key);
  if (!part || part.disabled) return false;
  if (part.matches("button, a")) {
    part.click();
    return true;
  }
  part.closest("details")?.setAttribute("open", "");
  return focus(part);
}

function focus(box) {
  if (!box) return false;
  box.focus();
  box.select();
  return true;
}

function follow(...selectors) {
  for (const selector of selectors) {
    const links = document.querySelectorAll(selector);
    if (links.length) {
      links[links.length - 1].click();
      return true;
    }
  }
  return false;
}
