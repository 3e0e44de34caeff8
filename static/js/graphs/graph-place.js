// Coordinates of a layout: rows below each other, items in a row as close to their neighbours above
// and below as those beside them allow.

const GAP = 14; // between items of a row
const ROW_GAP = 20;
const PORT_GAP = 10; // to a row that has only ends of wires
const MARGIN = 12; // within the frame of an open module
export const HEADER = 20; // of a frame, above what is in it
const BEND = 6; // width that a wire takes in a row
const ROUNDS = 4;

// Items with their place (open modules as frames), and wires as curves. `sizeOf` gives the size of a
// box or closed module, and the least width of an open one.
export function place(model, sizeOf) {
  const root = placeModule(model, model.layout.root, sizeOf);
  const items = [];
  const wires = [];
  collect(model, root, MARGIN, MARGIN, items, wires);
  return { items, wires, width: root.width + 2 * MARGIN, height: root.height + 2 * MARGIN };
}

// A module's items relative to its corner: x is the middle of an item, and rows have top and bottom.
function placeModule(model, path, sizeOf) {
  const layout = model.layout.modules[path];
  const cells = new Map();
  const rows = layout.rows.map((row) => row.map((item) => {
    const inner = model.isOpen(item) ? placeModule(model, item.slice(2), sizeOf) : null;
    const cell = { item, inner, x: 0, width: BEND, height: 0, above: [], below: [] };
    if (inner) {
      cell.width = Math.max(inner.width + 2 * MARGIN, sizeOf(item).width);
      cell.height = inner.height + HEADER + MARGIN;
    } else if (item[0] === "b" || item[0] === "m") Object.assign(cell, sizeOf(item));
    cells.set(item, cell);
    return cell;
  }));
  for (const [first, last, source] of layout.wires) {
    const ends = [cells.get(first), cells.get(last)];
    const shift = portOf(ends[0], `o:${source}`) - portOf(ends[1], `i:${source}`);
    ends[0].below.push({ cell: ends[1], shift: -shift });
    ends[1].above.push({ cell: ends[0], shift });
  }
  align(rows);
  const left = Math.min(0, ...[...cells.values()].map((cell) => cell.x - cell.width / 2));
  for (const cell of cells.values()) cell.x -= left;
  let bottom = 0;
  rows.forEach((row, at) => {
    const height = Math.max(0, ...row.map((cell) => cell.height));
    const isPorts = (other) => other?.every((cell) => !cell.height);
    const top = bottom + (at === 0 ? 0 : isPorts(row) || isPorts(rows[at - 1]) ? PORT_GAP : ROW_GAP);
    bottom = top + height;
    const band = { top, bottom };
    for (const cell of row) Object.assign(cell, { y: top + (height - cell.height) / 2, band });
  });
  const width = Math.max(0, ...[...cells.values()].map((cell) => cell.x + cell.width / 2));
  return { path, layout, cells, width, height: bottom };
}

// Where a wire meets an item, from the middle of the item: a wire of an open module has its own place.
function portOf({ inner, width }, port) {
  const cell = inner?.cells.get(port);
  return cell ? cell.x + (width - inner.width) / 2 - width / 2 : 0;
}

function align(rows) {
  for (const row of rows) spread(row, row.map(() => 0));
  const wanted = (neighbours) => (cell) => {
    const near = neighbours(cell);
    return near.length ? near.reduce((sum, { cell: other, shift }) => sum + other.x + shift, 0) / near.length : cell.x;
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const row of rows) spread(row, row.map(wanted((cell) => cell.above)));
    for (const row of [...rows].reverse()) spread(row, row.map(wanted((cell) => cell.below)));
  }
  for (const row of rows) spread(row, row.map(wanted((cell) => [...cell.above, ...cell.below])));
}

// Place a row's items as near as possible (least squares) to the wanted places without overlap:
// items that would overlap form a block, which stands at the mean of what its items want.
function spread(row, wanted) {
  const blocks = [];
  let offset = 0;
  row.forEach((cell, at) => {
    if (at) offset += (row[at - 1].width + cell.width) / 2 + GAP;
    let block = { cells: [{ cell, offset }], sum: wanted[at] - offset };
    while (blocks.length && mean(blocks.at(-1)) >= mean(block)) {
      const before = blocks.pop();
      block = { cells: [...before.cells, ...block.cells], sum: before.sum + block.sum };
    }
    blocks.push(block);
  });
  for (const block of blocks) for (const { cell, offset: by } of block.cells) cell.x = mean(block) + by;
}

function mean({ sum, cells }) {
  return sum / cells.length;
}

function collect(model, module, left, top, items, wires) {
  for (const cell of module.cells.values()) {
    const x = left + cell.x - cell.width / 2;
    const y = top + cell.y;
    if (cell.height) items.push({ item: cell.item, x, y, width: cell.width, height: cell.height });
    if (cell.inner) collect(model, cell.inner, x + (cell.width - cell.inner.width) / 2, y + HEADER, items, wires);
  }
  const { path, layout, cells } = module;
  for (const wire of [...layout.wires, ...layout.direct]) {
    const [first, last, source] = [cells.get(wire[0]), cells.get(wire[1]), wire[2]];
    const start = left + first.x + portOf(first, `o:${source}`);
    const end = left + last.x + portOf(last, `i:${source}`);
    // Wires enter below the header of the frame and leave at its lower edge.
    const from = first.item[0] === "i" ? top : top + first.y + first.height;
    const to = last.item[0] === "o" ? top + module.height + MARGIN : top + last.y;
    wires.push({
      module: path, first: first.item, last: last.item, source,
      points: [[start, from], [start, Math.max(from, top + first.band.bottom)], [end, Math.min(to, top + last.band.top)], [end, to]],
    });
  }
}
