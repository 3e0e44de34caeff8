// Parallel coordinates as SVG: an axis a parameter, one of time; ranges by dragging, values by keys.

import { conditionsOf, isLimited, placesIn, bound, wordsOf, condition } from "./filter-words.js";

const SVG = "http://www.w3.org/2000/svg";
const [TOP, BOTTOM, SIDE, HEIGHT, LEAST] = [40, 30, 26, 300, 96];
const GOLDEN = 0.618034;
const FIFTHS = 5;
const MOST_LABELS = 16;

export class Parallel {
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;
    this.at = [0, 0]; // the axis and the tick that keys are at
    this.bind();
  }

  draw(data, matched, filter) {
    Object.assign(this, { data, filter });
    const hadFocus = this.element.contains(document.activeElement);
    this.axes = [...data.parameters.map((one) => this.parameterAxis(one)), this.timeAxis()];
    this.width = Math.max(this.element.clientWidth, LEAST * this.axes.length);
    const step = (this.width - 2 * SIDE - 40) / Math.max(1, this.axes.length - 1);
    this.axes.forEach((axis, n) => { axis.x = SIDE + n * step; });
    this.svg = make("svg", { width: this.width, height: HEIGHT, class: "parallel", role: "group", "aria-label": "Parameters of each trial" });
    this.svg.append(...this.lines(matched), ...this.axes.map((axis, n) => this.axisElement(axis, n)));
    this.element.replaceChildren(this.svg);
    this.rove(hadFocus);
  }

  parameterAxis(parameter) {
    const last = parameter.values.length - 1;
    const gap = (HEIGHT - TOP - BOTTOM) / Math.max(1, last);
    const y = (place) => HEIGHT - BOTTOM - place * gap;
    const chosen = new Set(placesIn(this.filter, parameter));
    const counts = parameter.values.map(() => 0);
    for (const code of parameter.codes) counts[code] += 1;
    const jitter = Math.min(8, gap / 4);
    return {
      title: parameter.name,
      ticks: parameter.values.map((value, place) => ({
        y: y(place),
        text: value,
        label: `${parameter.name} ${value}, ${counts[place]} trials`,
        isOn: isLimited(this.filter, parameter) && chosen.has(place),
        pick: () => this.toggle(parameter, place),
      })),
      place: (trial) => y(parameter.codes[trial]) + jitter * (2 * ((trial * GOLDEN) % 1) - 1),
      range: (low, high) => {
        const places = parameter.values.map((_, place) => place).filter((place) => y(place) >= low && y(place) <= high);
        if (places.length) this.choose({ [parameter.key]: conditionsOf(parameter, places) });
      },
      clear: () => this.choose({ [parameter.key]: [] }),
      step: Math.ceil(parameter.values.length / MOST_LABELS),
    };
  }

  toggle(parameter, place) {
    const before = isLimited(this.filter, parameter) ? new Set(placesIn(this.filter, parameter)) : new Set();
    if (!before.delete(place)) before.add(place);
    this.choose({ [parameter.key]: conditionsOf(parameter, [...before]) });
  }

  timeAxis() {
    const { times, axes, title } = this.data;
    const known = times.filter((time) => time !== null).sort((a, b) => a - b);
    const [least, most] = [known[0] ?? 1, known.at(-1) ?? 1];
    const isLog = least > 0 && most / least > 10;
    const scale = (value) => (isLog ? Math.log(value) : value);
    const span = scale(most) - scale(least) || 1;
    const room = HEIGHT - TOP - BOTTOM - 20;
    const y = (time) => (time === null ? HEIGHT - BOTTOM : HEIGHT - BOTTOM - 20 - ((scale(time) - scale(least)) / span) * room);
    const value = (at) => {
      const share = (HEIGHT - BOTTOM - 20 - at) / room;
      return isLog ? Math.exp(scale(least) + share * span) : least + share * span;
    };
    const ends = Array.from({ length: FIFTHS }, (_, n) => known[Math.ceil(((n + 1) * known.length) / FIFTHS) - 1]);
    this.ends = ends;
    const limits = wordsOf(this.filter).map(condition).filter((one) => one?.key === axes.time);
    const apart = [];
    for (const time of [...new Set(ends)]) {
      if (!apart.length || Math.abs(y(apart.at(-1)) - y(time)) > 12) apart.push(time);
    }
    return {
      title: `${title}${isLog ? " (log)" : ""}`,
      isLast: true,
      ticks: apart.map((time) => {
        const limit = bound(time, true);
        const isOn = limits.some((one) => one.compare === "<=" && one.operand === limit);
        return {
          y: y(time),
          text: time.toPrecision(4).replace(/\.?0+$/, ""),
          label: `at most ${limit} µs`,
          isOn,
          pick: () => this.choose({ [axes.time]: isOn ? [] : [`<=${limit}`] }),
        };
      }),
      notes: times.includes(null) ? [{ y: HEIGHT - BOTTOM, text: "no time" }] : [],
      place: (trial) => y(times[trial]) + (times[trial] === null ? 6 * ((trial * GOLDEN) % 1) - 3 : 0),
      range: (low, high) => this.choose({ [axes.time]: [`>=${bound(value(high), false)}`, `<=${bound(value(low), true)}`] }),
      clear: () => this.choose({ [axes.time]: [] }),
      step: 1,
    };
  }

  // One path for each fifth of the times, and one for all that the filter leaves out.
  lines(matched) {
    const paths = new Map();
    const { times, tried } = this.data;
    times.forEach((time, trial) => {
      if (time === null && !tried[trial]) return;
      const fifth = time === null ? "none" : this.ends.findIndex((end) => time <= end);
      const name = matched && !matched.has(trial) ? "left-out" : `fifth-${fifth}`;
      const points = this.axes.map((axis) => `${axis.x.toFixed(0)},${axis.place(trial).toFixed(1)}`);
      paths.set(name, `${paths.get(name) ?? ""}M${points.join("L")}`);
    });
    const order = ["left-out", "fifth-none", "fifth-4", "fifth-3", "fifth-2", "fifth-1", "fifth-0"];
    return order.filter((name) => paths.has(name)).map((name) => make("path", { d: paths.get(name), class: `trial ${name}` }));
  }

  axisElement(axis, n) {
    const group = make("g", { class: "axis", transform: `translate(${axis.x.toFixed(0)} 0)` });
    const title = make("text", { y: 16 + (n % 2) * 13, class: "title", "text-anchor": axis.isLast ? "end" : n ? "middle" : "start", x: axis.isLast ? 40 : n ? 0 : -SIDE + 4 });
    title.textContent = axis.title;
    const bar = make("rect", { x: -12, y: TOP - 8, width: 24, height: HEIGHT - TOP - BOTTOM + 16, class: "drag", "data-axis": n });
    group.append(title, make("line", { y1: TOP, y2: HEIGHT - BOTTOM }), bar);
    axis.ticks.forEach((tick, at) => {
      const isShown = at % axis.step === 0 || tick.isOn;
      const element = make("g", { class: "tick", role: "checkbox", "aria-checked": tick.isOn, "aria-label": tick.label, tabindex: -1, "data-axis": n, "data-tick": at, transform: `translate(0 ${tick.y.toFixed(1)})` });
      const text = make("text", { x: 8, y: 4 });
      text.textContent = isShown ? tick.text : "";
      element.append(make("circle", { r: tick.isOn ? 4 : 2.5 }), text);
      group.append(element);
    });
    for (const note of axis.notes ?? []) {
      const text = make("text", { x: 8, y: note.y + 4, class: "note" });
      text.textContent = note.text;
      group.append(text);
    }
    return group;
  }

  bind() {
    this.element.addEventListener("click", (event) => {
      const tick = event.target.closest?.(".tick");
      if (tick) this.goTo(Number(tick.dataset.axis), Number(tick.dataset.tick), true);
    });
    this.element.addEventListener("pointerdown", (event) => this.drag(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  goTo(axis, tick, isPicked) {
    this.at = [axis, tick];
    this.rove(true);
    if (isPicked) this.axes[axis].ticks[tick].pick();
  }

  drag(event) {
    const bar = event.target.closest?.(".drag");
    if (!bar || event.button) return;
    const axis = this.axes[Number(bar.dataset.axis)];
    const top = this.svg.getBoundingClientRect().top;
    const from = event.clientY - top;
    const box = make("rect", { x: axis.x - 8, width: 16, class: "chosen" });
    this.svg.append(box);
    const ends = (moved) => [Math.min(from, moved.clientY - top), Math.max(from, moved.clientY - top)];
    const move = (moved) => {
      const [low, high] = ends(moved);
      box.setAttribute("y", low);
      box.setAttribute("height", high - low);
    };
    const up = (moved) => {
      removeEventListener("pointermove", move);
      box.remove();
      const [low, high] = ends(moved);
      if (high - low > 4) axis.range(low, high);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up, { once: true });
    event.preventDefault();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [axis, tick] = this.at;
    const actions = {
      ArrowLeft: () => this.walk(axis - 1, tick),
      ArrowRight: () => this.walk(axis + 1, tick),
      ArrowUp: () => this.walk(axis, tick + 1),
      ArrowDown: () => this.walk(axis, tick - 1),
      Home: () => this.walk(axis, 0),
      End: () => this.walk(axis, Infinity),
      Enter: () => this.axes[axis].ticks[tick].pick(),
      " ": () => this.axes[axis].ticks[tick].pick(),
      Delete: () => this.axes[axis].clear(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  walk(axis, tick) {
    const to = Math.min(this.axes.length - 1, Math.max(0, axis));
    this.goTo(to, Math.min(this.axes[to].ticks.length - 1, Math.max(0, tick)), false);
  }

  // One of the ticks is a stop of the Tab key.
  rove(isFocused) {
    const [axis, tick] = [Math.min(this.at[0], this.axes.length - 1), this.at[1]];
    this.at = [axis, Math.min(tick, this.axes[axis].ticks.length - 1)];
    for (const each of this.svg.querySelectorAll(".tick")) each.setAttribute("tabindex", "-1");
    const one = this.svg.querySelector(`.tick[data-axis="${this.at[0]}"][data-tick="${this.at[1]}"]`);
    one?.setAttribute("tabindex", "0");
    if (isFocused) one?.focus({ preventScroll: true });
  }
}

function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
