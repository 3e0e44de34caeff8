// The bar between two panes: dragged, or moved by keys; its place is remembered.

import { recall, remember } from "../web/memory.js";

const KEY = "kiln.split";
const [LEAST, MOST, STEP, MIDDLE] = [15, 85, 2, 50]; // percent of the width that the first pane has

export function bindSplit(root) {
  const bar = root.querySelector("[role=separator]");
  if (!bar) return null;
  const put = (part, keep = true) => {
    const value = Math.round(Math.min(MOST, Math.max(LEAST, part)));
    root.style.setProperty("--split", `${value}%`);
    bar.setAttribute("aria-valuenow", String(value));
    if (keep) remember(KEY, value);
  };
  const now = () => Number(bar.getAttribute("aria-valuenow"));
  const chosen = recall(KEY, null);
  if (chosen !== null) put(Number(chosen), false);

  bar.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: now() - STEP, ArrowRight: now() + STEP, Home: LEAST, End: MOST, Enter: MIDDLE }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    put(to);
  });
  bar.addEventListener("dblclick", () => put(MIDDLE));
  bar.addEventListener("pointerdown", (start) => {
    if (start.button !== 0) return;
    start.preventDefault();
    bar.focus();
    bar.setPointerCapture(start.pointerId);
    const move = (event) => {
      const frame = root.getBoundingClientRect();
      put((100 * (event.clientX - frame.left)) / frame.width, false);
    };
    bar.addEventListener("pointermove", move);
    const end = () => {
      bar.removeEventListener("pointermove", move);
      remember(KEY, now());
    };
    bar.addEventListener("lostpointercapture", end, { once: true });
  });
  return { put, isChosen: () => recall(KEY, null) !== null };
}
