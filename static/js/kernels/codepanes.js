// Source and listing side by side: hovering a line marks what belongs to it in the other pane,
// a click pins it and scrolls the other pane to the match. A pin is part of the address (#L12).

import { Chunks } from "./chunks.js";
import { bindHelp } from "./instruction-help.js";
import { Caret } from "./pane-caret.js";
import { bindColumns } from "./pane-columns.js";
import { bindFind } from "./pane-find.js";
import { near, reveal } from "./pane-scroll.js";
import { bindSplit } from "./pane-split.js";

const NAMED = /^#([LI])(\d+)$/;
const STILL_MS = 120; // after scrolling: lines that pass under the pointer are not meant

export function bindPanes() {
  const root = document.querySelector("[data-panes]");
  const panes = new Panes(root);
  bindColumns(root, bindSplit(root));
  panes.bind();
  addEventListener("hashchange", () => panes.followHash());
  return panes.open();
}

class Panes {
  constructor(root) {
    this.root = root;
    this.source = root.querySelector("[data-pane=source]"); // none beside a kernel of somebody else's
    this.listing = root.querySelector("[data-pane=listing]");
    const places = document.getElementById("listing-places");
    this.places = { chunk: 1, lines: "", query: "", index: "", body: [0, 0], ...(places && JSON.parse(places.textContent)) };
    this.index = { source: [], peaks: [], skipped: "" }; // of all lines of the listing
    this.known = this.learnIndex();
    this.lines = new Map(); // source line → lines in both panes that are there
    this.hovered = "";
    this.pinned = "";
    this.scrolled = -STILL_MS;
    this.carets = new Map();
    this.goals = new Map(); // by pane, the line that was asked for last
    if (this.source) this.learn(this.source);
    if (this.listing) this.chunks = new Chunks(this.listing, this.places, (part) => this.learn(part));
  }

  // What needs the index waits for ``known``.
  async learnIndex() {
    if (!this.places.index) return;
    const answer = await fetch(this.places.index);
    if (answer.ok) this.index = await answer.json();
    else this.listing.prepend(`The lines’ index could not be loaded (${answer.status}); reload the page.`);
  }

