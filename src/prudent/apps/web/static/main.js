// The page: what is chosen is asked for, what is answered is drawn.

import { address, ask, giveUp, later, patiently, send } from "./api.js";
import { card, emptyCard, failedCard, showNumbers } from "./cards.js";
import * as charts from "./charts.js";
import * as maps from "./maps.js";
import * as play from "./play.js";
import { alphaAt, domainChosen, known, learn, methodNamed, modelName, positionOf, readAddress, setNamed, setsOf, state, uploads, writeAddress } from "./state.js";

const $ = (id) => document.getElementById(id);
const SETTLE = 200; // milliseconds without a move before what takes long is asked for
const LOOK = 600; // milliseconds between two looks at what a solve has so far
const answers = {};
let points = null, trade = null, map = null, turn = 0, sets = [], due = true; // due: the curve, with the next plan
const stage = { story: $("story"), now: $("now"), log: $("log"), step: $("step"), all: $("all"), again: $("again") };

// ---- choosing a model

async function start() {
  readAddress();
  const about = await patiently("api/domains");
  learn(about);
  $("file").accept = about.upload.kinds.join(",");
  $("model").append(...known.domains.map(({ name, title }) => new Option(title, name)));
  $("footer").textContent = `Prudent ${about.version}. Costs are minimised; CVaR is the mean cost of the worst fraction alpha of runs. Everything on this page is computed on the machine that serves it.`;
  for (const method of known.methods) {
    const made = card(method);
    tools(made.querySelector(".tools"), made.querySelector(".chart"));
    $("plans").append(made);
    $("take-method").append(new Option(method.name));
  }
  for (const place of document.querySelectorAll(".tools[data-figure]")) tools(place, place.dataset.figure);
  showControls();
  newModel();
}

function showControls() {
  if (!domainChosen()) uploads.set(state.model, modelName());
  showName();
  const chosen = new Map(state.set.map((item) => [item.split("=", 1)[0], item.slice(item.indexOf("=") + 1)]));
  const parameters = domainChosen()?.parameters ?? [];
  $("parameters").replaceChildren(...parameters.map((parameter) => control(parameter, chosen.get(parameter.name))));
  $("run").value = state.run;
  showGap();
  showAlpha();
}

// Uploads stay in the list, to come back to.
function showName() {
  const select = $("model"), name = modelName();
  for (const [number, called] of uploads) {
    const option = [...select.options].find(({ value }) => value === number) ?? select.appendChild(new Option(called, number));
    option.text = called;
  }
  select.value = state.model;
  $("name").textContent = name;
  document.title = `${name}: Prudent`;
}

function showGap() {
  const select = $("relative-gap"), value = state.gap ?? "";
  if (![...select.options].some((option) => option.value === value)) select.append(new Option(value, value));
  select.value = value;
}

function control({ name, default: usual, kind }, value) {
  const label = document.createElement("label"), input = document.createElement("input");
  input.name = name;
  input.dataset.usual = usual ?? "";
  if (kind === "bool") {
    input.type = "checkbox";
    input.checked = (value ?? String(usual)) === "true";
  } else {
    input.type = kind === "int" ? "number" : "text";
    input.value = value ?? usual ?? "";
    if (usual === null) input.placeholder = "default";
  }
  label.append(`${name} `, input);
  return label;
}

function readControls() {
  const items = [];
  for (const input of $("parameters").querySelectorAll("input")) {
    const value = input.type === "checkbox" ? String(input.checked) : input.value.trim();
    if (value !== "" && value !== input.dataset.usual) items.push(`${input.name}=${value}`);
  }
  return items;
}

function newModel() {
  points = trade = map = null;
  for (const method of Object.keys(answers)) delete answers[method];
  for (const { name } of known.methods) { emptyCard(name); giveUp(name); }
  for (const channel of ["curve", "frontier", "map", "play", "about", "upload"]) giveUp(channel);
  charts.waiting($("curve"), "Computing the values for every alpha…");
  charts.waiting($("frontier"), "Computing the trade-off…");
  charts.waiting($("map"), "Computing the actions…");
  $("map").hidden = false; $("table").hidden = true;
  for (const name of ["left-value", "map-note"]) $(name).textContent = "";
  play.clear(stage, "Preparing a run…");
  $("headline").textContent = "Solving…";
  $("about").textContent = "";
  delete $("about").dataset.model;
  $("precision").hidden = true;
  showSets([]);
  problem(null);
  due = true;
  newAlpha(true);
}

