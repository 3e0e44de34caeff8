// Every page: theme, keys, rows, filters, times. The rest is loaded where a page asks for it.

import { bindKeys } from "./keys.js";
import { bindRows } from "./rows.js";
import { bindTheme } from "./theme.js";
import { bindTimes } from "./times.js";

bindTheme();
bindKeys();
bindRows();
bindTimes();

// Where the bar is wider than the screen, the page that this is may lie beyond its edge.
const bar = document.querySelector(".topbar nav");
const here = bar.querySelector("[aria-current]");
if (here) bar.scrollLeft = here.offsetLeft + here.offsetWidth - bar.offsetLeft - bar.clientWidth;

// Parts that only some pages have, by what asks for them in the page.
const PARTS = {
  "[data-chart]": () => import("./charts.js").then((part) => part.bindCharts()),
  "[data-history]": () => import("./history.js").then((part) => part.bindHistories()),
  "[data-panes]": () => import("./codepanes.js").then((part) => part.bindPanes()),
  "[data-graph]": () => import("./graph.js").then((part) => part.bindGraph()),
  "[data-triage]": () => import("./triage.js").then((part) => part.bindTriage()),
  "[data-timeline]": () => import("./timeline.js").then((part) => part.bindTimelines()),
  "[data-drop]": () => import("./drop.js").then((part) => part.bindDrop()),
};
const wanted = Object.keys(PARTS).filter((selector) => document.querySelector(selector));
await Promise.all(wanted.map((selector) => PARTS[selector]()));
document.documentElement.dataset.ready = "true"; // everything answers now
