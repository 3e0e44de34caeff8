// The shapes of a graph's drawing. A kind is told by its outline, its glyph and its colour; a share of
// the time by its step of colour, its bar and its figure.

import { HEADER } from "./graph-place.js";
import { isDrawn } from "./graph-model.js";

const SVG = "http://www.w3.org/2000/svg";
const SLANT = 7; // units by which an outline departs from a rectangle
const BADGE = 16;

const rectangle = (w, h) => `M0 0H${w}V${h}H0Z`;
const pill = (w, h) => `M${h / 2} 0H${w - h / 2}A${h / 2} ${h / 2} 0 0 1 ${w - h / 2} ${h}H${h / 2}A${h / 2} ${h / 2} 0 0 1 ${h / 2} 0Z`;
const hexagon = (w, h) => `M${SLANT} 0H${w - SLANT}L${w} ${h / 2}L${w - SLANT} ${h}H${SLANT}L0 ${h / 2}Z`;
const funnel = (w, h) => `M0 0H${w}L${w - SLANT} ${h}H${SLANT}Z`;
const leaning = (w, h) => `M${SLANT} 0H${w}L${w - SLANT} ${h}H0Z`;
const cut = (w, h) => `M${SLANT} 0H${w - SLANT}L${w} ${SLANT}V${h - SLANT}L${w - SLANT} ${h}H${SLANT}L0 ${h - SLANT}V${SLANT}Z`;
const OUTLINES = {
  attention: hexagon, pointwise: pill, reduction: funnel, scan: leaning, scatter: leaning, sort: leaning, loop: cut,
};

const HEIGHT = 34;
const CHARACTER = 7; // units
const BESIDE_TEXT = 42; // the badge before the text, and some room behind it
const BESIDE_HEADER = 24;

// The size of a box with two lines of text; of a frame, the least width, for both in its header.
export function boxSize({ label, sub, frame }) {
  if (frame) return { width: BESIDE_HEADER + CHARACTER * (label.length + sub.length), height: 0 };
  return { width: BESIDE_TEXT + CHARACTER * Math.max(label.length, sub.length), height: HEIGHT };
}

// `glyphs` by kind; `steps` are the shares at which the next colour begins.
export function boxElement(box, glyphs, steps) {
  const step = box.share === null ? "none" : steps.filter((least) => box.share >= least).length;
  const group = boxGroup(box, `node kind-${box.kind} share-${step}`);
  const top = (box.height - BADGE) / 2;
  group.append(
    element("path", { class: "box", d: (OUTLINES[box.kind] ?? rectangle)(box.width, box.height) }),
    element("rect", { class: "badge", x: 10, y: top, width: BADGE, height: BADGE }),
    text(glyphs[box.kind], { class: "glyph", x: 10 + BADGE / 2, y: top + 12 }),
    text(box.label, { x: 32, y: 15 }),
    text(box.sub, { x: 32, y: 28, class: "sub" }),
  );
  if (box.share !== null) {
    const width = Math.max(1, (box.width - 2 * SLANT) * box.share);
    group.append(element("rect", { class: "share", x: SLANT, y: box.height - 3, width, height: 3 }));
  }
  const title = element("title");
  title.textContent = box.tooltip;
  group.append(title);
  return group;
}

// An open module: the frame around what is in it; its header closes it.
export function frameElement(box) {
  const group = boxGroup(box, "frame");
  group.append(
    element("rect", { class: "box", width: box.width, height: box.height }),
    element("rect", { class: "header", width: box.width, height: HEADER }),
    text(box.label, { x: 6, y: 14 }),
    text(box.sub, { x: box.width - 6, y: 14, class: "sub" }),
  );
  return group;
}

// A wire leaves and enters rows straight, and bends between them.
export function wireElement({ source, last, points }) {
  const [[x0, y0], [x1, y1], [x2, y2], [x3, y3]] = points;
  const middle = (y1 + y2) / 2;
  const path = `M${x0} ${y0}V${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}${y3 === y2 ? "" : `L${x3} ${y3}`}`;
  const wire = element("path", { class: "edge", d: path });
  if (isDrawn(last)) wire.setAttribute("marker-end", "url(#arrow)");
  wire.dataset.source = source;
  return wire;
}

function boxGroup({ item, x, y }, name) {
  const group = element("g", { class: name, transform: `translate(${x} ${y})` });
  group.dataset.item = item;
  return group;
}

export function extent(points) {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  return { left: Math.min(...xs), top: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys) };
}

// What the drawing refers to: the heads of its arrows, and the ground of boxes without a time.
export function definitions() {
  const marker = element("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" });
  marker.append(element("path", { d: "M0 0L8 4L0 8z" }));
  const hatch = element("pattern", { id: "no-time", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  hatch.append(element("path", { d: "M0 0V7" }));
  const defs = element("defs");
  defs.append(marker, hatch);
  return defs;
}

function text(content, attributes) {
  const node = element("text", attributes);
  node.textContent = content;
  return node;
}

export function element(name, attributes = {}) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}
