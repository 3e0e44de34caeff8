// Pan and zoom of an SVG layer: drag, wheel, and calls.

const SMALLEST = 0.05;
const LARGEST = 3;
const READABLE = 0.55;

export class Viewport {
  constructor(svg, layer, look = () => {}) {
    this.svg = svg;
    this.layer = layer;
    this.look = look; // is told what part of the layer is in view
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.smallest = SMALLEST;
    this.moved = false;
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.drag(event));
  }

  apply() {
    this.layer.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
    const { width, height } = this.svg.getBoundingClientRect();
    const [left, top] = [-this.x / this.scale, -this.y / this.scale];
    const [right, bottom] = [left + width / this.scale, top + height / this.scale];
    this.look({ left, top, right, bottom, scale: this.scale });
  }

  // The whole, or where that would be too small to read (READABLE) its beginning: the uppermost
  // items, as many as fit beside each other. Answers whether it is the whole.
  begin(size, items) {
    const whole = this.whole(size);
    this.scaleTo(size, Math.max(whole, READABLE));
    if (this.isReadable(size) || !items.length) return true;
    const frame = this.svg.getBoundingClientRect();
    const upper = items.filter((item) => item.y + item.height <= frame.height / this.scale);
    const left = mostFit(upper.length ? upper : items, frame.width / this.scale);
    this.x = -left * this.scale;
    this.apply();
    return false;
  }

  // The whole of it, however small that is.
  fit(size) {
    this.scaleTo(size, this.whole(size));
  }

  isReadable(size) {
    return this.whole(size) >= READABLE;
  }

  // Keep in place what a new drawing has moved by as much.
  move(x, y) {
    this.x += x * this.scale;
    this.y += y * this.scale;
    this.apply();
  }

  // The scale at which all of it is in view.
  whole({ width, height }) {
    const frame = this.svg.getBoundingClientRect();
    return Math.min(1, frame.width / width, frame.height / height);
  }

  scaleTo({ width, height }, scale) {
    const frame = this.svg.getBoundingClientRect();
    this.smallest = Math.min(SMALLEST, scale);
    this.scale = scale;
    this.x = (frame.width - width * scale) / 2;
    this.y = Math.max(0, (frame.height - height * scale) / 2);
    this.apply();
  }

  // Bring an item into view: to the middle, unless all of it is in view.
  show(item) {
    const frame = this.svg.getBoundingClientRect();
    const [left, top] = [this.x + item.x * this.scale, this.y + item.y * this.scale];
    const [right, bottom] = [left + item.width * this.scale, top + item.height * this.scale];
    if (left >= 0 && top >= 0 && right <= frame.width && bottom <= frame.height) return;
    this.x = frame.width / 2 - (item.x + item.width / 2) * this.scale;
    this.y = frame.height / 2 - (item.y + item.height / 2) * this.scale;
    this.apply();
  }

  zoom(factor, x, y) {
    const frame = this.svg.getBoundingClientRect();
    const [cx, cy] = [x ?? frame.width / 2, y ?? frame.height / 2];
    const next = Math.min(LARGEST, Math.max(this.smallest, this.scale * factor));
    this.x = cx - ((cx - this.x) * next) / this.scale;
    this.y = cy - ((cy - this.y) * next) / this.scale;
    this.scale = next;
    this.apply();
  }

  wheel(event) {
    event.preventDefault();
    const frame = this.svg.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY / 400), event.clientX - frame.left, event.clientY - frame.top);
  }

  drag(start) {
    if (start.button !== 0) return;
    const [x, y] = [this.x, this.y];
    this.moved = false;
    const move = (event) => {
      const [dx, dy] = [event.clientX - start.clientX, event.clientY - start.clientY];
      if (!this.moved && Math.hypot(dx, dy) < 4) return;
      this.moved = true;
      this.svg.classList.add("dragging");
      [this.x, this.y] = [x + dx, y + dy];
      this.apply();
    };
    const stop = () => {
      this.svg.classList.remove("dragging");
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", stop);
      removeEventListener("pointercancel", stop);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
  }
}

// The left edge of the window of a width that shows most items whole, with equal room beside them.
function mostFit(items, width) {
  let best = { count: 0, left: 0 };
  for (const { x: edge } of items) {
    const inside = items.filter((item) => item.x >= edge && item.x + item.width <= edge + width);
    if (inside.length <= best.count) continue;
    const right = Math.max(...inside.map((item) => item.x + item.width));
    best = { count: inside.length, left: edge - (width - (right - edge)) / 2 };
  }
  return best.count ? best.left : items[0].x;
}
