// What of a graph is visible: modules open or closed, fused groups as one box, views left out.

const HEIGHT = 34;
const BESIDE_TEXT = 42; // units: the badge before it, and some room behind
const AT_FIRST = 80; // boxes: open as many modules as fit this

export class GraphModel {
  constructor(page) {
    this.scheduled = new Map(page.scheduled.map((row) => [row.id, row]));
    this.showViews = page.scheduled.length === 0;
    this.nodes = new Map(page.nodes.map((node) => [node.name, node]));
    this.home = new Map(); // scheduled node → module of its first member
    const first = new Set(); // scheduled nodes that are the first of some graph node
    for (const node of page.nodes) {
      for (const id of node.scheduled) if (!this.home.has(id)) this.home.set(id, node.module);
      if (node.scheduled.length) first.add(node.scheduled[0]);
    }
    // Those that compute nothing but what an earlier one begins: a box of their own all the same.
    this.others = page.scheduled.filter(({ id }) => this.home.has(id) && !first.has(id));
    this.open = new Set([""]);
    this.openSome();
  }

  // Breadth first, so that what is open is open to the same depth.
  openSome() {
    for (let depth = 1; ; depth += 1) {
      const before = new Set(this.open);
      const modules = this.modules().filter((path) => path.split(".").length === depth);
      if (!modules.length) return;
      modules.forEach((path) => this.open.add(path));
      if (this.visible().items.size > AT_FIRST && this.count(before) > 1) {
        this.open = before;
        return;
      }
    }
  }

  // How many boxes there are with just these modules open.
  count(open) {
    const now = this.open;
    this.open = open;
    const { size } = this.visible().items;
    this.open = now;
    return size;
  }

  modules() {
    const all = new Set();
    for (const node of this.nodes.values()) for (const path of ancestors(node.module)) all.add(path);
    return [...all];
  }

  openAll() {
    this.modules().forEach((path) => this.open.add(path));
  }

  closeAll() {
    this.open = new Set([""]);
  }

  // Open what hides a selection: "s:" with a scheduled node's key, or "n:" with a graph node's name.
  reveal(key) {
    const node = this.nodes.get(key.slice(2));
    const path = key[0] === "s" ? this.home.get(Number(key.slice(2))) : node && this.moduleOf(node);
    for (const one of ancestors(path)) this.open.add(one);
  }

  // The selection that a name in the address means.
  keyOf({ scheduled, node }) {
    const row = scheduled && [...this.scheduled.values()].find(({ name }) => name === scheduled);
    if (row) return `s:${row.id}`;
    return this.nodes.has(node) ? `n:${node}` : "";
  }

  // The box in which a selection lies.
  boxOfKey(key) {
    if (key[0] === "s") return this.boxOfScheduled(Number(key.slice(2)));
    const node = this.nodes.get(key.slice(2));
    return node && this.boxOf(node);
  }

  moduleOf(node) {
    return node.scheduled.length ? this.home.get(node.scheduled[0]) : node.module;
  }

  // The box that stands for a node: its closed module, its fused group, or itself.
  boxOf(node) {
    const closed = this.closedOn(this.moduleOf(node));
    if (closed !== undefined) return `m:${closed}`;
    return node.scheduled.length ? `s:${node.scheduled[0]}` : `n:${node.name}`;
  }

  boxOfScheduled(id) {
    const closed = this.closedOn(this.home.get(id));
    return closed === undefined ? `s:${id}` : `m:${closed}`;
  }

  closedOn(module) {
    return ancestors(module).find((path) => !this.open.has(path));
  }

  isShown(node) {
    return this.showViews || node.scheduled.length > 0;
  }

  // Inputs with views replaced by what they view, unless views are shown.
  sources(node) {
    const found = new Set();
    const seen = new Set();
    const waiting = [...node.inputs];
    while (waiting.length) {
      const name = waiting.pop();
      const input = this.nodes.get(name);
      if (!input || seen.has(name)) continue;
      seen.add(name);
      if (this.isShown(input)) found.add(input);
      else waiting.push(...input.inputs);
    }
    return found;
  }

  visible() {
    const items = new Map();
    const edges = new Map();
    for (const node of this.nodes.values()) {
      if (!this.isShown(node)) continue;
      const id = this.boxOf(node);
      if (!items.has(id)) items.set(id, { id, members: [] });
      items.get(id).members.push(node);
      for (const input of this.sources(node)) {
        const from = this.boxOf(input);
        if (from !== id) edges.set(JSON.stringify([from, id]), [from, id]);
      }
    }
    for (const row of this.others) this.place(row, items, edges);
    for (const item of items.values()) this.describe(item);
    return { items, edges: [...edges.values()] };
  }

  // A kernel that shares all its graph nodes with an earlier one, behind those whose results it reads.
  place(row, items, edges) {
    const id = this.boxOfScheduled(row.id);
    if (!items.has(id)) items.set(id, { id, members: row.graph_nodes.map((name) => this.nodes.get(name)) });
    for (const before of row.after) {
      const from = this.boxOfScheduled(before);
      if (from !== id && items.has(from)) edges.set(JSON.stringify([from, id]), [from, id]);
    }
  }

  // What a closed module's kernels take together; null where none of them has a time.
  shareOf(members) {
    const ids = new Set(members.flatMap((node) => node.scheduled));
    const shares = [...ids].map((id) => this.scheduled.get(id).share).filter((share) => share !== null);
    return shares.length ? shares.reduce((sum, share) => sum + share, 0) : null;
  }

  describe(item) {
    const [kind, key] = [item.id[0], item.id.slice(2)];
    if (kind === "m") {
      item.kind = "module";
      item.label = `▸ ${key}`;
      item.share = this.shareOf(item.members);
      item.sub = [`${item.members.length} nodes`, percent(item.share)].filter(Boolean).join(" · ");
      item.path = key;
    } else if (kind === "s") {
      const row = this.scheduled.get(Number(key));
      item.kind = row.kind;
      item.label = row.graph_nodes.length > 1 ? `${row.op} + ${row.graph_nodes.length - 1}` : item.members[0].name;
      item.share = row.share;
      item.sub = [row.name, percent(row.share)].filter(Boolean).join(" · ");
      item.url = row.url;
    } else {
      item.kind = "view";
      item.share = null;
      item.label = item.members[0].name;
      item.sub = item.members[0].op;
    }
    item.label = clip(item.label);
    item.sub = clip(item.sub);
    item.width = BESIDE_TEXT + 7 * Math.max(item.label.length, item.sub.length * 0.92);
    item.height = HEIGHT;
  }
}

function percent(share) {
  return share === null ? "" : `${(share * 100).toFixed(1)} %`;
}

function ancestors(path) {
  if (!path) return [];
  const parts = path.split(".");
  return parts.map((_, at) => parts.slice(0, at + 1).join("."));
}

function clip(text) {
  return text.length > 30 ? `${text.slice(0, 14)}…${text.slice(-15)}` : text;
}
