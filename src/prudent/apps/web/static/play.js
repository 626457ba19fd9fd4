// One run, step by step.

import { colour, draw, layout, legend, waiting } from "./charts.js";
import { tableOf } from "./maps.js";
import { domainChosen } from "./state.js";

let run = null, at = 0, names = [], places = null;

export function begin(content, where) {
  run = content; at = 0; names = domainChosen()?.parts ?? []; places = where;
  show();
}

export function clear(where, text) {
  run = null;
  waiting(where.story, text);
  for (const button of ["step", "all", "again"]) where[button].disabled = true;
  where.now.replaceChildren();
  where.log.replaceChildren();
}

export function step(by) {
  if (!run) return;
  at = Math.max(0, Math.min(run.steps.length, at + by));
  show();
}

export function restart() { step(-Infinity); }
export function toTheEnd() { step(Infinity); }

function named(text) {
  const parts = /^\((.*)\)$/.exec(text)?.[1].split(", ");
  return parts?.length === names.length ? parts.map((part, i) => `${names[i]} ${part}`).join(", ") : text;
}

function amount(value) { return value === null ? "unbounded" : Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 4 }); }

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function luckOf(one) {
  if (one.luck === null) return element("span", "");
  const near = Math.abs(one.luck) < 1e-9 * Math.max(1, Math.abs(one.outlook));
  if (near) return element("span", "as expected");
  const good = one.luck > 0;
  return element("span", `${good ? "▲ lucky" : "▼ unlucky"}, ${amount(Math.abs(one.luck))} ${good ? "better" : "worse"} than expected`, good ? "luck-good" : "luck-bad");
}

function show() {
  const { steps } = run, over = at >= steps.length;
  places.step.disabled = places.all.disabled = over;
  places.again.disabled = at === 0;
  places.log.replaceChildren(...steps.slice(0, at).map((one, i) => logLine(one, i)));
  places.log.scrollTop = places.log.scrollHeight;
  const parts = over ? ending() : present(steps[at]);
  places.now.replaceChildren(...parts);
  const row = places.now.querySelector(".played"), box = row?.closest(".scroll");
  if (box) { // what is played is in sight, and no row is cut at the top
    const first = [...row.parentElement.rows].find((each) => each.offsetTop >= row.offsetTop - box.clientHeight / 2);
    const table = row.closest("table"), wanted = first.offsetTop - table.tHead.offsetHeight;
    const lacking = box.scrollHeight > box.clientHeight ? wanted + box.clientHeight - box.scrollHeight : 0;
    if (lacking > 0) table.style.marginBottom = `${lacking}px`;
    box.scrollTop = wanted;
  }
  drawStory();
}

function logLine(one, i) {
  const happened = one.outcomes.find((o) => o.happened), line = element("li");
  if (i === run.safe_from) line.append(element("span", "From here the tail is safe: the plan minimises the expected cost. ", "turn"));
  line.append(`${named(one.state)}: `, element("b", one.action), ` → ${named(happened.to)} at cost ${amount(happened.cost)} (probability ${percent(happened.p)}), `, luckOf(one));
  return line;
}

function percent(p) { return `${Number((100 * p).toPrecision(3))}%`; }

function present(one) {
  const parts = [];
  const head = element("h3");
  head.append(`Step ${at + 1}, ${named(one.state)}`);
  parts.push(head);
  if (run.safe_from !== null && at >= run.safe_from) {
    parts.push(element("p", at === run.safe_from ? "★ From this step on the tail is safe: no run need exceed the budget, so the plan minimises the expected cost." : "The tail is safe: the plan minimises the expected cost.", "safe"));
  }
  const paid = element("p");
  paid.append("Cost so far ", element("b", amount(one.spent)));
  if (one.budget !== null) paid.append(", remaining budget ", element("b", amount(one.budget)));
  paid.append(", expected total cost ", element("b", amount(one.outlook)));
  parts.push(paid);
  if (one.budget !== null) parts.push(meterOf(one.budget));
  const chosen = element("p");
  chosen.append("The plan plays ", element("span", one.action, "chosen"), `: ${one.summary}.`);
  parts.push(chosen);
  const worst = one.options.some((o) => o.nominal_expected !== null) ? ", worst case" : "";
  const table = tableOf(["action", `excess over the budget${worst}`, `expected cost to come${worst}`, "why"], one.options.map((o) => [o.action, amountOr(o.excess), amountOr(o.expected), o.why]), [1, 2]);
  one.options.forEach((o, i) => { if (o.action === one.action && o.at === one.state) table.tBodies[0].rows[i].className = "played"; });
  const box = element("div", undefined, "scroll");
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Actions compared");
  box.append(table);
  parts.push(box);
  return parts;
}

