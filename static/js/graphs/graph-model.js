// The tree of modules of a drawing: which are open, and what stands for a box while they are not.

const AT_FIRST = 80; // items visible at first, at most
const FEW = 6; // so few are no picture of the graph, even if more do not fit

export class GraphModel {
  constructor({ boxes, layout }) {
    this.boxes = new Map(Object.entries(boxes));
    this.layout = layout;
    this.parents = new Map(); // item → path of the module that it is in
    for (const [path, { rows }] of Object.entries(layout.modules)) {
      for (const item of rows.flat()) if (isDrawn(item)) this.parents.set(item, path);
    }
    this.members = new Map(Object.keys(layout.modules).map((path) => [path, []]));
    for (const name of this.boxes.keys()) {
      for (const path of this.modulesOf(`b:${name}`)) this.members.get(path).push(name);
    }
    this.open = new Set([layout.root]);
  }

  // Open modules level by level, as long as the drawing `fits`.
  openLevels(fits) {
    for (;;) {
      const visible = this.visible();
      const closed = visible.filter(isModule).map((item) => item.slice(2));
      closed.forEach((path) => this.open.add(path));
      if (!closed.length) return;
      if (this.visible().length > AT_FIRST || (visible.length > FEW && !fits())) {
        closed.forEach((path) => this.open.delete(path));
        return;
      }
    }
  }

  openAll() {
    this.open = new Set(Object.keys(this.layout.modules));
  }

  closeAll() {
    this.open = new Set([this.layout.root]);
  }

  // Boxes and closed modules, in the order of the drawing.
  visible(path = this.layout.root) {
    return this.itemsOf(path).flatMap((item) => (this.isOpen(item) ? this.visible(item.slice(2)) : [item]));
  }

  itemsOf(path) {
    return this.layout.modules[path].rows.flat().filter(isDrawn);
  }

  isOpen(item) {
    return isModule(item) && this.open.has(item.slice(2));
  }

  // The modules that an item is in, from the innermost to the root.
  modulesOf(item) {
    const paths = [];
    for (let path = this.parents.get(item); path !== undefined; path = this.parents.get(`m:${path}`)) paths.push(path);
    return paths;
  }

  // What stands for a box: the outermost closed module around it, or itself.
  itemOf(name) {
    const closed = this.modulesOf(`b:${name}`).reverse().find((path) => !this.open.has(path));
    return closed === undefined ? `b:${name}` : `m:${closed}`;
  }

  reveal(name) {
    this.modulesOf(`b:${name}`).forEach((path) => this.open.add(path));
  }

  close(path) {
    for (const other of [...this.open]) if (other === path || other.startsWith(`${path}.`)) this.open.delete(other);
  }

  // The name of a module or box within the module around it; of a number in a list, the list's too.
  labelOf(item) {
    const box = isModule(item) ? null : this.boxes.get(item.slice(2));
    const outer = partsOf(this.parents.get(item));
    const parts = partsOf(box ? box.module : item.slice(2));
    const isNumber = /^\d/.test(parts[outer.length] ?? "");
    const name = parts.slice(outer.length - Number(isNumber)).join(".");
    return box ? [name, box.label].filter(Boolean).join(" ") : name;
  }

  // The boxes that highlight together with one, itself included.
  groupOf(name) {
    const { group } = this.boxes.get(name);
    return group ? [...this.boxes].filter(([, box]) => box.group === group).map(([other]) => other) : [name];
  }

  // What boxes take together: null where none of them was measured.
  sumOf(names) {
    const timed = names.map((name) => this.boxes.get(name)).filter((box) => box.is_timed);
    const measured = timed.filter((box) => box.time_ns !== null);
    const total = (key) => (measured.length ? measured.reduce((sum, box) => sum + box[key], 0) : null);
    return { kernels: timed.length, measured: measured.length, timeNs: total("time_ns"), share: total("share") };
  }
}

export function isModule(item) {
  return item.startsWith("m:");
}

// Whether an item is a box or a module: the others are the bends and ends of wires.
export function isDrawn(item) {
  return item.startsWith("b:") || isModule(item);
}

function partsOf(path) {
  return path ? path.split(".") : [];
}
