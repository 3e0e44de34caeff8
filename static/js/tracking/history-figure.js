// Columns as Plotly's traces: band, points, levels, changes, marks of the environment.

const MANY = 1200; // points from which on markers would only hide each other
const MOST_LINES = 80; // of the environment
const TICKS = 10; // labels of revisions
const WIDTH = 0.6; // of a revision with several points, in steps
const THIN = 24; // changes from which on their ratios have no room

export function figureOf(chart, state, colours, marked) {
  const x = axisOf(chart, state);
  const tokens = (number) => colours(`--series-${(number % 7) + 1}`);
  const several = chart.series.length > 1;
  const data = [];
  const shapes = [];
  chart.series.forEach((one, number) => {
    const y = valuesOf(one, state);
    const plain = { one, number, x, y, several, colour: tokens(number) };
    data.push(...band(plain), points(chart, plain), ...levels(plain), ...changes(plain, colours, marked));
    data.push(...branchPoints(chart, plain, colours), ...setAsidePoints(chart, plain, colours));
    data.push(...environment(chart, plain, colours, shapes), ...remarks(chart, plain, colours, shapes));
  });
  return { data, layout: layoutOf(chart, state, x, shapes) };
}

export function axisOf(chart, state) {
  return state.x === "revision" ? byRevision(chart) : byTime(chart);
}

function byTime(chart) {
  const at = (ms) => new Date(chart.epoch + ms).toISOString().slice(0, 23);
  return { of: (one) => one.columns.ms.map(at), at: (one, ms) => at(ms), ticks: () => ({}), axis: { type: "date" } };
}

// Revisions in the order of their first point, with equal steps; the points of one side by side.
function byRevision(chart) {
  const first = new Map();
  for (const { revision, ms } of chart.series.flatMap((one) => [one.columns, one.branches, one.set_aside])) {
    revision.forEach((each, n) => first.set(each, Math.min(first.get(each) ?? Infinity, ms[n])));
  }
  const ordered = [...first.keys()].sort((a, b) => first.get(a) - first.get(b));
  const place = new Map(ordered.map((revision, n) => [revision, n]));
  const of = (one) => {
    const counts = new Map();
    for (const revision of one.columns.revision) counts.set(revision, (counts.get(revision) ?? 0) + 1);
    const seen = new Map();
    return one.columns.revision.map((revision) => {
      const [n, count] = [seen.get(revision) ?? 0, counts.get(revision)];
      seen.set(revision, n + 1);
      return place.get(revision) + ((n + 0.5) / count - 0.5) * WIDTH;
    });
  };
  const at = (one, ms) => {
    const n = one.columns.ms.findIndex((each) => each >= ms);
    return of(one).at(n < 0 ? -1 : n);
  };
  const ticks = (range) => {
    const [from, to] = range ? range.map(Number) : [0, ordered.length - 1];
    const step = Math.max(1, Math.ceil((to - from) / TICKS));
    const shown = ordered.map((_, n) => n).filter((n) => n % step === 0);
    return { tickvals: shown, ticktext: shown.map((n) => clipped(chart.revisions[ordered[n]], 14)) };
  };
  return { of, at, ticks, axis: { type: "linear", title: { text: "revision" }, zeroline: false } };
}

function valuesOf(one, state) {
  const factor = state.scale === "relative" ? 1 / (one.first_level || 1) : one.factor;
  return (value) => (value === null ? null : value * factor);
}

function band({ one, x, y, colour }) {
  const { low, high } = one.columns;
  if (!low.some((value) => value !== null)) return [];
  const plain = { x: x.of(one), mode: "lines", line: { width: 0, color: colour }, hoverinfo: "skip", showlegend: false };
  const group = { legendgroup: `${one.id}` };
  return [
    { ...plain, ...group, y: low.map(y) },
    { ...plain, ...group, y: high.map(y), fill: "tonexty", fillcolor: faded(colour, 0.22) },
  ];
}

function points(chart, { one, x, y, colour, several, number }) {
  const { columns } = one;
  const begins = new Map(one.changes.map((each) => [each.datum, changeText(each)]));
  const change = (n) => begins.get(columns.id[n]);
  const label = several ? `${one.id}: ${clipped(one.problem, 40)}, ${clipped(one.device, 24)}` : "point";
  return {
    name: plainText(label),
    legendgroup: `${one.id}`,
    x: x.of(one),
    y: columns.value.map(y),
    mode: columns.id.length > MANY ? "lines" : columns.id.length < 2 ? "markers" : "lines+markers",
    line: { width: columns.id.length > MANY ? 1 : 0.8, color: colour },
    marker: { size: columns.id.length > 300 ? 4 : 6, color: colour, symbol: symbols(columns, number) },
    text: columns.value.map((value, n) => [hover(chart, one, n), change(n)].filter(Boolean).join("<br>")),
    customdata: columns.id.map((id) => [one.id, id]),
    hovertemplate: "%{text}<extra></extra>",
  };
}

// A point that stands for its day is open.
function symbols({ day_points }, number) {
  return day_points.length ? day_points.map((count) => (count ? number + 100 : number)) : number;
}

