// One tab stop a table, as grids have it: the focus moves among rows with the arrows, j and k, Home
// and End, and among a row's links and fields with the arrows to the sides; Enter follows.

const TABLES = "main table.grid";
const CONTROLS = "a[href], button, summary, input:not([type=hidden]), select, textarea, [contenteditable]";
const MARK = "rover"; // on rows that take part

export function bindRoving() {
  rove();
  document.addEventListener("htmx:afterSettle", rove);
  document.addEventListener("rows-filtered", rove);
  const inTable = ({ target }) => target.nodeType === Node.ELEMENT_NODE && target.closest(TABLES);
  const observer = new MutationObserver((changes) => changes.some(inTable) && rove()); // live rows
  observer.observe(document.querySelector("main"), { childList: true, subtree: true });
  document.addEventListener("focusin", ({ target }) => enter(rowOf(target), target));
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    const row = rowOf(target);
    if (row && !row.contains(relatedTarget)) settle(row);
  });
  document.addEventListener("keydown", key);
}

// The row that has the focus, or holds what has it.
export function rowOf(element) {
  const row = element?.closest?.("tr");
  return row && MARK in row.dataset ? row : null;
}

// Gives a row the focus where its table takes part.
export function focusRow(row) {
  if (MARK in row.dataset) row.focus({ preventScroll: true });
}

// Tables of which some row has something to follow or to fill in are a tab stop each; what lies in
// their rows is none, until the focus is in that row's own controls.
function rove() {
  for (const table of document.querySelectorAll(TABLES)) {
    if (!table.querySelector(CONTROLS)) continue;
    table.setAttribute("role", "grid");
    for (const row of table.rows) {
      row.dataset[MARK] = "";
      if (!row.contains(document.activeElement)) settle(row);
    }
    // A row that a filter hides is no place to go to.
    if (![...table.rows].some((row) => row.tabIndex === 0 && row.offsetParent)) stopAt(table, first(table));
  }
}

function first(table) {
  return shown(table).find((row) => row.closest("tbody")) ?? table.rows[0];
}

function stopAt(table, row) {
  for (const other of table.rows) if (other.tabIndex === 0 && other !== row) other.tabIndex = -1;
  if (row) row.tabIndex = 0;
}

function settle(row) {
  if (!row.hasAttribute("tabindex")) row.tabIndex = -1;
  for (const control of controls(row)) control.tabIndex = -1;
}

function enter(row, target) {
  if (!row) return;
  stopAt(row.closest("table"), row);
  if (target !== row) for (const control of controls(row)) control.removeAttribute("tabindex");
}

function controls(row) {
  return [...row.querySelectorAll(CONTROLS)];
}

// A heading without links is no row to go to.
function shown(table) {
  return [...table.rows].filter((row) => row.offsetParent && (row.closest("tbody") || row.querySelector(CONTROLS)));
}

function key(event) {
  const row = rowOf(event.target);
  if (!row || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (types(event.target)) {
    if (event.key === "Escape") row.focus();
    return;
  }
  const to = target(row, event.key, event.target);
  if (!to) return;
  event.preventDefault();
  if (to.matches("tr")) {
    to.scrollIntoView({ block: "nearest" });
    to.focus({ preventScroll: true });
    to.dispatchEvent(new CustomEvent("row-focused", { bubbles: true }));
  } else to.focus();
}

function types(element) {
  return element.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
}

function target(row, pressed, at) {
  const rows = shown(row.closest("table"));
  const body = rows.filter((one) => one.closest("tbody"));
  const place = rows.indexOf(row);
  if (pressed === "ArrowDown") return rows[place + 1] ?? row;
  if (pressed === "ArrowUp") return rows[place - 1] ?? row;
  if (pressed === "Home") return body[0];
  if (pressed === "End") return body.at(-1);
  const parts = controls(row).filter((part) => part.offsetParent && !part.disabled);
  const part = parts.indexOf(at);
  if (pressed === "ArrowRight") return parts[part + 1];
  if (pressed === "ArrowLeft") return part > 0 ? parts[part - 1] : part === 0 ? row : undefined;
  return undefined;
}
