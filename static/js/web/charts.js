// Draws a figure that the server made, in the colours of the theme.

const SERIES = [1, 2, 3, 4, 5, 6, 7];
const CONFIG = { displayModeBar: false, responsive: true };
const NEAR = "300px"; // above and below the screen
const NARROW = 600; // pixels, below which a legend beside the figure would leave no room for it
const BELOW = { orientation: "h", x: 0, y: -0.28, yanchor: "top" };

export function bindCharts() {
  const charts = [...document.querySelectorAll("[data-chart]")];
  return Promise.all(charts.map((chart) => {
    const draw = () => drawChart(chart);
    // A live page brings new figures along with what it swaps.
    return drawn(chart, draw, () => document.addEventListener("htmx:afterSettle", draw));
  }));
}

// Draws once the element is on the screen or near it, and again when the theme changes. Plotly is
// half a megabyte, so it is loaded then. Resolves when the element is drawn, or at once
// if it is elsewhere.
export function drawn(element, draw, then = () => {}) {
  return new Promise((resolve, reject) => {
    const near = new IntersectionObserver(async (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return resolve();
      near.disconnect();
      try {
        await plotly();
        draw();
        document.addEventListener("theme", draw);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
        then();
        resolve();
      } catch (error) {
        reject(error);
      }
    }, { rootMargin: NEAR });
    near.observe(element);
  });
}

let loading = null;

function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error("the chart library could not be loaded")));
    script.src = document.querySelector("[data-plotly]").dataset.plotly;
    document.head.append(script);
  });
  return loading;
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
