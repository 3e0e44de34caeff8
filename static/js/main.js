// Every page: theme, keys, rows, filters, times. The rest is loaded where a page asks for it.

import { bindKeys } from "./keys.js";
import { bindRows } from "./rows.js";
import { bindTheme } from "./theme.js";
import { bindTimes } from "./times.js";

bindTheme();
bindKeys();
bindRows();
bindTimes();

if (document.querySelector("[data-chart]")) import("./charts.js").then((m) => m.bindCharts());
if (document.querySelector("[data-panes]")) import("./codepanes.js").then((m) => m.bindPanes());
if (document.querySelector("[data-graph]")) import("./graph.js").then((m) => m.bindGraph());
if (document.querySelector("[data-drop]")) import("./drop.js").then((m) => m.bindDrop());
