// Where lines of a pane are in view, and bringing them there.

import { ROW } from "./chunks.js";

// A third below the top, or ``part`` of the height. What is far away has an estimated height: look
// again once it has been laid out.
export function reveal(pane, line, part = 1 / 3) {
  const scroll = () => {
    const frame = pane.getBoundingClientRect();
    const off = line.getBoundingClientRect().top - frame.top - Math.max(ROW, frame.height * part);
    if (Math.abs(off) > 1 && (part === 0 || Math.abs(off) > ROW)) pane.scrollTop += off;
  };
  scroll();
  requestAnimationFrame(() => requestAnimationFrame(scroll));
}

// As little as is needed; the head of the columns covers the first row.
export function nudge(pane, line) {
  const frame = pane.getBoundingClientRect();
  const box = line.getBoundingClientRect();
  if (box.top < frame.top + ROW) pane.scrollTop -= frame.top + ROW - box.top;
  else if (box.bottom > frame.top + pane.clientHeight) pane.scrollTop += box.bottom - frame.top - pane.clientHeight;
}

// The first line that is in view.
export function near(pane) {
  const frame = pane.getBoundingClientRect();
  const under = document.elementFromPoint(frame.left + frame.width / 2, Math.max(0, frame.top) + 2 * ROW);
  return under?.closest(".l") ?? pane.querySelector(".l");
}