let sent = 0;
async function upload(file) {
  const mine = ++sent;
  problem(null);
  $("upload").textContent = "Uploading…";
  try {
    const found = await send("upload", `api/models?${new URLSearchParams({ name: file.name })}`, { method: "POST", body: file });
    if (!found) return;
    uploads.set(found.model, found.check.model);
    Object.assign(state, { model: found.model, name: found.check.model, set: [], gap: null, uncertainty: null, left: null, layer: null });
    showControls();
    newModel();
  } catch (error) {
    problem(error);
  } finally { if (mine === sent) $("upload").textContent = "Upload a model…"; }
}

// ---- alpha

function showAlpha() {
  const percent = Number((100 * state.alpha).toPrecision(3));
  $("percent").textContent = Number.isFinite(percent) ? `${percent}%` : "?";
  $("alpha").value = positionOf(Number(state.alpha) || 1);
  $("alpha").setAttribute("aria-valuetext", `worst ${percent}% of runs`);
  if (document.activeElement !== $("alpha-number")) $("alpha-number").value = state.alpha;
}

// The slider beside alpha: which models the plan is for; where only one is known, there is nothing to choose.
function showSets(found) {
  sets = found;
  const input = $("confidence"), name = setNamed(state.uncertainty);
  $("confidence-box").hidden = sets.length === 0;
  input.max = Math.max(sets.length - 1, 0);
  input.value = Math.max(sets.indexOf(state.uncertainty), 0);
  input.setAttribute("aria-valuetext", name);
  $("confidence-value").textContent = name;
}

function chooseSet(uncertainty) {
  Object.assign(state, { uncertainty, left: null });
  showSets(sets);
  due = true;
  $("curve").classList.add("stale");
  newAlpha();
}

async function newAlpha(fresh = false) {
  const mine = ++turn, others = known.methods.filter(({ name }) => name !== known.yardstick);
  writeAddress();
  showDownloads();
  for (const { name } of known.methods) { giveUp(name); $(`plan-${name}`).classList.add("stale"); }
  for (const channel of ["frontier", "map", "play"]) giveUp(channel);
  for (const name of ["frontier", "have", "map"]) $(name).classList.add("stale"); // until it is that of the new alpha
  for (const button of ["step", "all"]) $(button).disabled = true; // until there is a run of the new plan
  const asked = { alpha: state.alpha, method: known.yardstick, relative_gap: state.gap, uncertainty: state.uncertainty }, solving = new AbortController();
  look(asked, mine, solving.signal);
  try {
    const exact = await ask(known.yardstick, "solve", asked);
    if (!exact || mine !== turn) return;
    problem(null);
    took(known.yardstick, exact);
  } catch (error) {
    if (mine !== turn) return;
    noPlan(error);
  } finally { solving.abort(); }
  if (due) { due = false; askCurve(); askAbout(); }
  const whole = (answers[known.yardstick]?.whole ?? true) && known.yardstick in answers; // else there is nothing to follow
  if (whole) askMap();
  for (const { name, slow } of others) if (!slow) askMethod(name, mine);
  if (!fresh) await later(SETTLE);
  if (mine !== turn) return;
  if (whole) {
    if (!answers[known.yardstick].sure) askMethod(known.yardstick, mine, { sure: 1 });
    askRun();
  }
  askFrontier(mine);
  for (const { name, slow } of others) if (slow) askMethod(name, mine);
}

// The plan did not come, so nothing waits for it any more; the numbers of the best plan so far stay.  Others may come.
function noPlan(error) {
  const best = answers[known.yardstick], message = error.message;
  if (best?.refining) {
    took(known.yardstick, { ...best, refining: false, whole: false });
  } else {
    delete answers[known.yardstick];
    failedCard(known.yardstick, message);
    $("headline").textContent = "There is no plan of minimal CVaR to show.";
    $("have").textContent = "";
    for (const name of ["curve", "have"]) $(name).classList.remove("stale");
  }
  noMap(message);
  play.clear(stage, message);
  problem(error);
}

// While a solve refines its plan, the best one so far is shown.
async function look(asked, mine, signal) {
  let seen = "";
  try {
    for (;;) {
      await later(LOOK, signal);
      const best = await patiently(address("so-far", asked), { signal });
      if (signal.aborted || mine !== turn) return;
      const bounds = best && `${best.plan.lower} ${best.plan.upper}`;
      if (!best || bounds === seen) continue;
      seen = bounds;
      problem(null);
      took(known.yardstick, best);
    }
  } catch { /* the answer is there, or the solve was given up; the answer reports what went wrong */ }
}

