// The listing's columns, by what fits: as long as the longest instruction would be cut, the least
// important column is left out. Where no width was chosen yet, the listing gets what it needs first.

const MOST = 58; // percent of the width that a listing may take by itself

export function bindColumns(root, split) {
  const pane = root.querySelector("[data-widest]");
  if (!pane) return;
  const all = pane.dataset.columns.split(" ").filter(Boolean);
  const widest = Number(pane.dataset.widest);
  const fit = () => {
    const shown = [...all];
    const cut = () => room(pane) < widest + 2;
    pane.dataset.columns = shown.join(" ");
    while (shown.length > 1 && cut()) {
      shown.shift();
      pane.dataset.columns = shown.join(" ");
    }
  };
  if (split && !split.isChosen()) {
    const missing = Math.max(0, (widest + 2 - room(pane)) * character(pane));
    const share = (100 * (pane.clientWidth + missing)) / root.clientWidth;
    if (missing && root.clientWidth > 2 * MOST) split.put(100 - Math.min(MOST, share), false);
  }
  fit();
  new ResizeObserver(fit).observe(pane);
}

// How many characters of an instruction are in sight.
function room(pane) {
  const head = pane.querySelector(".cols > .t");
  return (pane.clientWidth - (head.offsetLeft - pane.querySelector(".cols").offsetLeft)) / character(pane);
}

const widths = new WeakMap();

function character(pane) {
  if (!widths.has(pane)) {
    const ruler = document.createElement("span");
    ruler.textContent = "0".repeat(100);
    ruler.style.cssText = "position: absolute; visibility: hidden";
    pane.append(ruler);
    widths.set(pane, ruler.getBoundingClientRect().width / 100);
    ruler.remove();
  }
  return widths.get(pane);
}
