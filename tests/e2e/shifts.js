// What moved on a page without anybody's doing, as the browser counts it.
const moved = [];

const side = (box) =>
  `${Math.round(box.x)},${Math.round(box.y)} ${Math.round(box.width)}x${Math.round(box.height)}`;

const named = ({ node, previousRect, currentRect }) => {
  const at = node?.nodeType === Node.ELEMENT_NODE ? node : node?.parentElement;
  const name = at ? [at.localName, ...at.classList].join(".") : "what is gone";
  const text = at?.textContent.trim().slice(0, 30).replace(/\s+/g, " ") ?? "";
  return `${name} "${text}" ${side(previousRect)} to ${side(currentRect)}`;
};

const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (!entry.hadRecentInput) moved.push(...entry.sources.map(named));
  }
});
observer.observe({ type: "layout-shift", buffered: true });

const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); });

// Two frames later, all that moved until now is counted.
globalThis.shifts = async () => {
  await frame();
  await frame();
  return moved;
};

// Once all of the page that needs no script is there; what moved until then, while it came in
// parts, is the benchmark's to count.
globalThis.painted = async () => {
  await new Promise((resolve) => {
    new PerformanceObserver((list) => {
      if (list.getEntriesByName("first-contentful-paint").length) resolve();
    }).observe({ type: "paint", buffered: true });
  });
  while (document.readyState === "loading") await frame();
  await frame();
  await frame();
  observer.takeRecords();
  moved.length = 0;
};
