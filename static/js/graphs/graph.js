// The drawing of a graph: modules open and close, and the selection is shared with the table beside it.

import { Culling } from "./culling.js";
import { boxElement, boxSize, definitions, element, extent, frameElement, wireElement } from "./graph-boxes.js";
import { GraphModel, isModule } from "./graph-model.js";
import { place } from "./graph-place.js";
import { select as selectRow } from "../web/rows.js";
import { Viewport } from "./viewport.js";

const LONGEST = 34; // characters of a label

export function bindGraph() {
  const root = document.querySelector("[data-graph]");
  const drawing = JSON.parse(document.getElementById("graph-drawing").textContent);
  const view = new GraphView(root, new GraphModel(drawing));
  const selected = view.model.boxes.has(root.dataset.selected) ? root.dataset.selected : "";
  view.model.openLevels(() => view.isReadable());
  if (selected) view.model.reveal(selected);
  view.draw();
  view.begin();
  if (selected) view.select(selected, { centre: true, row: true });
  root.dataset.ready = "true";
}

class GraphView {
  constructor(root, model) {
    this.root = root;
    this.model = model;
    this.svg = root.querySelector("svg");
    this.layer = element("g");
    this.svg.append(definitions(), this.layer);
    this.culling = new Culling(this.layer);
    this.viewport = new Viewport(this.svg, this.layer, (frame) => this.culling.look(frame));
    this.output = root.querySelector("output");
    // The legend says which glyph a kind has, and where the next colour of a share begins.
    const kinds = document.querySelectorAll("[data-kind][data-glyph]");
    this.glyphs = Object.fromEntries([...kinds].map(({ dataset }) => [dataset.kind, dataset.glyph]));
    this.steps = root.dataset.steps.split(" ").map(Number);
    this.selected = "";
    this.query = "";
    this.bind();
  }

  bind() {
    const on = (what, event, action) => this.root.querySelector(what).addEventListener(event, action);
    on("[data-graph-fit]", "click", () => this.fit());
    on("[data-graph-expand]", "click", () => this.change(() => this.model.openAll()));
    on("[data-graph-collapse]", "click", () => this.change(() => this.model.closeAll()));
    for (const link of document.querySelectorAll("[data-graph-colour]")) {
      link.addEventListener("click", (event) => this.colour(event, link));
    }
    on("[data-graph-search]", "input", (event) => this.search(event.target.value));
    on("[data-graph-search]", "keydown", (event) => {
      if (event.key === "Enter") this.nextHit();
    });
    this.layer.addEventListener("click", (event) => {
      const item = event.target.closest("[data-item]")?.dataset.item;
      if (item && !this.viewport.moved) this.activate(item, event.detail > 1);
    });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("row-selected", ({ target }) => {
      const { box } = target.dataset;
      if (this.model.boxes.has(box) && !this.choosing && box !== this.selected) this.select(box, { centre: true });
    });
  }

  // What the colours say, without a new page; the address says it too.
  colour(event, link) {
    event.preventDefault();
    link.closest("[data-colour]").dataset.colour = link.dataset.graphColour;
    for (const other of document.querySelectorAll("[data-graph-colour]")) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    history.replaceState(null, "", link.href);
  }

  isReadable() {
    return this.viewport.isReadable(place(this.model, (item) => boxSize(this.describe(item))));
  }

  // As much as can be read: all of it, or its beginning.
  begin() {
    const whole = this.viewport.begin(this.size, this.boxes);
    this.output.textContent = `${this.boxes.length} boxes${whole ? "" : " from the top; Fit shows all"}`;
  }

  fit() {
    this.viewport.fit(this.size);
    this.output.textContent = `${this.boxes.length} boxes`;
  }

  // Open or close modules. The item that was acted on stays where it is; otherwise all is shown anew.
  change(action, item) {
    const before = item && this.items.get(item);
    action();
    this.draw();
    const after = item && this.items.get(item);
    if (before && after) this.viewport.move(middle(before) - middle(after), before.y - after.y);
    else this.begin();
  }

