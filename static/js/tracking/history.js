// The chart of a history: fetched as columns, drawn by Plotly, its state kept in the address.

import { colour, drawn, frame, lines } from "../web/charts.js";
import { axisOf, figureOf } from "./history-figure.js";

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset" };
const NARROW = 600;

export function bindHistories() {
  for (const element of document.querySelectorAll("[data-history]")) new History(element);
}

class History {
  constructor(element) {
    this.element = element;
    this.page = element.closest(".history");
    this.isWhole = !element.dataset.mark; // of a change's page only the neighbourhood
    this.load();
  }

  async load() {
    try {
      const answer = await fetch(this.element.dataset.history, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      this.chart = await answer.json();
    } catch (error) {
      this.element.textContent = `The points could not be loaded: ${error.message}. Reload the page.`;
      return;
    }
    this.bind();
    this.tellEnvironment();
    drawn(this.element, () => this.draw());
  }

  bind() {
    for (const group of document.querySelectorAll("[data-history-set]")) {
      group.addEventListener("click", (event) => {
        const link = event.target.closest("a[data-value]");
        if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.set({ [group.dataset.historySet]: link.dataset.value, ...(group.dataset.historySet === "x" && NO_ZOOM) });
        this.draw();
      });
    }
    document.querySelector("[data-history-reset]")?.addEventListener("click", () => {
      this.set(NO_ZOOM);
      this.draw();
    });
    document.querySelector("[data-history-png]")?.addEventListener("click", () => this.save());
  }

  get state() {
    const given = new URLSearchParams(location.search);
    const units = new Set(this.chart.series.map((one) => one.unit));
    const scale = given.get("scale") ?? "linear";
    return {
      x: ["time", "revision"].includes(given.get("x")) ? given.get("x") : this.chart.axis,
      scale: units.size > 1 ? "relative" : ["log", "relative"].includes(scale) ? scale : "linear",
      isForced: units.size > 1 && scale !== "relative",
      range: given.get("from") && given.get("to") ? [given.get("from"), given.get("to")] : null,
    };
  }

  set(changes) {
    if (!this.isWhole) return;
    const address = new URL(location.href);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    history.replaceState(null, "", address);
  }

  draw() {
    if (!globalThis.Plotly) return;
    const state = this.state;
    const colours = (token) => colour(this.element, token);
    const figure = figureOf(this.chart, state, colours, this.element.dataset.mark);
    const layout = { ...frame(this.element), ...figure.layout };
    layout.xaxis = { ...lines(this.element), ...figure.layout.xaxis };
    layout.yaxis = { ...lines(this.element), ...figure.layout.yaxis };
    if (this.isWhole && this.element.clientWidth >= NARROW) layout.xaxis.rangeslider = this.slider(colours);
    if (this.element.clientWidth < NARROW) layout.legend = { orientation: "h", x: 0, y: -0.2, yanchor: "top" };
    this.element.replaceChildren(...[...this.element.children].filter((child) => child.matches(".plot-container")));
    globalThis.Plotly.react(this.element, figure.data, layout, CONFIG);
    this.listen();
    this.tell(state);
  }

  slider(colours) {
    return { visible: true, thickness: 0.09, bgcolor: colours("--surface"), bordercolor: colours("--line"), borderwidth: 1 };
  }

  listen() {
    for (const name of ["plotly_click", "plotly_relayout"]) this.element.removeAllListeners?.(name);
    this.element.on("plotly_click", ({ points: [point] }) => {
      if (typeof point.customdata === "string") location.assign(point.customdata);
      else if (point.customdata) this.open(...point.customdata);
    });
    this.element.on("plotly_relayout", (changes) => {
      if (changes["xaxis.autorange"]) {
        this.set(NO_ZOOM);
        return this.label();
      }
      const range = changes["xaxis.range"] ?? [changes["xaxis.range[0]"], changes["xaxis.range[1]"]];
      if (range[0] === undefined) return;
      this.set({ from: short(range[0]), to: short(range[1]) });
      this.label(range);
    });
  }

  // The revisions in sight have labels.
  label(range = null) {
    const { tickvals, ticktext } = axisOf(this.chart, this.state).ticks(range);
    if (tickvals) globalThis.Plotly.relayout(this.element, { "xaxis.tickvals": tickvals, "xaxis.ticktext": ticktext });
  }

  // Under a change's triangle lies a point: whichever of the two is nearer, the change is opened.
  open(series, point) {
    const found = this.chart.series.find((one) => one.id === series).changes.find((each) => each.datum === point);
    if (found && this.element.dataset.mark !== String(found.id)) location.assign(found.url);
    else this.show(series, point);
  }

  // A point belongs to the series that it is drawn of, which may be one beside the page's own.
  async show(series, point) {
    const answer = await fetch(`/series/${series}/points/${point}`, { headers: { "HX-Request": "true" } });
    const place = this.page.querySelector("[data-history-point]");
    const text = answer.ok ? await answer.text() : "<p>The point could not be loaded.</p>";
    place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.children);
  }

  // Plotly's own way draws a blob: image, which the policy forbids; its SVG as data: may be drawn.
  async save() {
    const svg = await globalThis.Plotly.toImage(this.element, { format: "svg" });
    const picture = new Image();
    picture.src = svg;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * picture.naturalWidth, 2 * picture.naturalHeight];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    const link = document.createElement("a");
    const [one] = this.chart.series;
    link.download = `${one.name.replace(/[^A-Za-z0-9_.-]+/g, "-").slice(0, 80)}.png`;
    link.href = URL.createObjectURL(await new Promise((done) => canvas.toBlob(done, "image/png")));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  tell(state) {
    if (!this.isWhole) return;
    for (const group of document.querySelectorAll("[data-history-set]")) {
      for (const link of group.querySelectorAll("a")) {
        const isOn = link.dataset.value === state[group.dataset.historySet];
        if (isOn) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
    const parts = this.chart.series
      .filter((one) => one.columns.id.length < one.points)
      .map((one) => `series ${one.id}: the latest ${one.columns.id.length} of ${one.points} points`);
    const below = this.chart.series.flatMap((one) => one.columns.value).filter((value) => value <= 0).length;
    if (below && state.scale === "log") parts.push(`${below} at or below 0: not shown on a logarithmic scale`);
    if (state.isForced) parts.push("units differ: values are relative to the first level of each series");
    document.querySelector("[data-history-shown]").textContent = parts.join("; ");
  }

  tellEnvironment() {
    const section = document.querySelector("[data-history-environment]");
    const marks = this.chart.series.flatMap((one) => one.environment.map((mark) => ({ ...mark, one })));
    if (!section || !marks.length) return;
    const several = this.chart.series.length > 1;
    marks.sort((a, b) => b.ms - a.ms);
    section.querySelector("ul").replaceChildren(
      ...marks.map(({ ms, what, one }) => {
        const row = document.createElement("li");
        const time = document.createElement("time");
        const moment = new Date(this.chart.epoch + ms).toISOString();
        time.dateTime = moment;
        time.textContent = `${moment.slice(0, 10)} ${moment.slice(11, 16)} UTC`;
        row.append(time, `${several ? `series ${one.id}: ` : ""}${what.join("; ")}`);
        return row;
      }),
    );
    section.hidden = false;
  }
}

const NO_ZOOM = { from: null, to: null };

function short(end) {
  return typeof end === "number" ? String(Math.round(end * 100) / 100) : String(end).slice(0, 19);
}
