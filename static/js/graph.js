// The node graph: own SVG, dagre in a worker, the selection shared with the table beside it.

import { Culling } from "./culling.js";
import { GraphModel } from "./graph-model.js";
import { select as selectRow } from "./rows.js";
import { Viewport } from "./viewport.js";

const SVG = "http://www.w3.org/2000/svg";

export async function bindGraph() {
  const root = document.querySelector("[data-graph]");
  const answer = await fetch(root.dataset.graph);
  const view = new GraphView(root, new GraphModel(await answer.json()));
  if (root.dataset.selected) view.model.reveal(root.dataset.selected);
  await view.draw();
  if (root.dataset.selected) view.select(root.dataset.selected, { centre: true, row: true });
  root.dataset.ready = "true";
}

class GraphView {
  constructor(root, model) {
    this.root = root;
    this.model = model;
    this.svg = root.querySelector("svg");
    this.layer = element("g");
    this.svg.append(arrowhead(), this.layer);
    this.culling = new Culling(this.layer);
    this.viewport = new Viewport(this.svg, this.layer, (frame) => this.culling.look(frame));
    this.output = root.querySelector("output");
    this.worker = new Worker(root.dataset.worker, { type: "module" });
    this.round = 0;
    this.selected = "";
    this.query = "";
    this.bind();
  }

  bind() {
    const on = (what, event, action) => this.root.querySelector(what).addEventListener(event, action);
    on("[data-graph-fit]", "click", () => this.viewport.fit(this.size));
    on("[data-graph-expand]", "click", () => this.redraw(() => this.model.openAll()));
    on("[data-graph-collapse]", "click", () => this.redraw(() => this.model.closeAll()));
    on("[data-graph-views]", "click", ({ currentTarget }) => {
      const shown = !this.model.showViews;
      currentTarget.setAttribute("aria-pressed", String(shown));
      this.redraw(() => { this.model.showViews = shown; });
    });
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
      const name = event.target.dataset.nodes?.split(" ")[0];
      if (name && name !== this.selected) this.select(name, { centre: true });
    });
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
      element: nodeElement(item), left: item.x, top: item.y, right: item.x + item.width, bottom: item.y + item.height,
    }));
    const parts = [...edgeParts, ...nodeParts];
    this.culling.place(parts);
    this.layer.replaceChildren(...parts.map((part) => part.element));
    this.output.textContent = `${items.size} boxes`;
    this.viewport.fit(layout);
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
      return this.select(item.members[0].name, { centre: true });
    }
    if (twice && item.url) return location.assign(item.url);
    this.select(item.members[0].name, { row: true });
  }

  select(name, { centre = false, row = false } = {}) {
    this.selected = name;
    this.mark();
    const item = this.selectedItem();
    if (centre && item?.x !== undefined) this.viewport.centre(item);
    if (row) {
      const found = document.querySelector(`tr[data-nodes~="${CSS.escape(name)}"]`);
      if (found) selectRow(found, true);
    }
    const address = new URL(location.href);
    address.searchParams.set("node", name);
    history.replaceState(null, "", address);
  }

  selectedItem() {
    const node = this.model.nodes.get(this.selected);
    return node && this.items.get(this.model.boxOf(node));
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
    if (this.model.boxOf(hits[at]).startsWith("m:")) await this.redraw(() => this.model.reveal(name));
    this.at = at;
    this.select(name, { centre: true, row: true });
  }

  key(event) {
    const order = [...this.items.values()];
    const at = order.indexOf(this.selectedItem());
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = order[Math.min(order.length - 1, Math.max(0, at + step))];
      this.select(next.members[0].name, { centre: true, row: true });
    } else if (event.key === "Enter") this.activate(order[at], true);
    else if (event.key === "+") this.viewport.zoom(1.25);
    else if (event.key === "-") this.viewport.zoom(0.8);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function nodeElement(item) {
  const box = element("g", { class: `node kind-${item.kind}`, transform: `translate(${item.x} ${item.y})` });
  box.dataset.id = item.id;
  box.append(
    element("rect", { class: "box", width: item.width, height: item.height }),
    element("rect", { class: "edge-mark", width: 5, height: item.height }),
    text(item.label, { x: 12, y: 15 }),
    text(item.sub, { x: 12, y: 28, class: "sub" }),
  );
  const title = element("title");
  title.textContent = item.members.map((node) => `${node.name}  ${node.op}  ${node.source}`).slice(0, 12).join("\n");
  box.append(title);
  return box;
}

function edgeElement({ from, to, points }) {
  const path = points.map(({ x, y }, at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const edge = element("path", { class: "edge", d: path, "marker-end": "url(#arrow)" });
  edge.dataset.from = from;
  edge.dataset.to = to;
  return edge;
}

function extent(points) {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  return { left: Math.min(...xs), top: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys) };
}

function arrowhead() {
  const marker = element("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
  marker.append(element("path", { d: "M0 0L8 4L0 8z" }));
  const defs = element("defs");
  defs.append(marker);
  return defs;
}

function text(content, attributes) {
  const node = element("text", attributes);
  node.textContent = content;
  return node;
}

function element(name, attributes = {}) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}
