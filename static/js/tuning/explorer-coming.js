// The trials on the page of a run that is open. Their plots come once there is something to plot,
// and the last figures once the run is over: what is asked for every few seconds has those of a
// page that shows plots already, and nothing of them after the end.

import { bindExplorer, redraw, replace } from "./explorer.js";

const PARTS = ["explorer-what", "explorer-states", "explorer-facts", "explorer-tables"];
const AGAIN_MS = 2000;

export function bindComing() {
  let wasOpen = isOpen(document);
  let isAsking = false;
  const look = async () => {
    const isOver = wasOpen && !isOpen(document);
    const isFirst = !hasPlots(document) && document.getElementById("explorer-data");
    if (isAsking || !(isOver || isFirst)) return;
    wasOpen = isOpen(document);
    isAsking = true;
    await bring(isOver);
    isAsking = false;
  };
  document.addEventListener("htmx:afterSettle", look);
  document.addEventListener("live-replaced", look); // what is brushed brings the rest along
}

// The page as it is now; of one that is over until the server has it so (pages are kept a while).
async function bring(isOver) {
  const fresh = await page();
  const isWhole = fresh && !(isOver && isOpen(fresh));
  if (isWhole) show(fresh);
  else if (isOver) setTimeout(() => bring(isOver), AGAIN_MS);
}

function show(fresh) {
  if (!hasPlots(document)) {
    replace("explorer-place", fresh);
    bindExplorer();
    return;
  }
  for (const id of PARTS) replace(id, fresh);
  redraw();
}

async function page() {
  try {
    const answer = await fetch(location.pathname + location.search, { cache: "no-cache" });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null; // the server does not answer: the page says so where it looks for news
  }
}

function isOpen(where) {
  return where.querySelector("#live[hx-get]") !== null;
}

function hasPlots(where) {
  return where.querySelector("[data-explorer] [data-plot]") !== null;
}
