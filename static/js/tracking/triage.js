// Triage of alerts: what is pressed is done with the ticked rows, or else with the selected one.

import { select, selectedRow, visibleRows } from "../web/rows.js";

const FORM = "form[data-triage]";
let place = -1; // of the selected row, while the list is fetched anew

export function bindTriage() {
  document.addEventListener("submit", (event) => event.target.matches?.(FORM) && choose(event.target), true);
  document.addEventListener("change", (event) => event.target.matches?.("[data-tick]") && count());
  document.addEventListener("keydown", enter);
  document.addEventListener("htmx:beforeSwap", () => { place = visibleRows().indexOf(selectedRow()); });
  document.addEventListener("htmx:afterSettle", goOn);
}

// Before the form is read: the selected row stands for itself where none is ticked.
function choose(form) {
  const ticks = [...form.querySelectorAll("[data-tick]")];
  if (!ticks.length || ticks.some((tick) => tick.checked)) return;
  const tick = selectedRow()?.querySelector("[data-tick]");
  if (tick) tick.checked = true;
}

// What was triaged may have left the list: the next row is selected in its place.
function goOn() {
  if (place < 0) return;
  const rows = visibleRows();
  if (!selectedRow() && rows.length) select(rows[Math.min(place, rows.length - 1)], true);
  place = -1;
}

// Enter in a field presses the button beside it.
function enter(event) {
  if (event.key !== "Enter" || !event.target.matches?.(`${FORM} .filter .filter input`)) return;
  event.preventDefault();
  event.target.closest(".filter").querySelector("button").click();
}

function count() {
  const ticked = document.querySelectorAll("[data-tick]:checked").length;
  const text = ticked ? `${ticked} ${ticked === 1 ? "alert" : "alerts"}` : "the selected row";
  document.querySelectorAll("[data-ticked]").forEach((place) => { place.textContent = text; });
}
