// The plans in numbers: one card for each method, the sentence above them, and all their digits below.

import { waiting } from "./charts.js";
import { tableOf } from "./maps.js";
import { known, methodNamed, setNamed, state } from "./state.js";

const $ = (id) => document.getElementById(id);

const FIELDS = [["CVaR", "cvar", "big"], ["VaR", "var", ""], ["expected cost", "expected", ""], ["optimal CVaR ≥", "lower", ""], ["optimal CVaR ≤", "upper", ""], ["cost step", "step", ""]];

export function card({ name, title: called, what: looksFor }) {
  const made = document.createElement("article");
  made.className = "card plan stale";
  made.id = `plan-${name}`;
  made.style.setProperty("--mine", `var(--${name}, var(--quiet))`);
  const head = document.createElement("div"), title = document.createElement("h3"), badge = document.createElement("span");
  head.className = "bar";
  title.textContent = called;
  badge.className = "badge";
  head.append(title, badge);
  const what = document.createElement("p");
  what.className = "quiet";
  what.textContent = looksFor;
  const list = document.createElement("dl");
  for (const [word, key, kind] of FIELDS) {
    const term = document.createElement("dt"), value = document.createElement("dd");
    term.textContent = word;
    value.dataset.key = key;
    value.className = kind;
    list.append(term, value);
  }
  const against = document.createElement("p"), wait = document.createElement("p"), chart = document.createElement("div");
  against.className = "against";
  wait.className = "wait";
  chart.className = "chart";
  chart.setAttribute("role", "img");
  const saving = document.createElement("span");
  saving.className = "tools";
  const numbers = document.createElement("div");
  numbers.className = "numbers";
  numbers.append(list, against, wait, saving);
  made.append(head, what, numbers, chart);
  return made;
}

export function emptyCard(method) {
  const place = $(`plan-${method}`);
  place.classList.add("stale");
  delete place.dataset.alpha;
  for (const value of place.querySelectorAll("dd")) { value.textContent = "…"; delete value.dataset.value; }
  place.querySelector(".badge").textContent = "";
  place.querySelector(".badge").className = "badge";
  place.querySelector(".against").textContent = "";
  place.querySelector(".wait").textContent = "";
  waiting(place.querySelector(".chart"), methodNamed(method).slow ? "Computing in the background…" : "Solving…");
}

// The message stands where the picture would be; nothing waits any more.
export function failedCard(method, message) {
  emptyCard(method);
  const place = $(`plan-${method}`);
  place.classList.remove("stale");
  for (const value of place.querySelectorAll("dd")) value.textContent = "–";
  waiting(place.querySelector(".chart"), message);
}

export function showNumbers(method, answers) {
  const answer = answers[method], place = $(`plan-${method}`), { plan, shown } = answer;
  place.classList.remove("stale");
  for (const value of place.querySelectorAll("dd")) {
    value.textContent = shown[value.dataset.key];
    value.dataset.value = String(plan[value.dataset.key]);
    value.title = value.dataset.value;
  }
  place.dataset.alpha = plan.alpha;
  const worst = plan.nominal ? { CVaR: "worst-case CVaR", VaR: "budget", "expected cost": "worst-case expected cost", "optimal CVaR ≥": "optimal worst-case CVaR ≥", "optimal CVaR ≤": "optimal worst-case CVaR ≤" } : {};
  place.querySelectorAll("dt").forEach((term, i) => { term.textContent = worst[FIELDS[i][0]] ?? FIELDS[i][0]; });
  const badge = place.querySelector(".badge");
  badge.textContent = answer.refining ? "refining…" : plan.status.replaceAll("_", " ");
  badge.className = `badge ${answer.refining ? "refining" : plan.status}`;
  badge.title = answer.refining ? "the best plan so far; the solve continues with finer cost steps" : answer.message;
  const wait = place.querySelector(".wait");
  wait.textContent = plan.notes.join("; ");
  const exact = answers[known.yardstick]?.plan;
  for (const each of method === known.yardstick ? Object.keys(answers) : [method]) {
    const other = answers[each]?.plan;
    if (other) $(`plan-${each}`).querySelector(".against").textContent = !exact ? "" : each === known.yardstick ? yardstick(exact) : exact.nominal ? "planned for the model itself" : against(other, exact);
  }
  if (method === known.yardstick) showPrecision(answer);
  showHeadline(answers);
  showDigits(answers);
}

