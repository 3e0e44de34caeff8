// The node graph: own SVG, dagre in a worker, the selection shared with the table beside it.

import { Culling } from "./culling.js";
import { definitions, edgeElement, element, extent, nodeElement } from "./graph-boxes.js";
import { GraphModel } from "./graph-model.js";
import { select as selectRow } from "../web/rows.js";
import { Viewport } from "./viewport.js";

export async function bindGraph() {
  const root = document.querySelector("[data-graph]");
  const answer = await fetch(root.dataset.graph);
  const view = new GraphView(root, new GraphModel(await answer.json()));
  const selected = view.model.keyOf({ scheduled: root.dataset.scheduled, node: root.dataset.selected });
  if (selected) view.model.reveal(selected);
  await view.draw();
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
    this.worker = new Worker(root.dataset.worker, { type: "module" });
    this.round = 0;
    this.selected = "";
    this.query = "";
    this.bind();
  }

  bind() {
    const on = (what, event, action) => this.root.querySelector(what).addEventListener(event, action);
    on("[data-graph-fit]", "click", () => this.fit());
    on("[data-graph-expand]", "click", () => this.redraw(() => this.model.openAll()));
    on("[data-graph-collapse]", "click", () => this.redraw(() => this.model.closeAll()));
    on("[data-graph-views]", "click", ({ currentTarget }) => {
      const shown = !this.model.showViews;
      currentTarget.setAttribute("aria-pressed", String(shown));
      this.redraw(() => { this.model.showViews = shown; });
    });
    for (const link of document.querySelectorAll("[data-graph-colour]")) {
      link.addEventListener("click", (event) => this.colour(event, link));
    }
    on("[data-graph-search]", "input", (event) => this.search(event.target.value));
    on("[data-graph-search]", "keydown", (event) => {
      if (event.key === "Enter") this.nextHit();
    });
    this.layer.addEventListener("click", (event) => {
      const box = event.target.closest(".node");
      if (box && !this.viewport.moved) this.activate(this.items.get(box.dataset.id), event.detail > 1);
    });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("row-selected", (event) => {
      const { scheduled, nodes } = event.target.dataset;
      const key = scheduled ? `s:${scheduled}` : nodes && `n:${nodes.split(" ")[0]}`;
      if (key && !this.choosing && key !== this.selected) this.select(key, { centre: true });
    });
  }

  // What the colours say, without a new page; the address says it too.
  colour(event, link) {
    event.preventDefault();
    link.closest("[data-colour]").dataset.colour = link.dataset.graphColour;
    for (const other of document.querySelectorAll("[data-graph-colour]")) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    const address = new URL(location.href);
    if (link.dataset.graphColour === "kind") address.searchParams.delete("colour");
    else address.searchParams.set("colour", link.dataset.graphColour);
    history.replaceState(null, "", address);
  }

  fit() {
    this.viewport.fit(this.size);
    if (!this.whole) this.output.textContent = `${this.items.size} boxes`;
    this.whole = true;
  }

  redraw(change) {
    change();
    return this.draw();
  }

  async draw() {
    const { items, edges } = this.model.visible();
    this.items = items;
    this.output.textContent = "laying out …";
    const layout = await this.layout([...items.values()], edges);
    if (!layout) return; // a newer drawing is on its way
    this.size = layout;
    const nodes = layout.nodes.map(({ id, x, y }) => Object.assign(items.get(id), { x, y }));
    const edgeParts = layout.edges.map((edge) => ({ element: edgeElement(edge), ...extent(edge.points) }));
    const nodeParts = nodes.map((item) => ({
      element: nodeElement(item, this.glyphs, this.steps), left: item.x, top: item.y, right: item.x + item.width, bottom: item.y + item.height,
    }));
    const parts = [...edgeParts, ...nodeParts];
    this.culling.place(parts);
    this.layer.replaceChildren(...parts.map((part) => part.element));
    this.whole = this.viewport.begin(layout, nodes);
    this.output.textContent = `${items.size} boxes${this.whole ? "" : " from the top; Fit shows all"}`;
    this.mark();
    if (this.query) this.search(this.query);
  }

  layout(nodes, edges) {
    const id = ++this.round;
    const sizes = nodes.map(({ id: key, width, height }) => ({ id: key, width, height }));
    const library = new URL(this.root.dataset.dagre, location.href).href;
    return new Promise((resolve) => {
      const hear = ({ data }) => {
        if (data.id !== id) return;
        this.worker.removeEventListener("message", hear);
        resolve(id === this.round ? data : null);
      };
      this.worker.addEventListener("message", hear);
      this.worker.postMessage({ id, library, nodes: sizes, edges });
    });
  }

  async activate(item, twice) {
    if (!item) return;
    if (item.kind === "module") {
      await this.redraw(() => this.model.open.add(item.path));
      return this.select(`n:${item.members[0].name}`, { centre: true });
    }
    if (twice && item.url) return location.assign(item.url);
    this.select(keyOf(item), { row: true });
  }

  // "s:" with a scheduled node's key, or "n:" with a graph node's name: the address says which.
  select(key, { centre = false, row = false } = {}) {
    this.selected = key;
    this.mark();
    const item = this.selectedItem();
    if (centre && item?.x !== undefined) this.viewport.centre(item);
    if (row) this.selectRow(key);
    const scheduled = key[0] === "s" ? this.model.scheduled.get(Number(key.slice(2))) : undefined;
    const address = new URL(location.href);
    address.searchParams.delete(scheduled ? "node" : "scheduled");
    address.searchParams.set(scheduled ? "scheduled" : "node", scheduled ? scheduled.name : key.slice(2));
    history.replaceState(null, "", address);
  }

  // The row of what is selected, whichever table is shown; it is no selection of its own.
  selectRow(key) {
    const scheduled = this.model.scheduled.get(Number(key.slice(2)));
    const name = key[0] === "s" ? scheduled?.graph_nodes[0] : key.slice(2);
    const own = key[0] === "s" && document.querySelector(`tr[data-scheduled="${key.slice(2)}"]`);
    const found = own || (name && document.querySelector(`tr[data-nodes~="${CSS.escape(name)}"]`));
    if (!found) return;
    this.choosing = true;
    selectRow(found, true);
    this.choosing = false;
  }

  selectedItem() {
    const box = this.selected && this.model.boxOfKey(this.selected);
    return box && this.items.get(box);
  }

  mark() {
    const id = this.selectedItem()?.id;
    for (const box of this.layer.querySelectorAll(".node")) box.classList.toggle("on", box.dataset.id === id);
    for (const edge of this.layer.querySelectorAll(".edge")) {
      edge.classList.toggle("on", id !== undefined && (edge.dataset.from === id || edge.dataset.to === id));
    }
  }

  search(text) {
    this.query = text.trim().toLowerCase();
    const hit = (node) => `${node.name} ${node.op} ${node.module}`.toLowerCase().includes(this.query);
    this.hits = this.query ? [...this.model.nodes.values()].filter((n) => this.model.isShown(n) && hit(n)) : [];
    const boxes = new Set(this.hits.map((node) => this.model.boxOf(node)));
    for (const box of this.layer.querySelectorAll(".node")) {
      box.classList.toggle("hit", boxes.has(box.dataset.id));
      box.classList.toggle("miss", this.query !== "" && !boxes.has(box.dataset.id));
    }
    this.output.textContent = this.query ? `${this.hits.length} found` : `${this.items.size} boxes`;
    this.at = -1;
  }

  async nextHit() {
    if (!this.hits?.length) return;
    this.at = (this.at + 1) % this.hits.length;
    const { at, hits } = this;
    const { name } = hits[at];
    if (this.model.boxOf(hits[at]).startsWith("m:")) await this.redraw(() => this.model.reveal(`n:${name}`));
    this.at = at;
    this.select(`n:${name}`, { centre: true, row: true });
  }

  key(event) {
    const order = [...this.items.values()];
    const at = order.indexOf(this.selectedItem());
    const end = order.length;
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -end, End: end }[event.key];
    if (step) {
      const next = order[Math.min(end - 1, Math.max(0, at + step))];
      this.select(keyOf(next), { centre: true, row: true });
      this.output.textContent = next.label; // which is read out
    } else if (event.key === "Enter") this.activate(order[at], true);
    else if (event.key === "+") this.viewport.zoom(1.25);
    else if (event.key === "-") this.viewport.zoom(0.8);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// What is selected by a box: its own; of a closed module the first of its nodes.
function keyOf(item) {
  return item.kind === "module" ? `n:${item.members[0].name}` : item.id;
}
