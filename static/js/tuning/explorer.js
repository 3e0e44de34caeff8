// The trials of a problem: its plots, and what is brushed in one of them. A brush is the table's
// filter, so that the address, the table, its TSV and every plot say the same.

import { drawn } from "../web/charts.js";
import { bound, condition, conditionsOf, withConditions, wordsOf } from "./filter-words.js";
import { drawPlot } from "./explorer-plots.js";
import { Parallel } from "./parallel.js";

let present = null;

// A section without plots has nothing to answer with; they may come (explorer-coming.js).
export function bindExplorer() {
  const section = document.querySelector("[data-explorer]:has([data-plot])");
  if (section && present?.section !== section) present = new Explorer(section);
  return present?.ready;
}

export function redraw() {
  present?.draw();
}

class Explorer {
  constructor(section) {
    this.section = section;
    this.plots = [...section.querySelectorAll("[data-plot]")];
    const place = section.querySelector("[data-parallel]");
    this.parallel = place && new Parallel(place, (changes) => this.choose(changes));
    this.ready = drawn(section, () => this.draw());
    document.addEventListener("htmx:afterSettle", () => this.isChanged() && this.draw());
    addEventListener("popstate", () => this.load(location.href));
    this.section.addEventListener("click", (event) => {
      if (event.target.closest("[data-brushed] button")) this.go("");
    });
    // What is filtered by is of one node: not of another that is chosen.
    section.querySelector("select[name=of]")?.addEventListener("change", (event) => {
      event.target.form.querySelectorAll("input[name=filter]").forEach((input) => input.remove());
    });
    new ResizeObserver(() => this.resized()).observe(section);
  }

  get filter() {
    return new URLSearchParams(location.search).get("filter") ?? "";
  }

  isChanged() {
    return textOf("explorer-data") !== this.read || textOf("explorer-matching") !== this.matchingRead;
  }

  resized() {
    if (this.data && this.parallel && this.width !== this.section.clientWidth) this.drawParallel();
  }

  draw() {
    this.read = textOf("explorer-data");
    if (!this.read) return;
    this.data = JSON.parse(this.read);
    this.matchingRead = textOf("explorer-matching");
    const rows = JSON.parse(this.matchingRead || "null");
    const kept = rows && new Set(rows);
    this.matched = kept && new Set(this.data.rows.map((row, trial) => (kept.has(row) ? trial : -1)).filter((trial) => trial >= 0));
    for (const element of this.plots) {
      const text = textOf(element.dataset.plot);
      element.hidden = !text;
      if (text) drawPlot(element, JSON.parse(text), this.data, this.matched, this);
    }
    this.drawParallel();
    this.tell();
  }

  drawParallel() {
    this.width = this.section.clientWidth;
    this.parallel?.draw(this.data, this.matched, this.filter);
  }

  tell() {
    const place = this.section.querySelector("[data-brushed]");
    this.hint ??= place.textContent;
    if (!this.matched) return place.replaceChildren(this.hint);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Show all";
    place.replaceChildren(`${this.matched.size} of ${this.data.rows.length} trials are in the filter `, code(this.filter), " ", button);
  }

  // Other conditions for columns; what a plot shows of one node of a run limits the table to it.
  choose(changes) {
    const { node } = this.data;
    const own = node ? { [condition(node).key]: [] } : {};
    const next = withConditions(this.filter, { ...changes, ...own });
    const isLimited = wordsOf(next).some(condition);
    this.go(node && isLimited ? `${node} ${next}` : next);
  }

  chooseValue(name, place) {
    const parameter = this.parameter(name);
    if (parameter) this.choose({ [parameter.key]: conditionsOf(parameter, [place]) });
  }

  choosePair(pairs) {
    const changes = pairs.map(([name, place]) => [this.parameter(name), place]);
    this.choose(Object.fromEntries(changes.map(([parameter, place]) => [parameter.key, conditionsOf(parameter, [place])])));
  }

  // A box in the plot of trials; of the rows of what has no time it takes what became of them.
  chooseBox(range, states) {
    const { axes, x } = this.data;
    const changes = { ...this.alongX(x, range.x), [axes.time]: [], [axes.state]: [] };
    if (range.y) changes[axes.time] = [`>=${bound(Math.min(...range.y), false)}`, `<=${bound(Math.max(...range.y), true)}`];
    if (range.y2) {
      const [low, high] = [Math.min(...range.y2), Math.max(...range.y2)];
      const inside = states.filter((_, row) => row >= low && row <= high);
      if (!inside.length) return;
      changes[axes.state] = [`==${inside.map((state) => state.replaceAll(" ", "_")).join("|")}`];
    }
    this.choose(changes);
  }

  alongX(x, range) {
    const [low, high] = [Math.min(...range), Math.max(...range)];
    const parameter = this.parameter(x);
    if (!parameter) return { [this.data.axes[x]]: [`>=${bound(Math.max(0, low), false)}`, `<=${bound(high, true)}`] };
    const places = parameter.values.map((_, place) => place).filter((place) => place + 0.3 >= low && place - 0.3 <= high);
    return { [parameter.key]: conditionsOf(parameter, places) };
  }

  parameter(name) {
    return this.data.parameters.find((one) => one.name === name);
  }

  open(trial) {
    location.assign(this.data.url.replace("*", this.data.kernels[trial]));
  }

  go(filter) {
    const address = new URL(location.href);
    address.searchParams.delete("start");
    if (filter) address.searchParams.set("filter", filter);
    else address.searchParams.delete("filter");
    if (address.href === location.href) return;
    history.pushState(null, "", address);
    this.load(address);
  }

  // The table and what it keeps, anew; the answer of a run that is open has more, which asks for
  // this address from now on.
  async load(address) {
    this.request?.abort();
    this.request = new AbortController();
    this.section.setAttribute("aria-busy", "true");
    let text;
    try {
      const answer = await fetch(address, { headers: { "HX-Request": "true" }, signal: this.request.signal });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      text = await answer.text();
    } catch (error) {
      if (error.name !== "AbortError") this.section.querySelector("[data-brushed]").textContent = `The table could not be filtered: ${error.message}.`;
      return;
    }
    const found = new DOMParser().parseFromString(text, "text/html");
    // What an open run asks for just now is of the address before: it would undo what was chosen.
    document.getElementById("live")?.addEventListener("htmx:beforeOnLoad", (event) => event.preventDefault());
    for (const id of ["live", "explorer-linked"]) replace(id, found);
    this.follow();
    this.section.removeAttribute("aria-busy");
    this.draw();
    document.dispatchEvent(new CustomEvent("live-replaced"));
  }

  // Forms and the twin's address keep what is filtered by.
  follow() {
    for (const form of this.section.querySelectorAll("form")) {
      form.querySelectorAll("input[name=filter]").forEach((input) => input.remove());
      if (!this.filter) continue;
      const input = document.createElement("input");
      Object.assign(input, { type: "hidden", name: "filter", value: this.filter });
      form.append(input);
    }
    for (const link of document.querySelectorAll('link[type="application/json"], .page-foot a[href*=".json"]')) {
      link.setAttribute("href", link.getAttribute("href").split("?")[0] + location.search);
    }
  }
}

export function replace(id, found) {
  const [old, fresh] = [document.getElementById(id), found.getElementById(id)];
  if (!old || !fresh) return;
  fresh.removeAttribute("hx-swap-oob");
  old.replaceWith(document.adoptNode(fresh));
  globalThis.htmx?.process(fresh);
}

function textOf(id) {
  return document.getElementById(id)?.textContent ?? "";
}

function code(text) {
  const element = document.createElement("code");
  element.textContent = text;
  return element;
}