function branchPoints(chart, plain, colours) {
  const style = { name: "branches", colour: plain.several ? plain.colour : colours("--series-2"), symbol: 100 + plain.number };
  return pointsBeside(chart, plain, plain.one.branches, style, (n) => `branch ${branchName(chart, plain.one.branches, n)}`);
}

// Of machines with an alert: shown, and not compared.
function setAsidePoints(chart, plain, colours) {
  const style = { name: "set aside", colour: colours("--text-2"), symbol: "x-thin-open" };
  return pointsBeside(chart, plain, plain.one.set_aside, style, () => "set aside with its machine, not compared");
}

// Beside the history: in a colour of their own, with their intervals as bars.
function pointsBeside(chart, { one, x, y }, columns, { name, colour, symbol }, note) {
  if (!columns.id.length) return [];
  const shown = { ...one, columns };
  const distance = (bounds) => columns.value.map((value, n) => (bounds[n] === null ? 0 : Math.abs(y(bounds[n]) - y(value))));
  return [
    {
      name,
      legendgroup: `${one.id}`,
      showlegend: false,
      x: x.of(shown),
      y: columns.value.map(y),
      error_y: { array: distance(columns.high), arrayminus: distance(columns.low), width: 0, thickness: 1, color: faded(colour, 0.5) },
      mode: "markers",
      marker: { size: 6, color: colour, symbol },
      text: columns.value.map((_, n) => `${hover(chart, shown, n)}<br>${note(n)}`),
      customdata: columns.id.map((id) => [one.id, id]),
      hovertemplate: "%{text}<extra></extra>",
    },
  ];
}

function branchName(chart, columns, n) {
  return plainText(clipped(chart.branches[columns.revision[n]], 60));
}

function hover(chart, one, n) {
  const { value, low, high, revision, origin, ms } = one.columns;
  const show = (each) => `${digits(each * one.factor)}`;
  const day = one.columns.day_points[n];
  const bounds = day ? "range of the day" : one.columns.n[n] < chart.least_samples ? "range" : "95% interval";
  const interval = low[n] === null ? "interval unknown" : `${bounds} ${show(low[n])} – ${show(high[n])}`;
  const kind = one.generated ? "generated, not measured" : one.emulated ? "emulated" : chart.origins[origin[n]];
  return [
    `${show(value[n])} ${plainText(one.shown_unit)} (${interval}), ${day ? `median of ${day} points` : `n = ${one.columns.n[n]}`}`,
    `${plainText(clipped(chart.revisions[revision[n]], 40))} ${plainText(clipped(chart.branches[revision[n]], 20))}`,
    plainText(chart.subjects[revision[n]]),
    `${moment(chart, ms[n])}, ${kind}`,
  ]
    .filter(Boolean)
    .join("<br>");
}

function levels({ one, x, y, colour }) {
  if (one.levels.length === 0 || !one.columns.ms.length) return [];
  const end = one.columns.ms.at(-1);
  const first = one.columns.ms[0];
  const known = one.levels.filter(([ms], n) => ms >= first || n === one.levels.length - 1);
  const steps = [...known, [end, known.at(-1)[1]]];
  return [
    {
      name: "level",
      legendgroup: `${one.id}`,
      showlegend: false,
      x: steps.map(([ms]) => x.at(one, ms)),
      y: steps.map(([, level]) => y(level)),
      mode: "lines",
      line: { shape: "hv", width: 2.5, color: faded(colour, 0.65) },
      hoverinfo: "skip",
    },
  ];
}

function changes({ one, x, y }, colours, marked) {
  const shown = one.changes.filter((each) => one.columns.ms.length && each.ms >= one.columns.ms[0]);
  if (!shown.length) return [];
  const index = new Map(one.columns.id.map((id, n) => [id, n]));
  const isNamed = shown.length <= THIN;
  const value = (each) => one.columns.value[index.get(each.datum)] ?? null;
  const kept = shown.filter((each) => value(each) !== null);
  const of = (each) => (each.withdrawn || !each.shown ? colours("--text-2") : colours(each.worse ? "--bad" : "--ok"));
  return [
    {
      name: "change",
      showlegend: false,
      x: kept.map((each) => x.at(one, each.ms)),
      y: kept.map((each) => y(value(each))),
      mode: isNamed ? "markers+text" : "markers",
      text: kept.map((each) => `×${each.ratio.toFixed(2)}`),
      textposition: kept.map((each) => (each.ratio > 1 ? "top center" : "bottom center")),
      textfont: { size: 11, weight: 700, color: kept.map(of) },
      marker: {
        size: kept.map((each) => (String(each.id) === marked ? 18 : 13)),
        symbol: kept.map((each) => `triangle-${each.ratio > 1 ? "up" : "down"}${each.withdrawn ? "-open" : ""}`),
        color: kept.map(of),
        line: { width: 1.5, color: colours("--bg") },
      },
      hovertext: kept.map((each) => changeText(each)),
      hovertemplate: "%{hovertext}<extra></extra>",
      customdata: kept.map((each) => each.url),
      cliponaxis: false,
    },
  ];
}