async function askMethod(method, mine, more = {}) {
  try {
    const own = method === known.yardstick ? { relative_gap: state.gap, uncertainty: state.uncertainty } : {};
    const answer = await ask(method, "solve", { alpha: state.alpha, method, ...own, ...more });
    if (answer && mine === turn) took(method, answer);
  } catch (error) {
    if (mine !== turn) return;
    if (answers[method]?.plan.alpha === Number(state.alpha)) { // its numbers are there already
      $(`plan-${method}`).classList.remove("stale");
      return;
    }
    delete answers[method];
    failedCard(method, error.message);
  }
}

function took(method, answer) {
  answers[method] = answer;
  showNumbers(method, answers);
  requestAnimationFrame(() => setTimeout(() => { // the numbers are painted before the pictures are drawn
    if (answers[method] !== answer) return;
    const shown = Object.values(answers), axes = charts.axesOf(shown), same = JSON.stringify(axes);
    for (const each of shown) {
      if (each === answer || each.axes !== same) charts.distribution($(`plan-${each.plan.method}`).querySelector(".chart"), each, axes);
      each.axes = same; // those of its picture
    }
    if (method === known.yardstick && points) charts.curve($("curve"), points, answer.plan);
    if (trade && trade.alpha === Number(state.alpha)) charts.frontier($("frontier"), trade, answers);
  }));
}

// ---- everything else about the model

async function askCurve() {
  try {
    const found = await ask("curve", "curve", { uncertainty: state.uncertainty });
    if (!found) return;
    points = found;
    $("curve").classList.remove("stale");
    $("curve-what").textContent = found.points[0].nominal ? "Minimal worst-case CVaR, its budget and the worst-case expected cost" : "Optimal CVaR, its VaR and the lowest expected cost";
    await charts.curve($("curve"), points, answers[known.yardstick]?.plan);
  } catch (error) {
    points = null;
    $("curve").classList.remove("stale");
    charts.waiting($("curve"), error.message);
  }
}

async function askFrontier(mine) {
  const alpha = Number(state.alpha);
  if (!trade) charts.waiting($("frontier"), "Computing the trade-off…");
  try {
    const found = await ask("frontier", "frontier", { alpha });
    if (!found || mine !== turn) return;
    trade = { ...found, alpha };
    const slight = found.gap <= 1e-3 * Math.abs(found.points[0].expected);
    $("gap").textContent = slight ? "no plan lies below the line" : `no plan's expected cost is below the line by more than ${Number(found.gap.toPrecision(2))}`;
    $("frontier").classList.remove("stale");
    charts.frontier($("frontier"), trade, answers);
  } catch (error) {
    if (mine !== turn) return;
    trade = null;
    $("frontier").classList.remove("stale");
    charts.waiting($("frontier"), error.message);
  }
}

async function askAbout() {
  const found = await ask("about", "check").catch(() => null);
  if (!found) return;
  const count = (n, word) => `${n.toLocaleString("en")} ${word}`;
  const parts = [count(found.states, "states"), count(found.actions, "actions"), count(found.outcomes, "outcomes"), found.acyclic ? "no cycles" : "with cycles", found.step === null ? "costs without a common step" : `costs in steps of ${found.step}`];
  if (!domainChosen()) {
    uploads.set(state.model, found.model);
    showName();
  }
  $("about").textContent = `${parts.join(", ")}.`;
  $("about").dataset.model = state.model;
  showSets(setsOf(found));
}

async function askMap() {
  try {
    const found = await ask("map", "policy", { alpha: state.alpha, relative_gap: state.gap, uncertainty: state.uncertainty, left: state.left, layer: state.layer });
    if (!found) return;
    map = found;
    $("map").classList.remove("stale");
    const { positions, left, start } = map.budget;
    slide($("left"), $("left-value"), positions, left, (value) => (start === null ? "any: this plan uses no budget" : `${Number(value.toPrecision(6)).toLocaleString("en")} of ${Number(start.toPrecision(6)).toLocaleString("en")}`));
    $("layer-box").hidden = !map.layer;
    if (map.layer) {
      $("layer-name").textContent = map.layer.name;
      slide($("layer"), $("layer-value"), map.layer.positions, map.layer.value, String);
    }
    maps.show(map, { map: $("map"), table: $("table"), note: $("map-note") });
  } catch (error) { noMap(error.message); }
}

function noMap(message) {
  map = null;
  $("table").hidden = true;
  $("map").hidden = false;
  $("map").classList.remove("stale");
  $("map-note").textContent = "";
  charts.waiting($("map"), message);
}

function slide(input, output, positions, value, text) {
  input.max = positions.length - 1;
  input.value = positions.indexOf(value);
  output.textContent = text(value);
  input.setAttribute("aria-valuetext", text(value));
}

