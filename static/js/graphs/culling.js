// Only what is in view is part of the drawing: with thousands of boxes the browser would go over
// all of them at each move.

const BAND = 400; // units of the drawing: elements are found by the bands of this height they touch
const FAR = 0.35; // scale below which text cannot be read

export class Culling {
  constructor(layer) {
    this.layer = layer;
    this.place([]);
  }

  // Elements with their extent: [{ element, left, top, right, bottom }]
  place(parts) {
    this.bands = new Map();
    this.shown = new Set();
    this.kept = null;
    for (const part of parts) {
      part.element.style.display = "none";
      for (let band = bandOf(part.top); band <= bandOf(part.bottom); band += 1) {
        if (!this.bands.has(band)) this.bands.set(band, []);
        this.bands.get(band).push(part);
      }
    }
  }

  // Show what touches the frame (in units of the drawing) and half as much around it.
  look({ left, top, right, bottom, scale }) {
    this.layer.classList.toggle("far", scale < FAR);
    const kept = this.kept;
    if (kept && left >= kept.left && right <= kept.right && top >= kept.top && bottom <= kept.bottom
      && right - left > (kept.right - kept.left) / 4) return;
    const [wide, high] = [(right - left) / 2, (bottom - top) / 2];
    this.kept = { left: left - wide, top: top - high, right: right + wide, bottom: bottom + high };
    const wanted = this.touching(this.kept);
    for (const element of this.shown) if (!wanted.has(element)) element.style.display = "none";
    for (const element of wanted) if (!this.shown.has(element)) element.style.display = "";
    this.shown = wanted;
  }

  touching(frame) {
    const found = new Set();
    for (const [band, parts] of this.bands) {
      if (band < bandOf(frame.top) || band > bandOf(frame.bottom)) continue;
      for (const part of parts) {
        if (part.left <= frame.right && part.right >= frame.left
          && part.top <= frame.bottom && part.bottom >= frame.top) found.add(part.element);
      }
    }
    return found;
  }
}

function bandOf(y) {
  return Math.floor(y / BAND);
}
