// Source and listing side by side: hovering a line marks what belongs to it in the other pane,
// a click pins it and scrolls the other pane to the match. A pin is part of the address (#L12).

export function bindPanes() {
  const root = document.querySelector("[data-panes]");
  const panes = [...root.querySelectorAll("[data-pane]")];
  const lines = new Map(); // source line → elements in both panes
  for (const line of root.querySelectorAll(".l[data-s]")) {
    if (!lines.has(line.dataset.s)) lines.set(line.dataset.s, []);
    lines.get(line.dataset.s).push(line);
  }
  let hovered = "";
  let pinned = "";
  const mark = (key, css, on) => lines.get(key)?.forEach((line) => line.classList.toggle(css, on));

  const hover = (key) => {
    if (key === hovered) return;
    mark(hovered, "on", false);
    hovered = key;
    mark(hovered, "on", true);
  };
  const pin = (key, from) => {
    mark(pinned, "pin", false);
    pinned = key === pinned && from ? "" : key;
    mark(pinned, "pin", true);
    if (!pinned) return;
    for (const pane of panes) {
      const match = lines.get(pinned)?.find((line) => pane.contains(line));
      if (match && pane !== from) reveal(pane, match);
    }
    if (from) history.replaceState(null, "", `#L${pinned}`);
  };

  for (const pane of panes) {
    pane.addEventListener("mouseover", (event) => hover(event.target.closest(".l")?.dataset.s ?? ""));
    pane.addEventListener("mouseleave", () => hover(""));
    pane.addEventListener("click", (event) => {
      const line = event.target.closest(".l[data-s]");
      if (line && !event.target.closest("a")) pin(line.dataset.s, pane);
    });
    pane.addEventListener("keydown", (event) => walk(event, pane, hover, pin, () => hovered));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") pin("");
  });
  document.addEventListener("next-peak", () => nextPeak(root));
  root.querySelector("[data-directives]")?.addEventListener("change", (event) => {
    root.querySelector("[data-pane=listing]").classList.toggle("no-directives", !event.target.checked);
  });
  const followHash = () => {
    const line = location.hash && root.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`);
    if (!line) return;
    reveal(line.closest("[data-pane]"), line);
    if (line.dataset.s) pin(line.dataset.s);
  };
  addEventListener("hashchange", followHash);
  followHash();
}

function reveal(pane, line) {
  const target = line.getBoundingClientRect();
  const frame = pane.getBoundingClientRect();
  pane.scrollTop += target.top - frame.top - frame.height / 3;
}

// Down and up go from mapped line to mapped line, Enter pins.
function walk(event, pane, hover, pin, hovered) {
  if (event.key === "Enter" && hovered() && !event.target.closest("a")) return pin(hovered(), pane);
  if (!["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const keys = [...new Set([...pane.querySelectorAll(".l[data-s]")].map((line) => line.dataset.s))];
  const at = keys.indexOf(hovered());
  const next = keys[Math.min(keys.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)))];
  if (!next) return;
  event.preventDefault();
  hover(next);
  reveal(pane, pane.querySelector(`.l[data-s="${next}"]`));
}

function nextPeak(root) {
  const pane = root.querySelector("[data-pane=listing]");
  const peaks = [...(pane?.querySelectorAll(".live.peak") ?? [])].map((cell) => cell.parentElement);
  if (!peaks.length) return;
  const at = peaks.indexOf(root.querySelector(".l.at-peak"));
  root.querySelector(".l.at-peak")?.classList.remove("at-peak", "on");
  const next = peaks[(at + 1) % peaks.length];
  next.classList.add("at-peak", "on");
  reveal(pane, next);
}