// As scheduler/track/evidence.py: cause_text.
function causeText(cause) {
  return cause === "cannot be said" ? "unknown" : cause || "cause not analyzed yet";
}

function changeText(each) {
  const parts = [`${each.text}, from ${plainText(clipped(each.revision, 40))}`];
  parts.push(each.withdrawn ? "withdrawn: later points no longer show it" : plainText(causeText(each.cause)));
  parts.push(...each.differs.map((text) => plainText(clipped(text, 90))));
  if (each.alert) parts.push(`alert ${each.alert}: ${plainText(each.alert_state)}`);
  return parts.join("<br>");
}

// Marks stand at the foot of the chart, on an axis of their own from 0 to 1.
function environment(chart, { one, x }, colours, shapes) {
  const marks = one.environment.slice(-MOST_LINES);
  return marksTrace(chart, one, x, marks, (mark) => mark.what, {
    name: "environment",
    height: 0.03,
    symbol: "diamond",
    colour: colours("--series-4"),
    dash: "dot",
    shapes,
  });
}

function remarks(chart, { one, x }, colours, shapes) {
  const by = (each) => (each.by ? ` (${each.by})` : "");
  const baselines = one.baselines.map((each) => ({
    ms: each.at - chart.epoch,
    what: [`baseline: ${each.reason}${by(each)}`],
  }));
  const notes = one.notes.map((each) => ({
    ms: each.at - chart.epoch,
    what: [`${each.alert ? `alert ${each.alert}` : "point"}: ${each.text}${by(each)}`],
  }));
  const style = { height: 0.97, colour: colours("--select"), shapes };
  return [
    ...marksTrace(chart, one, x, baselines, (mark) => mark.what, { ...style, name: "baseline", symbol: "square", dash: "solid" }),
    ...marksTrace(chart, one, x, notes, (mark) => mark.what, { ...style, name: "note", symbol: "star", shapes: [], height: 0.92 }),
  ];
}

function marksTrace(chart, one, x, found, textOf, style) {
  const [first, last] = [one.columns.ms[0], one.columns.ms.at(-1)];
  const marks = found.filter((mark) => mark.ms >= first && mark.ms <= last);
  if (!marks.length) return [];
  for (const mark of marks) {
    const at = x.at(one, mark.ms);
    style.shapes.push({
      type: "line",
      xref: "x",
      yref: "paper",
      x0: at,
      x1: at,
      y0: 0,
      y1: 1,
      layer: "below",
      line: { width: 1, dash: style.dash, color: style.colour },
    });
  }
  return [
    {
      name: style.name,
      showlegend: false,
      x: marks.map((mark) => x.at(one, mark.ms)),
      y: marks.map(() => style.height),
      yaxis: "y2",
      mode: "markers",
      marker: { symbol: style.symbol, size: 9, color: style.colour },
      hovertext: marks.map((mark) =>
        [`${style.name}, ${moment(chart, mark.ms)}`, ...textOf(mark).map((text) => plainText(clipped(text, 100)))].join("<br>"),
      ),
      hovertemplate: "%{hovertext}<extra></extra>",
    },
  ];
}

function layoutOf(chart, state, x, shapes) {
  const [one] = chart.series;
  const units = [...new Set(chart.series.map((each) => each.shown_unit))];
  const kinds = chart.series.some((each) => each.generated) ? " (generated)" : "";
  const emulated = chart.series.some((each) => each.emulated) ? " (emulated)" : "";
  const title = state.scale === "relative" ? "of the first level" : `${plainText(units.join(", "))}`;
  return {
    xaxis: { ...x.axis, ...x.ticks(state.range), ...(state.range ? { range: numbers(state.range, state.x) } : { autorange: true }) },
    yaxis: {
      title: { text: `${title}${kinds}${emulated}` },
      type: state.scale === "log" ? "log" : "linear",
      fixedrange: false,
      ...(state.scale === "log" && { minor: {} }),
    },
    yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    shapes,
    dragmode: "zoom",
    hovermode: "closest",
    showlegend: chart.series.length > 1,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    margin: { l: 64, r: 16, t: chart.series.length > 1 ? 8 + 22 * chart.series.length : 20, b: 44 },
    uirevision: `${one?.id}-${state.x}-${state.scale}-${state.range}`,
  };
}

function numbers(range, x) {
  return x === "revision" ? range.map(Number) : range;
}

function moment(chart, ms) {
  const text = new Date(chart.epoch + ms).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;
}

export function digits(value) {
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e9)) return value.toPrecision(4);
  const before = size < 1 ? 0 : Math.floor(Math.log10(size)) + 1;
  return value.toFixed(Math.max(0, 4 - Math.max(before, 0)));
}

function clipped(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

// Plotly reads a little HTML in texts; names are of strangers. (Of ours, too, only <br> can be used: for others
// it writes inline styles, which the policy forbids.)
function plainText(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function faded(colour, share) {
  const parts = colour.match(/[\d.]+/g) ?? ["128", "128", "128"];
  return `rgba(${parts.slice(0, 3).join(",")},${share})`;
}
