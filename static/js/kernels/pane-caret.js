// The line of a pane that the keys speak of. A pane is one stop of the Tab key; within it arrows,
// j and k go from line to line, Enter pins the line, o opens what it leads to.

import { nudge } from "./pane-scroll.js";

const STEPS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };

export class Caret {
  // ready is settled once skips() knows all lines; show(number) gives a line or a promise of one, skips(number) whether it is out of sight,
  // start() the line to begin with; moved(line) and pin(line) are told.
  constructor(pane, { ready, show, skips, start, moved, pin }) {
    Object.assign(this, { pane, ready, show, skips, start, moved, pin });
    this.line = null;
    this.says = document.createElement("p");
    this.says.className = "sr";
    this.says.setAttribute("role", "status");
    pane.after(this.says);
  }

  put(line) {
    this.line?.classList.remove("cur");
    this.line = line;
    line.classList.add("cur");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, summary")) return;
    if (event.key in STEPS) this.move(STEPS[event.key]);
    else if (event.key === "Enter" && this.line && !event.target.closest("a")) this.pin(this.line);
    else if (event.key === "o" && this.line) this.line.querySelector(".h[href], .t a[href]")?.click();
    else return;
    event.preventDefault();
    event.stopPropagation(); // j and k are of this pane now, not of the page's tables
  }

  // One step after the other, however fast the keys come.
  move(step) {
    this.last = (this.last ?? Promise.resolve()).then(() => this.step(step));
  }

  async step(step) {
    if (!this.line) return this.arrive(this.start());
    await this.ready;
    let number = Number(this.line.id.slice(1)) + step;
    while (number > 0 && this.skips(number)) number += step;
    return this.arrive(await this.show(number));
  }

  arrive(line) {
    if (!line) return;
    this.put(line);
    nudge(this.pane, line);
    this.says.textContent = `${line.id.slice(1)}: ${line.querySelector(".t").textContent.trim()}`;
    this.moved(line);
  }
}
