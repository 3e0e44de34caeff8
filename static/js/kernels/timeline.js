// The timeline of waves: Tab reaches it once, arrows go from span to span and from wave to wave;
// what is pointed at or focused is said below the picture, Enter goes to its instruction's line.

export function bindTimelines() {
  bindAll();
  document.addEventListener("htmx:afterSettle", bindAll); // a section was loaded
}

function bindAll() {
  for (const picture of document.querySelectorAll("[data-timeline]:not([data-bound])")) {
    picture.dataset.bound = "true";
    bind(picture);
  }
}

function bind(picture) {
  const lanes = [...picture.querySelectorAll("[data-lane]")].map((lane) => [...lane.querySelectorAll("a")]);
  const said = document.getElementById("timeline-said");
  const first = lanes.find((lane) => lane.length)?.[0];
  first?.setAttribute("tabindex", "0");
  const say = (event) => {
    const title = event.target.closest?.("a, rect")?.querySelector("title");
    if (title && said) said.textContent = title.textContent;
  };
  picture.addEventListener("mouseover", say);
  picture.addEventListener("focusin", say);
  picture.addEventListener("keydown", (event) => {
    const next = neighbour(lanes, event.target.closest("a"), event.key);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    picture.querySelector('a[tabindex="0"]')?.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

function neighbour(lanes, here, key) {
  const row = lanes.findIndex((lane) => lane.includes(here));
  if (row < 0) return null;
  const lane = lanes[row];
  const at = lane.indexOf(here);
  if (key === "ArrowRight") return lane[at + 1];
  if (key === "ArrowLeft") return lane[at - 1];
  if (key === "Home") return lane[0];
  if (key === "End") return lane[lane.length - 1];
  if (key === "ArrowDown" || key === "ArrowUp") return nearest(lanes[row + (key === "ArrowDown" ? 1 : -1)], here);
  return null;
}

// The span of another wave that begins next to this one.
function nearest(lane, here) {
  const place = (link) => Number(link.querySelector("rect").getAttribute("x"));
  const x = place(here);
  return lane?.reduce((best, one) => (!best || Math.abs(place(one) - x) < Math.abs(place(best) - x) ? one : best), null);
}
