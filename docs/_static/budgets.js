// Budget against penalty: a slider moves the budget; excess, penalty, their sum and the action follow.

"use strict";

{
const WIDE = 640, HIGH = 300, LEFT = 44, RIGHT = 12, TOP = 12, FLOOR = 236;

function shape(kind, values, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(values)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function short(value) { return String(Number(value.toFixed(2))); }

function draw(place) {
  const { alpha, budget, excess, action } = JSON.parse(place.dataset.content);
  const penalty = excess.map((each) => each / alpha), sum = budget.map((w, i) => w + penalty[i]);
  const kinds = [...new Set(action)], best = sum.indexOf(Math.min(...sum));
  const most = Math.max(...budget), least = budget[0], high = 3 * sum[best];
  const x = (w) => LEFT + ((w - least) / (most - least)) * (WIDE - LEFT - RIGHT);
  const y = (cost) => FLOOR - (Math.min(cost, 1.1 * high) / high) * (FLOOR - TOP);
  const line = (values) => budget.map((w, i) => `${x(w).toFixed(1)},${y(values[i]).toFixed(1)}`).join(" ");
  const svg = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": "Budget, penalty and their sum against the budget; below, the action that is played" });
  const clip = shape("clipPath", { id: "budgets-clip" });
  clip.append(shape("rect", { x: LEFT, y: TOP, width: WIDE - LEFT - RIGHT, height: FLOOR - TOP }));
  const lines = shape("g", { "clip-path": "url(#budgets-clip)" });
  lines.append(...[["budget", budget], ["penalty", penalty], ["sum", sum]].map(([kind, values]) => shape("polyline", { class: kind, points: line(values) })));
  svg.append(clip, shape("line", { class: "axis", x1: LEFT, x2: WIDE - RIGHT, y1: FLOOR, y2: FLOOR }), lines);
  for (const share of [0, 1 / 3, 2 / 3, 1]) svg.append(shape("text", { x: LEFT - 6, y: y(share * high) + 4, "text-anchor": "end" }, short(Math.round(share * high))));
  const turns = action.map((_, i) => i).filter((i) => i === 0 || action[i] !== action[i - 1]);
  turns.forEach((i, k) => { // the strip of actions
    const from = x(budget[i]), to = k + 1 < turns.length ? x(budget[turns[k + 1]]) : x(most);
    svg.append(shape("rect", { class: `act-${kinds.indexOf(action[i])}`, x: from, y: FLOOR + 6, width: to - from, height: 20 }));
    svg.append(shape("text", { class: "on", x: from + 5, y: FLOOR + 21 }, action[i]));
  });
  for (const w of budget.filter((each) => each % 20 === 0)) svg.append(shape("text", { x: x(w), y: FLOOR + 42, "text-anchor": "middle" }, w));
  svg.append(shape("text", { x: (LEFT + WIDE) / 2, y: HIGH - 4, "text-anchor": "middle" }, "budget"));
  const mark = shape("line", { class: "mark", y1: TOP, y2: FLOOR + 26 }), dot = shape("circle", { class: "dot", r: 5.5 });
  lines.append(dot);
  svg.append(mark);
  const key = document.createElement("p");
  key.className = "key";
  for (const [kind, text] of [["budget", "budget"], ["penalty", `penalty: expected excess / ${alpha}`], ["sum", "together"]]) {
    const item = document.createElement("span");
    item.className = kind;
    item.textContent = text;
    key.append(item);
  }
  const label = document.createElement("label"), slider = document.createElement("input"), told = document.createElement("p");
  Object.assign(slider, { type: "range", min: 0, max: budget.length - 1, step: 1, value: Math.round(0.36 * budget.length) });
  label.append("Drag the budget", slider);
  told.setAttribute("aria-live", "polite");
  const show = () => {
    const i = Number(slider.value), at = x(budget[i]);
    for (const end of ["x1", "x2"]) mark.setAttribute(end, at);
    dot.setAttribute("cx", at);
    dot.setAttribute("cy", y(sum[i]));
    const strong = (text) => { const made = document.createElement("b"); made.textContent = text; return made; };
    told.replaceChildren("Budget ", strong(short(budget[i])), ": take the ", strong(action[i]), `. Expected excess ${short(excess[i])}, penalty ${short(penalty[i])}, together `, strong(short(sum[i])), i === best ? ": the least, which is the optimal CVaR." : ".");
  };
  slider.addEventListener("input", show);
  place.replaceChildren(key, svg, label, told);
  show();
}

for (const place of document.querySelectorAll(".budgets")) draw(place);
}
