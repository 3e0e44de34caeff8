// The explorer's figures by Plotly, in the colours of the theme, with what is brushed marked.

import { colour, frame, lines } from "../web/charts.js";

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false };
const NARROW = 600;
const FADED = 0.13;
const COLUMN = 34; // pixels that a box and its count need
const [AROUND, LETTER] = [96, 7.5]; // pixels: beside a plot's axis, of a letter of its title
const MOST_DOTS = 400; // of brushed trials over the boxes

export function drawPlot(element, figure, data, matched, explorer) {
  if (!globalThis.Plotly) return; // it comes when the plots are near the screen
  const kind = element.dataset.plot;
  const token = (name) => colour(element, name);
  const layout = { ...figure.layout, ...frame(element) };
  for (const name of Object.keys(figure.layout).filter((each) => /^[xy]axis/.test(each))) {
    layout[name] = { ...lines(element), ...figure.layout[name] };
    if (name.startsWith("x")) layout[name].title = inLines(layout[name].title, element.clientWidth);
  }
  layout.dragmode = kind === "explorer-trials" && element.clientWidth >= NARROW ? "select" : false;
  layout.hovermode = "closest";
  layout.legend = { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" };
  layout.margin = { ...layout.margin, t: kind === "explorer-grid" ? 8 : 40 };
  layout.newselection = { line: { color: token("--text"), width: 1, dash: "dot" } };
  layout.selections = [];
  const traces = figure.data.map((trace) => styled(trace, token, matched));
  if (kind === "explorer-slices") widen(element, layout, traces, data, matched, token);
  if (kind === "explorer-grid" && matched) traces.push(chosenCells(figure, data, matched, token));
  globalThis.Plotly.react(element, traces, layout, CONFIG);
  listen(element, figure, explorer);
}

// An axis' title in as many lines as fit below a narrow plot: Plotly cuts what is longer.
function inLines(title, width) {
  if (!title?.text) return title;
  const most = Math.max(16, Math.floor((width - AROUND) / LETTER));
  const rows = [""];
  for (const word of title.text.split(" ")) {
    const longer = rows.at(-1) ? `${rows.at(-1)} ${word}` : word;
    if (longer.length <= most) rows[rows.length - 1] = longer;
    else rows.push(word);
  }
  return { ...title, text: rows.filter(Boolean).join("<br>") };
}

function styled(trace, token, matched) {
  const one = { ...trace };
  const meta = String(trace.meta ?? "");
  if (meta === "best") one.line = { ...trace.line, color: token("--text") };
  if (meta.startsWith("failed:")) {
    const tint = token(/untried|waiting|rejected/.test(meta) ? "--text-2" : "--bad");
    one.marker = { ...trace.marker, color: tint, line: { ...trace.marker.line, color: tint } };
    one.textfont = { color: token("--text-2"), size: 11 };
  }
  if (meta.startsWith("slice:")) Object.assign(one, { line: { width: 1.2, color: token("--series-1") }, fillcolor: token("--surface-2") });
  if (meta.startsWith("count:")) one.textfont = { color: token("--text-2"), size: 11 };
  if (trace.type === "heatmap") {
    one.colorscale = [[0, token("--series-1")], [1, token("--surface-2")]];
  }
  if (matched && Array.isArray(trace.customdata) && typeof trace.customdata[0] === "number") {
    one.selectedpoints = trace.customdata.map((trial, n) => (matched.has(trial) ? n : -1)).filter((n) => n >= 0);
    one.unselected = { marker: { opacity: FADED } };
    one.selected = { marker: { opacity: 1 } };
    if (one.error_y) one.error_y = { ...one.error_y, color: "rgba(128,128,128,0.25)" };
  }
  return one;
}

// Boxes keep their width: where they have no room the plot is wider than its frame, which scrolls.
function widen(element, layout, traces, data, matched, token) {
  const room = element.parentElement.clientWidth;
  const needed = layout.meta.columns * COLUMN + 90;
  element.style.width = needed > room ? `${needed}px` : "";
  const axes = new Map(traces.filter((trace) => trace.type === "box").map((trace) => [trace.meta.slice(6), trace.xaxis]));
  if (!matched) return;
  const shown = [...matched].filter((trial) => data.times[trial] !== null).slice(0, MOST_DOTS);
  for (const parameter of data.parameters.filter((one) => axes.has(one.name))) {
    traces.push({
      type: "scatter",
      mode: "markers",
      x: shown.map((trial) => parameter.codes[trial] + 0.4 * ((trial * 0.618034) % 1) - 0.2),
      y: shown.map((trial) => data.times[trial]),
      xaxis: axes.get(parameter.name),
      marker: { size: 4, color: token("--series-2") },
      hoverinfo: "skip",
    });
  }
}

function chosenCells(figure, data, matched, token) {
  const byName = (name) => data.parameters.find((one) => one.name === name);
  const [across, down] = [byName(figure.layout.meta.across), byName(figure.layout.meta.down)];
  const cells = new Map();
  for (const trial of matched) {
    const key = `${across.codes[trial]},${down.codes[trial]}`;
    cells.set(key, (cells.get(key) ?? 0) + 1);
  }
  const places = [...cells.keys()].map((key) => key.split(",").map(Number));
  return {
    type: "scatter",
    mode: "markers",
    x: places.map(([x]) => x - 0.4),
    y: places.map(([, y]) => y + 0.32),
    marker: { size: 8, symbol: "circle", color: token("--series-2"), line: { width: 1, color: token("--bg") } },
    hovertext: [...cells.values()].map((count) => `${count} of the filtered trials`),
    hovertemplate: "%{hovertext}<extra></extra>",
    showlegend: false,
  };
}

function listen(element, figure, explorer) {
  for (const name of ["plotly_click", "plotly_selected", "plotly_doubleclick"]) element.removeAllListeners?.(name);
  element.on("plotly_click", ({ points: [point] }) => clicked(element.dataset.plot, point, figure, explorer));
  if (element.dataset.plot !== "explorer-trials") return;
  element.on("plotly_selected", (event) => {
    if (event?.range) explorer.chooseBox(event.range, figure.layout.yaxis2?.ticktext ?? []);
  });
  element.on("plotly_doubleclick", () => explorer.go(""));
}

function clicked(kind, point, figure, explorer) {
  if (kind === "explorer-trials") {
    if (typeof point.customdata === "number") explorer.open(point.customdata);
    return;
  }
  if (kind === "explorer-slices") {
    const [, name] = String(point.data.meta ?? "").split(/^(?:slice|count):/);
    if (name) explorer.chooseValue(name, Math.round(point.x));
    return;
  }
  const { across, down } = figure.layout.meta;
  explorer.choosePair([[across, Math.round(point.x)], [down, Math.round(point.y)]]);
}
