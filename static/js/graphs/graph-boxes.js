// The shapes of a graph's drawing. A kind is told by its outline, its glyph and its colour; a share of
// the time by its step of colour, its bar and its figure.

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

// `glyphs` by kind; `steps` are the shares at which the next colour begins.
export function nodeElement(item, glyphs, steps) {
  const step = item.share === null ? "none" : steps.filter((least) => item.share >= least).length;
  const box = element("g", {
    class: `node kind-${item.kind} share-${step}`, transform: `translate(${item.x} ${item.y})`,
  });
  box.dataset.id = item.id;
  const top = (item.height - BADGE) / 2;
  box.append(
    element("path", { class: "box", d: (OUTLINES[item.kind] ?? rectangle)(item.width, item.height) }),
    element("rect", { class: "badge", x: 10, y: top, width: BADGE, height: BADGE }),
    text(glyphs[item.kind], { class: "glyph", x: 10 + BADGE / 2, y: top + 12 }),
    text(item.label, { x: 32, y: 15 }),
    text(item.sub, { x: 32, y: 28, class: "sub" }),
  );
  if (item.share !== null) {
    const width = Math.max(1, (item.width - 2 * SLANT) * item.share);
    box.append(element("rect", { class: "share", x: SLANT, y: item.height - 3, width, height: 3 }));
  }
  const title = element("title");
  title.textContent = item.members.map((node) => `${node.name}  ${node.op}  ${node.source}`).slice(0, 12).join("\n");
  box.append(title);
  return box;
}

export function edgeElement({ from, to, points }) {
  const path = points.map(({ x, y }, at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const edge = element("path", { class: "edge", d: path, "marker-end": "url(#arrow)" });
  edge.dataset.from = from;
  edge.dataset.to = to;
  return edge;
}

export function extent(points) {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  return { left: Math.min(...xs), top: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys) };
}

// What the drawing refers to: the heads of its arrows, and the ground of boxes without a time.
export function definitions() {
  const marker = element("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
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
