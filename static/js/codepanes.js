// Source and listing side by side: hovering a line marks what belongs to it in the other pane,
// a click pins it and scrolls the other pane to the match. A pin is part of the address (#L12).

import { Chunks, ROW } from "./chunks.js";

export function bindPanes() {
  const root = document.querySelector("[data-panes]");
  const panes = new Panes(root);
  panes.bind();
  addEventListener("hashchange", () => panes.followHash());
  panes.followHash();
}

class Panes {
  constructor(root) {
    this.root = root;
    this.source = root.querySelector("[data-pane=source]"); // none beside a kernel of somebody else's
    this.listing = root.querySelector("[data-pane=listing]");
    const places = document.getElementById("listing-places");
    this.places = places ? JSON.parse(places.textContent) : { source: [], peaks: [], chunk: 1 };
    this.lines = new Map(); // source line → lines in both panes that are there
    this.hovered = "";
    this.pinned = "";
    if (this.source) this.learn(this.source);
    if (this.listing) this.chunks = new Chunks(this.listing, this.places.chunk, (part) => this.learn(part));
  }

  bind() {
    for (const pane of [this.source, this.listing].filter(Boolean)) {
      pane.addEventListener("mouseover", (event) => this.hover(event.target.closest(".l")?.dataset.s ?? ""));
      pane.addEventListener("mouseleave", () => this.hover(""));
      pane.addEventListener("click", (event) => {
        const line = event.target.closest(".l[data-s]");
        if (line && !event.target.closest("a")) this.pin(line.dataset.s, pane);
      });
      pane.addEventListener("keydown", (event) => this.walk(event, pane));
    }
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.pin("");
    });
    document.addEventListener("next-peak", () => this.nextPeak());
    this.root.querySelector("[data-directives]")?.addEventListener("change", ({ target }) => {
      this.listing.classList.toggle("no-directives", !target.checked);
      this.chunks.measure();
    });
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
  }

  mark(key, css, on) {
    this.lines.get(key)?.forEach((line) => line.classList.toggle(css, on));
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
      await this.show(this.places.source.indexOf(Number(key)) + 1);
    }
  }

  // Bring a line of the listing into view, wherever it is.
  async show(number) {
    if (number < 1) return null;
    await this.chunks.ensure(number);
    const line = document.getElementById(`I${number}`);
    if (line) reveal(this.listing, line);
    return line;
  }

  async followHash() {
    const [, pane, number] = /^#([LI])(\d+)$/.exec(location.hash) ?? [];
    const line = pane === "I" && this.listing
      ? await this.show(Number(number))
      : document.getElementById(`L${number}`);
    if (!line) return;
    if (pane === "L") reveal(this.source, line);
    if (line.dataset.s) await this.pin(line.dataset.s);
    if (pane === "I") reveal(this.listing, line);
  }

  // Down and up go from mapped line to mapped line, Enter pins.
  walk(event, pane) {
    if (event.key === "Enter" && this.hovered && !event.target.closest("a")) return this.pin(this.hovered, pane);
    if (!["ArrowDown", "ArrowUp"].includes(event.key)) return undefined;
    const keys = [...new Set([...pane.querySelectorAll(".l[data-s]")].map((line) => line.dataset.s))];
    const step = event.key === "ArrowDown" ? 1 : -1;
    const next = keys[Math.min(keys.length - 1, Math.max(0, keys.indexOf(this.hovered) + step))];
    if (!next) return undefined;
    event.preventDefault();
    this.hover(next);
    return reveal(pane, pane.querySelector(`.l[data-s="${next}"]`));
  }

  async nextPeak() {
    const { peaks } = this.places;
    if (!peaks.length) return;
    const before = this.root.querySelector(".at-peak");
    before?.classList.remove("at-peak", "on");
    const at = before ? peaks.indexOf(Number(before.id.slice(1))) : -1;
    const line = await this.show(peaks[(at + 1) % peaks.length]);
    line?.classList.add("at-peak", "on");
  }
}

// What is far away has an estimated height: look again once it has been laid out.
function reveal(pane, line) {
  const scroll = () => {
    const target = line.getBoundingClientRect();
    const frame = pane.getBoundingClientRect();
    const off = target.top - frame.top - frame.height / 3;
    if (Math.abs(off) > ROW) pane.scrollTop += off;
  };
  scroll();
  requestAnimationFrame(() => requestAnimationFrame(scroll));
}
