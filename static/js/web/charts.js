// Draws a figure that the server made, in the colours of the theme.

const SERIES = [1, 2, 3, 4, 5, 6, 7];
const CONFIG = { displayModeBar: false, responsive: true };
const NARROW = 600; // pixels, below which a legend beside the figure would leave no room for it
const BELOW = { orientation: "h", x: 0, y: -0.28, yanchor: "top" };

export function bindCharts() {
  for (const chart of document.querySelectorAll("[data-chart]")) {
    inTime(chart, () => {
      const draw = () => drawChart(chart);
      drawn(draw);
      // A live page brings new figures along with what it swaps.
      document.addEventListener("htmx:afterSettle", () => globalThis.Plotly && draw());
    });
  }
}

// At once where somebody sees it; else when there is nothing better to do, since a drawing takes
// long enough to hold up the rest of the page.
function inTime(chart, draw) {
  const box = chart.getBoundingClientRect();
  if (box.top < innerHeight && box.bottom > 0) draw();
  else (globalThis.requestIdleCallback ?? setTimeout)(draw);
}

// Draws as soon as Plotly is there, and again when the theme changes.
export function drawn(draw) {
  if (globalThis.Plotly) draw();
  else addEventListener("load", draw, { once: true });
  document.addEventListener("theme", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

function drawChart(element) {
  const figure = JSON.parse(document.getElementById(element.dataset.chart).textContent);
  const layout = { ...figure.layout, ...frame(element) };
  if (element.clientWidth < NARROW) layout.legend = { ...figure.layout.legend, ...BELOW };
  for (const axis of ["xaxis", "yaxis"]) layout[axis] = { ...figure.layout[axis], ...lines(element) };
  globalThis.Plotly.react(element, figure.data, layout, CONFIG);
  element.removeAllListeners?.("plotly_click");
  element.on("plotly_click", ({ points: [point] }) => {
    if (point.customdata) location.assign(point.customdata);
  });
}

export function frame(element) {
  return {
    autosize: true,
    colorway: SERIES.map((n) => colour(element, `--series-${n}`)),
    font: { family: getComputedStyle(element).fontFamily, size: 12, color: colour(element, "--text") },
    paper_bgcolor: colour(element, "--bg"),
    plot_bgcolor: colour(element, "--bg"),
    margin: { l: 64, r: 16, t: 8, b: 44 },
    hoverlabel: { bgcolor: colour(element, "--surface-2"), font: { color: colour(element, "--text") } },
  };
}

export function lines(element) {
  const line = colour(element, "--line");
  return { gridcolor: line, linecolor: colour(element, "--line-strong"), zerolinecolor: line, automargin: true };
}

// A token is an expression (light-dark()); the browser resolves it where it is used as a colour.
export function colour(element, token) {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  element.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
