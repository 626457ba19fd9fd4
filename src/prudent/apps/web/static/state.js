// The state of the page: all that it shows follows from this, and all of it is in the address.

export const POSITIONS = 240;
let least = 0.005;

// What the server knows: domains, methods, the method that the others are compared with (yardstick), and the one that minimises the expected cost (mean).
export const known = { domains: [], methods: [], yardstick: null, mean: null };

export function methodNamed(name) { return known.methods.find((method) => method.name === name); }

// Models uploaded on this page, by their numbers: what they are called.
export const uploads = new Map();

// What the chosen model is called: a domain by its title, an upload by the name that the file's model has.
export function modelName() { return domainChosen()?.title ?? uploads.get(state.model) ?? state.name ?? state.model; }

export function domainChosen() { return known.domains.find(({ name }) => name === state.model); }

export const state = { model: null, set: [], alpha: 0.2, gap: null, uncertainty: null, left: null, layer: null, run: 1, name: null };

// Takes the answer of api/domains.
export function learn(about) {
  Object.assign(known, about);
  least = about.alpha_min;
  state.model ??= known.domains[0].name;
}

export function alphaAt(position) {
  const alpha = least ** (1 - position / POSITIONS);
  return Number(alpha.toPrecision(3));
}

// What the second slider can be set to: the model itself, then sets of models.
const CONFIDENCES = [null, "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99", "0.999"];

export function setsOf({ counts, intervals }) {
  const sets = counts ? [...CONFIDENCES] : intervals ? [null] : [];
  if (intervals) sets.push("own");
  if (sets.length && !sets.includes(state.uncertainty)) sets.push(state.uncertainty);
  return sets;
}

export function setNamed(uncertainty) {
  if (uncertainty === null) return "the model itself";
  if (uncertainty === "own") return "every model within the file's bounds";
  return `every model that fits the counts: ${Number((100 * uncertainty).toPrecision(4))}% confidence`;
}

export function positionOf(alpha) {
  return Math.round(POSITIONS * (1 - Math.log(Math.max(alpha, least)) / Math.log(least)));
}

export function readAddress() {
  const query = new URLSearchParams(location.search);
  if (query.has("model")) state.model = query.get("model");
  state.set = query.getAll("set");
  if (query.has("alpha")) state.alpha = query.get("alpha");
  if (query.has("relative_gap")) state.gap = query.get("relative_gap");
  if (query.has("uncertainty")) state.uncertainty = query.get("uncertainty");
  if (query.has("left")) state.left = query.get("left");
  if (query.has("layer")) state.layer = query.get("layer");
  if (/^\d{1,9}$/.test(query.get("run") ?? "")) state.run = Number(query.get("run"));
  state.name = query.get("name");
}

export function writeAddress() {
  const query = modelQuery();
  query.set("alpha", state.alpha);
  if (state.gap !== null) query.set("relative_gap", state.gap);
  if (state.uncertainty !== null) query.set("uncertainty", state.uncertainty);
  for (const name of ["left", "layer", "run"]) if (state[name] !== null) query.set(name, state[name]);
  if (state.name !== null) query.set("name", state.name);
  history.replaceState(null, "", `?${query}`);
}

export function modelQuery() {
  const query = new URLSearchParams({ model: state.model });
  for (const item of state.set) query.append("set", item);
  return query;
}