// The gap between the bounds so far, and the cost step.
function showPrecision({ plan, rounded, refining, refines }) {
  if (refines) $("precision").hidden = false; // and it stays while alpha changes
  $("have").classList.remove("stale");
  const apart = plan.upper === null ? null : (plan.upper - plan.lower) / Math.max(Math.abs(plan.lower), Math.abs(plan.upper));
  const gap = apart === null ? "no upper bound" : apart <= 1e-8 ? "no gap between the bounds" : `gap of ${Number((100 * apart).toPrecision(2))}% between the bounds`;
  $("have").textContent = `${refining ? "refining, so far" : plan.status.replaceAll("_", " ")}: ${gap}, costs ${rounded ? "rounded to" : "in"} steps of ${Number(plan.step.toPrecision(6))}`;
}

function yardstick({ nominal }) {
  if (!nominal) return "the reference for the others";
  const short = (value) => (value === null ? "unknown" : Number(value.toPrecision(6)));
  return `in the model itself: CVaR ${short(nominal.cvar)}, expected cost ${short(nominal.expected)}`;
}

function against(plan, exact) {
  if (plan.alpha !== exact.alpha) return "";
  const part = (name, a, b) => {
    if (a === null || b === null) return `${name} not compared`;
    const d = a - b;
    if (Math.abs(d) <= 1e-9 * Math.max(1, Math.abs(b))) return `${name} the same`;
    return `${name} ${d > 0 ? "+" : "−"}${Number(Math.abs(d).toPrecision(3))}`;
  };
  return `${part("CVaR", plan.cvar, exact.cvar)}, ${part("expected cost", plan.expected, exact.expected)}`;
}

function showHeadline(answers) {
  const exact = answers[known.yardstick], mean = answers[known.mean];
  if (!exact) return;
  const strong = (text) => { const made = document.createElement("strong"); made.textContent = text; return made; };
  const short = (value) => (value === null ? "unbounded" : Number(value.toPrecision(5)).toLocaleString("en", { maximumFractionDigits: 3 }));
  const tail = ({ plan, shown }) => (plan.cvar === null && plan.upper !== null ? `at most ${short(plan.upper)}` : `${shown.cvar.startsWith("≥") ? "at least " : ""}${short(plan.cvar)}`);
  const part = `${Number((100 * exact.plan.alpha).toPrecision(3))}%`;
  const parts = exact.plan.alpha === 1 ? ["With this plan the mean cost of all runs is ", strong(tail(exact)), ": at alpha 1, CVaR is the expected cost."]
    : ["With this plan the mean cost of the worst ", strong(part), " of runs is ", strong(tail(exact)), exact.plan.status === "optimal" ? "; no plan has a lower one. " : `; no plan has one below ${short(exact.plan.lower)}. `];
  if (exact.plan.nominal) {
    parts.push("This holds for ", strong(setNamed(state.uncertainty)), `; in the model itself it is ${short(exact.plan.nominal.cvar)}.`);
  } else if (mean && mean.plan.alpha === exact.plan.alpha && exact.plan.alpha < 1) {
    const same = exact.plan.cvar !== null && mean.plan.cvar !== null && Math.abs(mean.plan.cvar - exact.plan.cvar) <= 1e-9 * Math.max(1, Math.abs(exact.plan.cvar));
    if (same) parts.push("The plan with the lowest expected cost attains the same.");
    else parts.push("With the plan of lowest expected cost it is ", strong(tail(mean)), ". The price: an expected cost of ", strong(short(exact.plan.expected)), " instead of ", strong(short(mean.plan.expected)), ".");
  }
  $("headline").replaceChildren(...parts);
}

function gapOption() {
  if (state.gap === null) return [];
  return [Number(state.gap) === 0 ? "--gap 0" : `--relative-gap ${state.gap}`];
}

function setOption() { return state.uncertainty === null ? [] : [`--uncertainty ${state.uncertainty}`]; }

function showDigits(answers) {
  const methods = Object.keys(answers), keys = ["status", "cvar", "var", "expected", "expected_lower", "lower", "upper", "worst_case", "step", "states", "actions", "outcomes"];
  const table = tableOf(["", ...methods], keys.map((key) => [key, ...methods.map((method) => String(answers[method].plan[key]))]));
  $("digits").replaceChildren(...table.children);
  const model = state.model.startsWith("upload-") ? state.name ?? "MODEL" : state.model;
  $("command").textContent = ["prudent solve", model, ...state.set.map((item) => `--set ${item}`), `--alpha ${state.alpha}`, ...gapOption(), ...setOption(), "--json"].join(" ");
}