async function askRun() {
  try {
    const found = await ask("play", "play", { alpha: state.alpha, relative_gap: state.gap, uncertainty: state.uncertainty, run: state.run });
    if (!found) return;
    $("story").dataset.alpha = state.alpha;
    play.begin(found, stage);
  } catch (error) { play.clear(stage, error.message); }
}

// ---- taking things away

function tools(place, figure) {
  for (const format of ["png", "svg"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = format.toUpperCase();
    button.title = `Save this figure as ${format.toUpperCase()}`;
    button.addEventListener("click", () => {
      const chart = typeof figure === "string" ? $(figure) : figure;
      if (!chart.classList.contains("js-plotly-plot")) return;
      window.Plotly.downloadImage(chart, { format, filename: `prudent-${chart.id || chart.parentElement.id}`, width: 900, height: 560, scale: format === "png" ? 2 : 1 });
    });
    place.append(button);
  }
}

function showDownloads() {
  const method = $("take-method").value, own = method === known.yardstick, values = { alpha: state.alpha, method, relative_gap: own ? state.gap : null, uncertainty: own ? state.uncertainty : null };
  const offers = [["plan.safetensors", "Plan (.safetensors)"], ["decisions.csv", "Decisions (.csv)"], ["distribution.csv", "Distribution (.csv)"], ["data.json", "All numbers (.json)"]];
  $("downloads").replaceChildren(...offers.filter(([task]) => task !== "decisions.csv" || methodNamed(method).table).map(([task, text]) => {
    const link = document.createElement("a");
    link.className = "button";
    link.textContent = text;
    link.href = address(task, values);
    link.download = task;
    return link;
  }));
}

function problem(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? (error.problems ?? [error.message]).join("\n") : "";
}

// ---- listening

function chooseAlpha(alpha) {
  state.alpha = alpha;
  state.left = null;
  showAlpha();
  newAlpha();
}

$("alpha").addEventListener("input", () => chooseAlpha(alphaAt(Number($("alpha").value))));
$("confidence").addEventListener("input", () => chooseSet(sets[$("confidence").value]));
$("relative-gap").addEventListener("change", () => {
  Object.assign(state, { gap: $("relative-gap").value || null, left: null });
  newAlpha(true);
});
$("alpha-number").addEventListener("change", () => {
  const typed = $("alpha-number").value;
  if (Number(typed) > 0 && Number(typed) <= 1) return chooseAlpha(typed);
  $("alpha-number").value = state.alpha; // as all that is shown
  if (typed !== "") problem(new Error(`alpha is ${typed}; it must be the worst fraction of runs, above 0 and at most 1`));
});
$("curve").addEventListener("click", (event) => {
  const alpha = charts.alphaAt($("curve"), event);
  if (alpha !== null) chooseAlpha(Math.max(Number(alpha.toPrecision(3)), known.alpha_min));
});
$("model").addEventListener("change", () => {
  Object.assign(state, { model: $("model").value, set: [], gap: null, uncertainty: null, left: null, layer: null });
  state.name = uploads.get(state.model) ?? null;
  showControls();
  newModel();
});
$("parameters").addEventListener("change", () => { Object.assign(state, { set: readControls(), left: null, layer: null }); newModel(); });
$("picker").addEventListener("submit", (event) => event.preventDefault());
$("file").addEventListener("change", () => { if ($("file").files.length) upload($("file").files[0]); $("file").value = ""; });
$("left").addEventListener("input", () => { if (map) { state.left = map.budget.positions[$("left").value]; writeAddress(); askMap(); } });
$("layer").addEventListener("input", () => { if (map?.layer) { state.layer = map.layer.positions[$("layer").value]; writeAddress(); askMap(); } });
$("step").addEventListener("click", () => play.step(1));
$("all").addEventListener("click", play.toTheEnd);
$("again").addEventListener("click", play.restart);
$("another").addEventListener("click", () => { state.run += 1; $("run").value = state.run; writeAddress(); askRun(); });
$("run").addEventListener("change", () => { if (/^\d{1,9}$/.test($("run").value)) { state.run = Number($("run").value); writeAddress(); askRun(); } });
$("take-method").addEventListener("change", showDownloads);
$("share").addEventListener("click", async () => {
  const text = $("share").textContent;
  try { await navigator.clipboard.writeText(location.href); $("share").textContent = "Copied"; } catch { $("share").textContent = "The link is in the address bar"; }
  setTimeout(() => { $("share").textContent = text; }, 2000);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const answer of Object.values(answers)) took(answer.plan.method, answer);
  if (map) maps.show(map, { map: $("map"), table: $("table"), note: $("map-note") });
  play.step(0);
});

if (window.Plotly) start().catch(problem);
else problem(new Error("The drawing library did not load; reload the page."));
