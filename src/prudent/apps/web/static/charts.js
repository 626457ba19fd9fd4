// Pictures: distributions, the alpha curve, the frontier.

import { known } from "./state.js";

// A method without a colour of its own is grey.
export function colour(name) {
  const style = getComputedStyle(document.documentElement);
  return (style.getPropertyValue(`--${name}`) || style.getPropertyValue("--quiet")).trim();
}

export function layout(more = {}) {
  const axis = { gridcolor: colour("grid"), zeroline: false, linecolor: colour("edge"), automargin: true, title: { standoff: 6 } };
  const { xaxis, yaxis, ...rest } = more;
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("ink"), size: 12, family: getComputedStyle(document.body).fontFamily },
    margin: { l: 48, r: 14, t: 10, b: 38 }, showlegend: false, hovermode: "closest", dragmode: false,
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("edge"), font: { color: colour("ink") } },
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  };
}

// Below the picture where it is narrow, above it where there is room.
export function legend(place, inColumns = {}) {
  const narrow = place.clientWidth < 460, below = -66 / Math.max(place.clientHeight - 130, 60);
  return { showlegend: true, legend: { orientation: "h", x: 0, font: { size: narrow ? 11 : 12 }, ...(narrow ? { y: below, yanchor: "top", ...inColumns } : { y: 1.02, yanchor: "bottom" }) } };
}

const CONFIG = { displayModeBar: false, responsive: true, displaylogo: false };

export function draw(place, traces, shape) {
  if (place.classList.contains("waiting")) place.replaceChildren();
  place.classList.remove("waiting");
  return window.Plotly.react(place, traces, shape, CONFIG);
}

export function waiting(place, text) {
  if (place.classList.contains("js-plotly-plot")) window.Plotly.purge(place);
  place.classList.remove("js-plotly-plot"); // which not every version of Plotly takes away
  place.classList.add("waiting");
  place.textContent = text;
}

// Bars joined to bars of a larger width, if it is a multiple of theirs.
export function joined(bars, width) {
  const times = Math.round(width / bars.width);
  if (times < 2 || Math.abs(times * bars.width - width) > 1e-9 * width) return bars;
  const heights = new Map();
  bars.bar.forEach((place, i) => {
    const wide = Math.ceil(place / times);
    heights.set(wide, (heights.get(wide) ?? 0) + bars.p[i]);
  });
  return { ...bars, width, x: [...heights.keys()].map((place) => bars.end + place * width - (width - bars.step) / 2), p: [...heights.values()] };
}

// The axes that several distributions share: bars of one width, heights from 0 to the highest of all, costs from where
// less than a thousandth lies below to where as little lies beyond.
export function axesOf(answers) {
  const width = Math.max(...answers.map(({ bars }) => bars.width));
  let low = Infinity, high = -Infinity, top = 0;
  for (const { bars, own } of answers) {
    const { x, p, width: wide } = joined(bars, width);
    let below = 0, j = 0;
    while (j < x.length - 1 && below + p[j] < 1e-3) below += p[j++];
    low = Math.min(low, x[j] - wide / 2);
    let beyond = bars.missing, i = x.length - 1;
    while (i > 0 && beyond + p[i] < 1e-3) beyond += p[i--];
    high = Math.max(high, x[i] + wide / 2);
    top = Math.max(top, ...p);
    if (own.cvar !== null) high = Math.max(high, own.cvar);
  }
  const room = (high - low || 1) * 0.04;
  return { x: [low - room, high + room], y: [0, 1.22 * top], width };
}

export function distribution(place, answer, axes) {
  const { plan, own } = answer, [low, high] = axes.x; // of the model itself, also where the plan is for a set of models
  const bars = joined(answer.bars, axes.width);
  const tail = bars.x.map((x) => own.var !== null && x > own.var + 1e-9 * Math.abs(own.var));
  const shapes = [], annotations = [];
  const marks = [["expected", own.expected, "solid"], ["VaR", own.var, "dot"], ["CVaR", own.cvar, "dash"]].filter(([, x]) => x !== null);
  marks.sort((a, b) => a[1] - b[1]);
  marks.forEach(([name, x, dash], i) => {
    shapes.push({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1 - 0.08 * i, line: { color: colour("ink"), width: 1.6, dash } });
    const right = x > low + (1 - 0.03 * name.length) * (high - low); // where the name would be cut off
    annotations.push({ x, yref: "paper", y: 1.01 - 0.08 * i, text: name, showarrow: false, xanchor: right ? "right" : "left", xshift: right ? -3 : 3, yanchor: "top", font: { size: 12, color: colour("ink") }, bgcolor: colour("card"), borderpad: 0 });
  });
  const wide = Math.max(bars.width, (high - low) / 150);
  const trace = {
    type: "bar", x: bars.x, y: bars.p, width: bars.x.map(() => wide * 0.94),
    marker: { color: tail.map((t) => colour(t ? "tail" : plan.method)), line: { width: 0 } },
    hovertemplate: "cost %{x:.6g}<br>%{y:.3%}<extra></extra>",
  };
  place.setAttribute("aria-label", `Distribution of the total cost, method ${plan.method}: expected cost ${answer.shown.expected}, VaR ${answer.shown.var}, CVaR ${answer.shown.cvar}`);
  return draw(place, [trace], layout({
    shapes, annotations, bargap: 0, margin: { l: 44, r: 12, t: 8, b: 36 },
    xaxis: { range: axes.x, title: { text: bars.simulated ? "total cost of simulated runs" : "total cost", standoff: 4 }, nticks: 8 }, yaxis: { range: axes.y, tickformat: axes.y[1] < 0.05 ? ".1%" : ".0%", nticks: 6 },
  }));
}