  draw() {
    const { items, wires, width, height } = place(this.model, (item) => boxSize(this.describe(item)));
    this.size = { width, height };
    this.items = new Map(items.map((placed) => [placed.item, Object.assign(this.describe(placed.item), placed)]));
    this.boxes = [...this.items.values()].filter((box) => !box.frame);
    this.wires = wires.map((wire) => ({ ...wire, element: wireElement(wire) }));
    this.ends = Map.groupBy(this.wires, ({ module, last, source }) => endOf(module, last, source));
    const boxParts = [...this.items.values()].map((box) => ({
      element: box.frame ? frameElement(box) : boxElement(box, this.glyphs, this.steps),
      left: box.x, top: box.y, right: box.x + box.width, bottom: box.y + box.height, frame: box.frame,
    }));
    const parts = [
      ...boxParts.filter((part) => part.frame),
      ...this.wires.map((wire) => ({ element: wire.element, ...extent(wire.points) })),
      ...boxParts.filter((part) => !part.frame),
    ];
    this.culling.place(parts);
    this.layer.replaceChildren(...parts.map((part) => part.element));
    this.mark();
    if (this.query) this.search(this.query);
  }

  // The text of a box, or of a module with the sum of what is in it.
  describe(item) {
    const key = item.slice(2);
    const label = clip(this.model.labelOf(item));
    if (!isModule(item)) {
      const box = this.model.boxes.get(key);
      const sum = this.model.sumOf([key]);
      const words = sum.kernels && !sum.measured && this.root.dataset.measured ? "not measured" : timeText(sum);
      return { ...box, label, sub: [key, words].filter(Boolean).join(" · ") };
    }
    const members = this.model.members.get(key);
    const sum = this.model.sumOf(members);
    const isPart = sum.measured && sum.measured < sum.kernels;
    const count = isPart ? `${sum.measured} of ${sum.kernels}` : `${members.length}`;
    const frame = this.model.open.has(key);
    return {
      frame, kind: "module", label: frame ? `▾ ${label}` : label, share: sum.share,
      sub: [`${count} ${this.root.dataset.noun}`, timeText(sum)].filter(Boolean).join(" · "),
      tooltip: `${key}\n${members.length} ${this.root.dataset.noun}; click to ${frame ? "close" : "open"}`,
    };
  }

  activate(item, twice) {
    const key = item.slice(2);
    if (!isModule(item)) {
      const { url } = this.model.boxes.get(key);
      if (twice && url) location.assign(url);
      else this.select(key, { row: true });
    } else if (this.model.open.has(key)) this.change(() => this.model.close(key), item);
    else this.change(() => this.model.open.add(key), item);
  }

  select(name, { centre = false, row = false } = {}) {
    this.selected = name;
    this.mark();
    if (centre) this.viewport.show(this.items.get(this.model.itemOf(name)));
    if (row) this.selectRow(name);
    const address = new URL(location.href);
    address.searchParams.delete("scheduled");
    address.searchParams.delete("node");
    address.searchParams.set(this.root.dataset.parameter, name);
    history.replaceState(null, "", address);
    this.output.textContent = this.selectionText(name);
    const { url } = this.model.boxes.get(name);
    Object.assign(this.root.querySelector("[data-graph-open]"), { href: url, hidden: !url });
  }

  // The selected box, and how often its kernel is called.
  selectionText(name) {
    const { label, sub } = this.describe(`b:${name}`);
    const group = this.model.groupOf(name);
    const words = this.root.dataset.group;
    const sum = timeText(this.model.sumOf(group));
    const calls = group.length > 1 ? `${group.length} ${words}${sum ? `: ${sum}` : ""}` : "";
    return [`${label} · ${sub}`, calls].filter(Boolean).join(" · ");
  }

  selectRow(name) {
    const row = document.querySelector(`tr[data-box="${CSS.escape(name)}"]`);
    if (!row) return;
    this.choosing = true;
    selectRow(row, true);
    this.choosing = false;
  }

