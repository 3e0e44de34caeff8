// Find within a pane: all its lines are looked through, also those that were not fetched yet.
// Ctrl-F in the pane goes to its box; Enter and F3 go on, with Shift back; Escape returns.

import { near } from "./pane-scroll.js";

const MARKED = 2000; // matches that are coloured at once
const colours = { hit: [], now: [] }; // of both panes: [pane, range]

export function bindFind(pane, text) {
  const box = document.querySelector(`[data-find="${pane.dataset.pane}"]`);
  if (box) new Find(pane, box, text).bind();
}

class Find {
  // lines() gives the text of each line, skips(number) whether one is out of sight, go(number)
  // brings one into view and gives it back.
  constructor(pane, box, { lines, skips, go }) {
    Object.assign(this, { pane, skips, go });
    this.input = box.querySelector("input[type=search]");
    this.regex = box.querySelector("[data-regex]");
    this.says = box.querySelector("output");
    this.steps = [...box.querySelectorAll("[data-step]")];
    this.read = lines;
    this.matches = []; // [line, column, length]
    this.at = -1;
    this.from = 1; // the line from which on matches are looked for first
  }

  bind() {
    this.input.addEventListener("focus", () => { this.from = this.start(); });
    this.input.addEventListener("input", () => this.look(true));
    this.regex.addEventListener("change", () => this.look(true));
    this.input.addEventListener("keydown", (event) => this.key(event));
    for (const button of this.steps) button.addEventListener("click", () => this.step(Number(button.dataset.step)));
    this.pane.addEventListener("keydown", (event) => {
      if (event.key === "F3") this.next(event, event.shiftKey ? -1 : 1);
      if (event.key.toLowerCase() !== "f" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
      event.preventDefault();
      this.input.focus();
      this.input.select();
    });
    this.pane.addEventListener("lines", () => this.matches.length && this.colour());
    document.querySelector("[data-directives]")?.addEventListener("change", () => this.input.value && this.look(false));
    if (this.input.value) this.look(false); // as the browser brought it back
  }

  key(event) {
    if (event.key === "Enter" || event.key === "F3") this.next(event, event.shiftKey ? -1 : 1);
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    this.pane.focus({ preventScroll: true });
  }

  next(event, step) {
    event.preventDefault();
    this.step(step);
  }

  // Where looking begins: at the caret, else at what is in view.
  start() {
    const line = this.pane.querySelector(".cur") ?? near(this.pane);
    return Number(line?.id.slice(1) ?? 1);
  }

  // The newest question alone is answered.
  async look(jump) {
    const asked = this.input.value;
    this.asked = asked;
    if (!asked) return this.found([], "", false);
    let pattern;
    try {
      pattern = patternOf(asked, this.regex.checked);
    } catch {
      return this.found([], "invalid regular expression", false);
    }
    try {
      this.text ??= await this.read();
    } catch (error) {
      return this.found([], error.message, false);
    }
    if (asked !== this.asked) return undefined;
    return this.found(matchesIn(this.text, pattern, this.skips), "none", jump);
  }

  async found(matches, none, jump) {
    this.matches = matches;
    this.none = none;
    this.at = jump && matches.length ? Math.max(0, matches.findIndex(([line]) => line >= this.from)) : -1;
    await this.arrive();
  }

  async step(step) {
    const { length } = this.matches;
    if (!length) return;
    this.at = this.at < 0 ? (step > 0 ? 0 : length - 1) : (this.at + step + length) % length;
    await this.arrive();
  }

  async arrive() {
    const { length } = this.matches;
    this.says.textContent = length ? `${this.at < 0 ? "" : `${(this.at + 1).toLocaleString("en")} of `}${length.toLocaleString("en")}` : this.none;
    for (const button of this.steps) button.disabled = !length;
    if (this.at >= 0) await this.go(this.matches[this.at][0]);
    this.colour();
  }

  // Matches in lines that are there, with the present one apart.
  colour() {
    if (!globalThis.CSS?.highlights) return;
    const prefix = this.pane.dataset.pane === "source" ? "L" : "I";
    const current = this.matches[this.at];
    const ranges = this.matches
      .slice(Math.max(0, this.at - MARKED / 2), Math.max(0, this.at - MARKED / 2) + MARKED)
      .map((match) => [match === current ? "now" : "hit", rangeOf(document.getElementById(`${prefix}${match[0]}`), match)])
      .filter(([, range]) => range);
    for (const kind of ["hit", "now"]) {
      const others = colours[kind].filter(([pane]) => pane !== this.pane);
      colours[kind] = [...others, ...ranges.filter(([is]) => is === kind).map(([, range]) => [this.pane, range])];
      CSS.highlights.set(`find-${kind}`, new Highlight(...colours[kind].map(([, range]) => range)));
    }
  }
}

// Capitals are meant where there are any.
function patternOf(asked, isRegex) {
  const text = isRegex ? asked : asked.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(text, asked === asked.toLowerCase() ? "gi" : "g");
}

function matchesIn(lines, pattern, skips) {
  const found = [];
  lines.forEach((line, at) => {
    if (skips(at + 1)) return;
    for (const match of line.matchAll(pattern)) if (match[0]) found.push([at + 1, match.index, match[0].length]);
  });
  return found;
}

// The piece of a line's text, which lies in several elements.
function rangeOf(line, [, column, length]) {
  const text = line?.querySelector(".t");
  if (!text) return null;
  const range = document.createRange();
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  let at = 0;
  let begun = false;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const end = at + node.data.length;
    if (!begun && column < end) {
      range.setStart(node, column - at);
      begun = true;
    }
    if (begun && column + length <= end) {
      range.setEnd(node, column + length - at);
      return range;
    }
    at = end;
  }
  return null;
}
