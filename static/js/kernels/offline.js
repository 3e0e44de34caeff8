// The script of a kernel's page that was downloaded as one file: source and listing side by side,
// without the site. Hovering marks what belongs together, a click pins it and scrolls the other.
"use strict";

(() => {
  const panes = [...document.querySelectorAll("[data-pane]")];
  const lines = new Map(); // source line → lines in both panes
  for (const line of document.querySelectorAll(".l[data-s]")) {
    if (!lines.has(line.dataset.s)) lines.set(line.dataset.s, []);
    lines.get(line.dataset.s).push(line);
  }
  const marked = { on: "", pin: "" };

  function mark(key, css) {
    lines.get(marked[css])?.forEach((line) => line.classList.remove(css));
    lines.get(key)?.forEach((line) => line.classList.add(css));
    marked[css] = key;
  }

  function pin(key, from) {
    mark(key === marked.pin ? "" : key, "pin");
    if (!marked.pin) return;
    for (const pane of panes.filter((one) => one !== from)) {
      const first = lines.get(key).find((line) => pane.contains(line));
      if (first) pane.scrollTop += first.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
    }
  }

  for (const pane of panes) {
    pane.addEventListener("mouseover", (event) => mark(event.target.closest(".l")?.dataset.s ?? "", "on"));
    pane.addEventListener("mouseleave", () => mark("", "on"));
    pane.addEventListener("click", (event) => {
      const line = event.target.closest(".l[data-s]");
      if (line && !event.target.closest("a")) pin(line.dataset.s, pane);
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") mark("", "pin");
  });
  document.querySelector("[data-directives]")?.addEventListener("change", ({ target }) => {
    document.querySelector("[data-pane=listing]").classList.toggle("no-directives", !target.checked);
  });
})();
