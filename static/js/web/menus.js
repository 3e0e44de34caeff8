// The menus of the bar open and close without a script (details, one at a time by their name). This
// closes them like other menus: by Escape, by a click outside, when the focus leaves.

export function bindMenus() {
  const bar = document.querySelector("[data-menus]");
  if (!bar) return;
  const open = () => bar.querySelector("details[open]");
  const close = (menu) => menu?.removeAttribute("open");
  document.addEventListener("click", (event) => bar.contains(event.target) || close(open()));
  bar.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !bar.contains(event.relatedTarget)) close(open());
  });
  bar.addEventListener("keydown", (event) => {
    const menu = open();
    if (event.key === "Escape" && menu) {
      close(menu);
      menu.querySelector("summary").focus();
      event.stopPropagation();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      step(event, event.key === "ArrowDown" ? 1 : -1);
    }
  });
}

// The arrows go through the title and the links of the menu, and open it.
function step(event, by) {
  const menu = event.target.closest("details");
  if (!menu) return;
  event.preventDefault();
  menu.open = true;
  const stops = [menu.querySelector("summary"), ...menu.querySelectorAll("a")];
  stops[(stops.indexOf(event.target.closest("summary, a")) + by + stops.length) % stops.length].focus();
}