function meterOf(left) {
  const meter = element("div", undefined, left > 0 ? "meter" : "meter empty"), filled = element("div");
  meter.setAttribute("role", "meter");
  meter.setAttribute("aria-label", "Remaining budget");
  meter.setAttribute("aria-valuenow", Math.max(0, left));
  meter.setAttribute("aria-valuemin", 0);
  meter.setAttribute("aria-valuemax", Math.max(run.budget, 0));
  filled.style.width = `${Math.max(left > 0 ? 0 : 100, Math.min(100, (100 * left) / (run.budget || 1)))}%`;
  meter.append(filled);
  return meter;
}

function amountOr(value) { return value === null ? "—" : amount(value); }

function ending() {
  const text = element("h3", run.done ? `The run ends in ${named(run.end)}.` : "The run continues; only its first steps are shown.");
  const total = element("p");
  const luck = run.expected - run.total;
  total.append("Its total cost is ", element("b", amount(run.total)), `; the expected cost was ${amount(run.expected)}: ${luck >= 0 ? "a lucky run" : "an unlucky run"}. `,
    run.bad ? "The total is above VaR, in the tail." : "The total is not above VaR.");
  const turn = run.budget === null ? "This plan uses no budget." : run.safe_from === null ? "The tail was never safe in this run." : `From step ${run.safe_from + 1} on the tail was safe.`;
  return [text, total, element("p", turn, run.safe_from === null ? "" : "safe")];
}

function drawStory() {
  const seen = run.steps.slice(0, Math.min(at + 1, run.steps.length)), over = at >= run.steps.length && run.done;
  const x = seen.map((_, i) => i + 1), spent = seen.map((s) => s.spent), outlook = seen.map((s) => s.outlook);
  if (over) { x.push(run.steps.length + 1); spent.push(run.total); outlook.push(run.total); }
  const shapes = [], traces = [
    { type: "scatter", mode: "lines+markers", name: "cost so far", x, y: spent, line: { color: colour("exact"), width: 2.4, shape: "hv" }, marker: { size: 6 } },
    { type: "scatter", mode: "lines+markers", name: "expected total", x, y: outlook, line: { color: colour("expected"), width: 2, dash: "dash" }, marker: { size: 6, symbol: "diamond" } },
  ];
  const range = [0.7, run.steps.length + 1.3]; // what else there is is named in the legend, where no line crosses it
  if (run.budget !== null) traces.push({ type: "scatter", mode: "lines", name: "budget", x: range, y: [run.budget, run.budget], line: { color: colour("tail"), width: 1.5, dash: "dot" }, hoverinfo: "skip" });
  if (run.safe_from !== null && run.safe_from <= at) {
    shapes.push({ type: "rect", x0: run.safe_from + 1, x1: run.steps.length + 1, yref: "paper", y0: 0, y1: 1, fillcolor: colour("good"), opacity: 0.12, line: { width: 0 }, layer: "below" });
    traces.push({ type: "scatter", mode: "markers", name: "the tail is safe", x: [null], y: [null], marker: { symbol: "square", size: 13, color: colour("good"), opacity: 0.35 }, hoverinfo: "skip" });
  }
  draw(places.story, traces, layout({
    shapes, ...legend(places.story, { entrywidth: 0.48, entrywidthmode: "fraction" }), margin: { l: 46, r: 10, t: 26, b: 36 },
    xaxis: { range, title: { text: "step" }, dtick: run.steps.length > 20 ? undefined : 1 }, yaxis: { title: { text: "cost" } },
  }));
}
