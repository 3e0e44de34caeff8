// Every page: theme, keys, rows, filters, times. The rest is loaded where a page asks for it.

import { bindControls } from "./controls.js";
import { bindKeys } from "./keys.js";
import { bindLogin } from "../accounts/login.js";
import { bindMenus } from "./menus.js";
import { bindPalette } from "./palette.js";
import { bindRoving } from "./roving.js";
import { bindRows } from "./rows.js";
import { bindTheme } from "./theme.js";
import { bindTimes } from "./times.js";

bindControls();
bindTheme();
bindKeys();
bindLogin();
bindMenus();
bindPalette();
bindRoving(); // before rows: what a live page brings takes part first
bindRows();
bindTimes();

// What scrolls and holds nothing that takes the focus takes it itself, so that keys scroll it.
function reachScrolling() {
  for (const area of document.querySelectorAll(".scroll")) {
    if (!area.querySelector("a[href], button, input, select, textarea, summary, [tabindex]")) area.tabIndex = 0;
  }
}
reachScrolling();
document.addEventListener("htmx:afterSettle", reachScrolling);

// Parts that only some pages have, by what asks for them in the page.
const PARTS = {
  "[data-chart]": () => import("./charts.js").then((part) => part.bindCharts()),
  "[data-explorer]": () => import("../tuning/explorer.js").then((part) => part.bindExplorer()),
  "#explorer-place": () => import("../tuning/explorer-coming.js").then((part) => part.bindComing()),
  "[data-history]": () => import("../tracking/history.js").then((part) => part.bindHistories()),
  "[data-panes]": () => import("../kernels/codepanes.js").then((part) => part.bindPanes()),
  "[data-fold]": () => import("../kernels/folds.js").then((part) => part.bindFolds()),
  "[data-graph]": () => import("../graphs/graph.js").then((part) => part.bindGraph()),
  "[data-triage]": () => import("../tracking/triage.js").then((part) => part.bindTriage()),
  "[data-timeline]": () => import("../kernels/timeline.js").then((part) => part.bindTimelines()),
  "[data-copy-tsv]": () => import("./copy.js").then((part) => part.bindCopies()),
  "[data-live], [hx-get]": () => import("./live.js").then((part) => part.bindLive()),
  "form[data-import]": () => import("../site/import.js").then((part) => part.bindImport()),
  "[data-drop]": () => import("../graphs/drop.js").then((part) => part.bindDrop()),
};
const bound = new Set();
function bindParts() {
  const wanted = Object.keys(PARTS).filter((selector) => !bound.has(selector) && document.querySelector(selector));
  wanted.forEach((selector) => bound.add(selector));
  return Promise.all(wanted.map((selector) => PARTS[selector]()));
}
document.addEventListener("htmx:afterSettle", bindParts); // a section that was loaded may be the first with a part
await bindParts();
document.documentElement.dataset.ready = "true"; // everything answers now