export function curve(place, content, point) {
  const points = content.points, x = points.map((p) => p.alpha);
  const steps = content.sampled ? "linear" : "hv", marks = place.clientWidth < 460 ? [0.005, 0.02, 0.1, 0.3, 1] : [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
  const line = (name, key, shape, dash, tint) => ({
    type: "scatter", mode: "lines", name, x, y: points.map((p) => p[key]), line: { color: tint, dash, width: 2.4, shape }, hovertemplate: `alpha %{x:.3g}<br>${name} %{y:.6g}<extra></extra>`,
  });
  const [tail, begins, mean] = points[0].nominal ? ["worst-case CVaR", "budget", "worst-case expected cost"] : ["CVaR", "VaR", "expected cost"];
  const traces = [
    line(tail, "cvar", "linear", "solid", colour("exact")),
    line(begins, "var", steps, "dot", colour("tail")),
    line(mean, "expected", steps, "dash", colour("cvar-ev")),
  ];
  if (point) {
    traces.push({ type: "scatter", mode: "markers", x: [point.alpha, point.alpha, point.alpha], y: [point.cvar, point.var, point.expected], marker: { symbol: ["star", "circle", "square"], size: [15, 9, 9], color: [colour("exact"), colour("tail"), colour("cvar-ev")], line: { color: colour("ink"), width: 1.5 } }, hovertemplate: "now: alpha %{x:.3g}, %{y:.6g}<extra></extra>", showlegend: false });
  }
  const shapes = point ? [{ type: "line", x0: point.alpha, x1: point.alpha, yref: "paper", y0: 0, y1: 1, line: { color: colour("quiet"), width: 1, dash: "dot" } }] : [];
  return draw(place, traces, layout({
    shapes, ...legend(place), margin: { l: 48, r: 22, t: 26, b: 42 },
    xaxis: { type: "log", range: [Math.log10(Math.min(...x) / 1.06), Math.log10(1.06)], title: { text: "alpha: the worst fraction of runs" }, tickangle: 0, tickvals: marks, ticktext: marks.map((alpha) => `${100 * alpha}%`) },
    yaxis: { title: { text: "total cost" } },
  }));
}

// The alpha at which the curve is clicked, whether or not a line is there; null outside its axes.
export function alphaAt(place, { clientX, clientY }) {
  const area = place.querySelector(".nsewdrag")?.getBoundingClientRect();
  if (!area || clientX < area.left || clientX > area.right || clientY < area.top || clientY > area.bottom) return null;
  const [low, high] = place.layout.xaxis.range;
  return Math.min(10 ** (low + ((high - low) * (clientX - area.left)) / area.width), 1);
}

// An axis for values that differ by rounding alone is not a hair's breadth wide.
function axisOf(text, values) {
  const low = Math.min(...values), high = Math.max(...values), room = 1e-3 * Math.max(Math.abs(low), Math.abs(high));
  return { title: { text }, ...(high - low < room ? { range: [low - room, high + room] } : {}) };
}

export function frontier(place, content, answers) {
  const traces = [{
    type: "scatter", mode: "lines+markers", name: "best trade-offs", x: content.points.map((p) => p.expected), y: content.points.map((p) => p.cvar),
    line: { color: colour("quiet"), width: 2 }, marker: { size: 5, color: colour("quiet") }, hovertemplate: "expected cost %{x:.6g}<br>CVaR %{y:.6g}<extra>a best trade-off</extra>",
  }];
  for (const { name: method, title, symbol } of known.methods) {
    const answer = answers[method];
    if (!answer || answer.own.cvar === null || answer.plan.alpha !== content.alpha) continue;
    traces.push({
      type: "scatter", mode: "markers", name: title, x: [answer.own.expected], y: [answer.own.cvar],
      marker: { symbol, size: method === known.yardstick ? 17 : 11, color: colour(method), line: { color: colour("ink"), width: 1.5 } }, hovertemplate: `${title}<br>expected cost %{x:.6g}<br>CVaR %{y:.6g}<extra></extra>`,
    });
  }
  return draw(place, traces, layout({
    ...legend(place), margin: { l: 52, r: 14, t: 26, b: 42 },
    xaxis: axisOf("expected cost", traces.flatMap(({ x }) => x)), yaxis: axisOf("CVaR", traces.flatMap(({ y }) => y)),
  }));
}