  // Mark what is selected, the others of its group, and the wires to and from it.
  mark() {
    const group = this.selected ? this.model.groupOf(this.selected) : [];
    const [on] = this.selected ? [this.model.itemOf(this.selected)] : [];
    const same = new Set(group.map((name) => this.model.itemOf(name)));
    for (const box of this.layer.querySelectorAll(".node")) {
      box.classList.toggle("on", box.dataset.item === on);
      box.classList.toggle("same", box.dataset.item !== on && same.has(box.dataset.item));
    }
    const rows = new Set(group);
    for (const row of document.querySelectorAll("tr[data-box]")) row.classList.toggle("same", rows.has(row.dataset.box));
    const touching = this.wiresOf(on);
    for (const wire of this.wires) wire.element.classList.toggle("on", touching.has(wire));
  }

  // The wires that begin in an item, and those that lead to it, from their beginning on.
  wiresOf(item) {
    if (!item) return new Set();
    const names = new Set(isModule(item) ? this.model.members.get(item.slice(2)) : [item.slice(2)]);
    const touching = new Set(this.wires.filter((wire) => names.has(wire.source)));
    const waiting = this.wires.filter((wire) => wire.last === item);
    for (const wire of waiting) { // grows while it is walked
      touching.add(wire);
      waiting.push(...this.wiresBefore(wire).filter((before) => !touching.has(before)));
    }
    return touching;
  }

  // The wires that a wire continues, in its module, in the one around it, or in an open one above.
  wiresBefore({ module, first, source }) {
    if (first[0] === "w") return this.ends.get(endOf(module, first, source)) ?? [];
    if (first[0] === "i") return this.ends.get(endOf(this.model.parents.get(`m:${module}`), `m:${module}`, source)) ?? [];
    return this.model.isOpen(first) ? this.ends.get(endOf(first.slice(2), `o:${source}`, source)) ?? [] : [];
  }

  search(text) {
    this.query = text.trim().toLowerCase();
    const words = ([name, box]) => `${name} ${box.label} ${box.module} ${box.group} ${box.parts.join(" ")}`.toLowerCase();
    this.hits = this.query ? [...this.model.boxes].filter((pair) => words(pair).includes(this.query)).map(([name]) => name) : [];
    const items = new Set(this.hits.map((name) => this.model.itemOf(name)));
    for (const box of this.layer.querySelectorAll(".node")) {
      box.classList.toggle("hit", items.has(box.dataset.item));
      box.classList.toggle("miss", this.query !== "" && !items.has(box.dataset.item));
    }
    this.output.textContent = this.query ? `${this.hits.length} found` : `${this.boxes.length} boxes`;
    this.at = -1;
  }

  nextHit() {
    if (!this.hits?.length) return;
    const at = (this.at + 1) % this.hits.length;
    const name = this.hits[at];
    if (isModule(this.model.itemOf(name))) this.change(() => this.model.reveal(name));
    this.select(name, { centre: true, row: true });
    this.at = at;
  }

  key(event) {
    const { selected, model } = this;
    const names = this.boxes.map(({ item }) => (isModule(item) ? model.members.get(item.slice(2))[0] : item.slice(2)));
    const current = selected && model.itemOf(selected);
    const at = this.boxes.findIndex(({ item }) => item === current);
    const end = names.length;
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -end, End: end }[event.key];
    if (step) this.select(names[Math.min(end - 1, Math.max(0, at + step))], { centre: true, row: true });
    else if (event.key === "Enter" && current) this.activate(current, true);
    else if (event.key === "ArrowRight" && current && isModule(current)) this.activate(current);
    else if (event.key === "ArrowLeft" && model.parents.get(current)) this.closeAround(current);
    else if (event.key === "+") this.viewport.zoom(1.25);
    else if (event.key === "-") this.viewport.zoom(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  closeAround(item) {
    const path = this.model.parents.get(item);
    if (path !== this.model.layout.root) this.change(() => this.model.close(path), `m:${path}`);
  }
}

function middle({ x, width }) {
  return x + width / 2;
}

function timeText({ timeNs, share }) {
  return timeNs === null ? "" : `${micros(timeNs)} µs · ${(share * 100).toFixed(1)} %`;
}

// About four digits, as in the table.
function micros(ns) {
  const value = ns / 1000;
  const digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function endOf(module, item, source) {
  return JSON.stringify([module, item, source]);
}

function clip(text) {
  const half = LONGEST / 2;
  return text.length > LONGEST ? `${text.slice(0, half - 1)}…${text.slice(-half)}` : text;
}
