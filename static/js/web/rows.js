// Rows of tables: j and k select, Enter opens the row's first link, a box filters by text.

import { focusRow, rowOf } from "./roving.js";

let current = null;

export function bindRows(root = document) {
  for (const box of root.querySelectorAll("[data-filter]")) {
    const apply = () => {
      const table = document.getElementById(box.dataset.filter);
      if (table) filter(table, box.value);
    };
    box.addEventListener("input", apply);
    if (box.value) apply();
  }
  keepThroughSwaps();
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.("table.grid tbody tr");
    if (row) select(row, false);
  });
  document.addEventListener("row-focused", ({ target }) => {
    if (target.closest("tbody")) select(target, false);
  });
}

export function filterBox() {
  return document.querySelector("[data-filter], [data-filter-box]");
}

export function moveRow(step) {
  const rows = visibleRows();
  if (!rows.length) return false;
  const at = rows.indexOf(rowOf(document.activeElement) ?? selectedRow());
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  select(rows[next], true);
  focusRow(rows[next]);
  return true;
}

export function openRow() {
  const link = (rowOf(document.activeElement) ?? selectedRow())?.querySelector("a[href]");
  if (!link) return false;
  link.click();
  return true;
}

// Ticks the selected row, or takes its tick away.
export function tickRow() {
  const tick = selectedRow()?.querySelector("[data-tick]");
  if (!tick) return false;
  tick.click();
  return true;
}

// The selected row; a live page may just have put a new one in its place.
export function selectedRow() {
  if (current && !current.isConnected) current = current.id ? document.getElementById(current.id) : null;
  return current;
}

export function select(row, scroll) {
  if (current !== row) current?.removeAttribute("aria-selected");
  current = row;
  row.setAttribute("aria-selected", "true");
  if (scroll) row.scrollIntoView({ block: "nearest" });
  row.dispatchEvent(new CustomEvent("row-selected", { bubbles: true }));
}

// A live page replaces its inner part every few seconds: what was filtered, selected and
// scrolled to stays so.
function keepThroughSwaps() {
  let scrolls = [];
  let wasFocused = false;
  document.addEventListener("htmx:beforeSwap", () => {
    wasFocused = Boolean(current) && document.activeElement === current;
    scrolls = [...document.querySelectorAll(".scroll[id]")].map((box) => [box.id, box.scrollTop, box.scrollLeft]);
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const [id, top, left] of scrolls) document.getElementById(id)?.scrollTo(left, top);
    for (const box of document.querySelectorAll("[data-filter]")) {
      const table = document.getElementById(box.dataset.filter);
      if (table) filter(table, box.value);
    }
    const row = selectedRow();
    row?.setAttribute("aria-selected", "true");
    if (row && wasFocused && document.activeElement === document.body) focusRow(row);
  });
}

export function visibleRows() {
  return [...document.querySelectorAll("main table.grid tbody tr")].filter((row) => row.offsetParent);
}

function filter(table, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const content = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => content.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  const count = document.querySelector(`[data-count-of="${table.id}"]`);
  if (count) count.textContent = `${shown} of ${table.tBodies[0].rows.length}`;
  document.dispatchEvent(new CustomEvent("rows-filtered"));
}