  bind() {
    // Before "find" hears of it, which leaves hidden lines out.
    this.root.querySelector("[data-directives]")?.addEventListener("change", () => this.showDirectives());
    const help = bindHelp(this.listing);
    for (const pane of [this.source, this.listing].filter(Boolean)) {
      const caret = this.caretOf(pane, help);
      this.carets.set(pane, caret);
      pane.addEventListener("mouseover", (event) => this.meant(event.target.closest(".l")?.dataset.s ?? ""));
      pane.addEventListener("mouseleave", () => this.meant(""));
      pane.addEventListener("scroll", () => {
        this.scrolled = performance.now();
        pane.classList.toggle("aside", pane.scrollLeft > 0);
      }, { passive: true });
      pane.addEventListener("click", (event) => {
        const line = event.target.closest(".l");
        if (!line || event.target.closest("a")) return;
        caret.put(line);
        if (line.dataset.s) this.pin(line.dataset.s, pane);
      });
      pane.addEventListener("keydown", (event) => caret.key(event));
      bindFind(pane, { ...this.textOf(pane), go: (number) => this.goTo(pane, number) });
    }
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.target.closest?.("input")) this.pin("");
    });
    document.addEventListener("next-peak", () => this.nextPeak());
    // A link to the line that the address names already is no change of it.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.("a[href*='#']");
      if (link && link.hash === location.hash && link.pathname === location.pathname && link.search === location.search) this.followHash();
    });
  }

  caretOf(pane, help) {
    const isSource = pane === this.source;
    return new Caret(pane, {
      ready: this.known,
      show: (number) => (isSource ? document.getElementById(`L${number}`) : this.lineOf(number)),
      skips: (number) => (isSource ? inFold(document.getElementById(`L${number}`)) : this.isHidden(number)),
      start: () => near(pane),
      moved: (line) => {
        this.hover(line.dataset.s ?? "");
        if (!isSource) help.ask(line);
      },
      pin: (line) => line.dataset.s && this.pin(line.dataset.s, pane),
    });
  }

  // Directives and blank lines are there, but not to be seen before somebody asks for them.
  isHidden(number) {
    return this.index.skipped[number - 1] === "1" && this.listing.classList.contains("no-directives");
  }

  showDirectives() {
    this.listing.classList.toggle("no-directives", !this.root.querySelector("[data-directives]").checked);
    this.chunks.measure();
  }

  // What is looked through by "find": all lines, also those that were not fetched yet.
  textOf(pane) {
    if (pane === this.source) return { lines: async () => [...pane.querySelectorAll(".l .t")].map((text) => text.textContent), skips: () => false };
    const { text } = pane.dataset;
    const here = () => [...pane.querySelectorAll(".l")].reduce((all, line) => {
      all[Number(line.id.slice(1)) - 1] = line.querySelector(".t").textContent;
      return all;
    }, []);
    const fetched = async () => {
      const answer = await fetch(text);
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      await this.known;
      return (await answer.text()).replace(/\n$/, "").split("\n");
    };
    return { lines: text ? fetched : () => this.known.then(here), skips: (number) => this.isHidden(number) };
  }

  // Brings a line into view and puts the caret there, unless another was asked for while it was
  // fetched.
  async goTo(pane, number) {
    this.goals.set(pane, number);
    const line = pane === this.source ? document.getElementById(`L${number}`) : await this.lineOf(number);
    if (!line || this.goals.get(pane) !== number) return null;
    const fold = line.closest("details");
    if (fold) fold.open = true;
    this.carets.get(pane).put(line);
    reveal(pane, line);
    return line;
  }

  // Lines that have just come into the page take part in what is marked.
  learn(part) {
    for (const line of part.querySelectorAll(".l[data-s]")) {
      const key = line.dataset.s;
      if (!this.lines.has(key)) this.lines.set(key, []);
      this.lines.get(key).push(line);
      if (key === this.hovered) line.classList.add("on");
      if (key === this.pinned) line.classList.add("pin");
    }
    part.dispatchEvent(new CustomEvent("lines", { bubbles: true }));
  }

  mark(key, css, on) {
    this.lines.get(key)?.forEach((line) => line.classList.toggle(css, on));
  }

  // The pointer is over a line; not while the line only passes under it.
  meant(key) {
    this.wanted = key;
    clearTimeout(this.waiting);
    const left = this.scrolled + STILL_MS - performance.now();
    if (left <= 0) this.hover(key);
    else this.waiting = setTimeout(() => this.meant(this.wanted), left);
  }

  hover(key) {
    if (key === this.hovered) return;
    this.mark(this.hovered, "on", false);
    this.hovered = key;
    this.mark(key, "on", true);
  }

  async pin(key, from) {
    this.mark(this.pinned, "pin", false);
    this.pinned = key === this.pinned && from ? "" : key;
    this.mark(this.pinned, "pin", true);
    if (!this.pinned) return;
    if (from && this.source) history.replaceState(null, "", `#L${key}`);
    if (this.source && from !== this.source) reveal(this.source, document.getElementById(`L${key}`));
    if (this.source && this.listing && from !== this.listing) {
      await this.known;
      await this.show(this.index.source.indexOf(Number(key)) + 1);
    }
  }

  // A line of the listing, fetched where it is not there yet.
  async lineOf(number) {
    if (number < 1) return null;
    await this.chunks.ensure(number);
    return document.getElementById(`I${number}`);
  }

  // Bring a line of the listing into view, wherever it is.
  async show(number) {
    const line = await this.lineOf(number);
    if (line) reveal(this.listing, line);
    return line;
  }

  // Where the page opens: at what its address names, else at the marked line, else at the kernel's
  // own body.
  open() {
    if (NAMED.test(location.hash)) return this.followHash();
    const [source, listing] = this.places.body;
    const first = this.source?.querySelector(".l.of") ?? document.getElementById(`L${source}`);
    if (first) reveal(this.source, first, 0);
    const line = listing && document.getElementById(`I${listing}`);
    if (line) reveal(this.listing, line, 0);
    return undefined;
  }

  async followHash() {
    const [, pane, number] = NAMED.exec(location.hash) ?? [];
    if (pane === "L" && this.source) {
      const line = await this.goTo(this.source, Number(number));
      if (line?.dataset.s) await this.pin(line.dataset.s);
      return;
    }
    if (pane !== "I" || !this.listing) return;
    const line = await this.goTo(this.listing, Number(number));
    await this.known;
    if (!line || this.goals.get(this.listing) !== Number(number)) return;
    await this.pin(line.dataset.s ?? this.sourceAfter(Number(number)));
    if (this.goals.get(this.listing) === Number(number)) reveal(this.listing, line);
  }

  // A label has no source line of its own: the next instruction's is meant.
  sourceAfter(number) {
    return String(this.index.source.slice(number).find(Boolean) ?? "");
  }

  async nextPeak() {
    await this.known;
    const { peaks } = this.index;
    if (!peaks.length) return;
    const before = this.root.querySelector(".at-peak");
    before?.classList.remove("at-peak", "on");
    const at = before ? peaks.indexOf(Number(before.id.slice(1))) : -1;
    const line = await this.goTo(this.listing, peaks[(at + 1) % peaks.length]);
    line?.classList.add("at-peak", "on");
  }
}

function inFold(line) {
  return Boolean(line?.closest("details:not([open])"));
}
