// The plan as a picture of its domain.

import { colour, draw, layout, legend } from "./charts.js";

const ARROWS = { up: "↑", right: "→", down: "↓", left: "←", N: "↑", NE: "↗", E: "→", SE: "↘", S: "↓", SW: "↙", W: "←", NW: "↖", stop: "■" };
// The colours of numbers, as in the pictures of plans: cividis without its darkest part.
const SHADES = ["#3b496c", "#545a6d", "#6a6c71", "#7f7e78", "#979177", "#b0a571", "#cbb965", "#e6d051", "#fee838"].map((shade, i) => [i / 8, shade]);

export function show(content, places) {
  const { map, table, note } = places;
  const asTable = content.kind === "table";
  map.hidden = asTable;
  table.hidden = !asTable;
  note.textContent = { heat, pairs, grid, network, table: rows }[content.kind](content, asTable ? table : map);
}

function heat(content, place) {
  const small = content.cells.length * content.cells[0].length <= 320;
  draw(place, [{
    type: "heatmap", z: content.cells, x: content.columns, y: content.rows, colorscale: SHADES, zmin: content.least ?? 0, zmax: content.most, xgap: 1, ygap: small ? 1 : 0, hoverongaps: false,
    texttemplate: small ? "%{z}" : "", textfont: { size: 11 },
    colorbar: { title: { text: content.z, side: "right" }, thickness: 12, outlinewidth: 0 },
    hovertemplate: `${content.x} %{x}, ${content.y} %{y}: ${content.z} %{z}<extra></extra>`,
  }], layout({ xaxis: { title: { text: content.x }, dtick: content.columns ? undefined : 1, showgrid: false }, yaxis: { title: { text: content.y }, showgrid: false }, margin: { l: 48, r: 8, t: 10, b: 42 } }));
  return EMPTY;
}

const EMPTY = "Empty: no run can be there with this remaining budget.";
const TINTS = 8; // colours for actions

// One colour for each action, whatever the budget and alpha.
function pairs(content, place) {
  const { cells, columns, rows: lines, actions } = content;
  const tints = actions.map((_, i) => colour(`act-${i % TINTS}`)), steps = actions.length;
  const label = (i) => (i === null ? "" : ARROWS[actions[i]] ?? actions[i]);
  const longest = Math.max(...actions.map((_, i) => label(i).length)), room = (place.clientWidth - 90) / columns.length;
  const written = room > 7 * longest + 4 && lines.length <= 24;
  const narrow = place.clientWidth < 460;
  draw(place, [
    {
      type: "heatmap", z: cells, x: columns.map((_, i) => i), y: lines.map((_, i) => i), zmin: -0.5, zmax: steps - 0.5, showscale: false, xgap: 2, ygap: 2, hoverongaps: false,
      colorscale: tints.flatMap((tint, i) => [[i / steps, tint], [(i + 1) / steps, tint]]),
      text: cells.map((row) => row.map(label)), texttemplate: written ? "%{text}" : "", textfont: { size: 12, color: colour("ink") },
      customdata: cells.map((row, j) => row.map((i, k) => [columns[k], lines[j], i === null ? "" : actions[i]])), hovertemplate: "(%{customdata[0]}, %{customdata[1]}): %{customdata[2]}<extra></extra>",
    },
    ...actions.map((name, i) => ({ type: "scatter", mode: "markers", x: [null], y: [null], name, marker: { symbol: "square", size: 13, color: tints[i] }, hoverinfo: "skip" })),
  ], layout({
    ...legend(place), margin: { l: 48, r: 8, t: 30, b: narrow ? 80 : 42 },
    xaxis: ticks(content.x, columns), yaxis: ticks(content.y, lines),
  }));
  return EMPTY;
}

// Places along an axis, named by the part of the state they stand for; not so many that names overlap.
function ticks(text, parts) {
  const apart = Math.ceil(parts.length / 16), shown = parts.map((_, i) => i).filter((i) => i % apart === 0);
  return { title: { text }, range: [-0.5, parts.length - 0.5], showgrid: false, zeroline: false, tickvals: shown, ticktext: shown.map((i) => String(parts[i])) };
}

function grid(content, place) {
  const shapes = content.depth.map((depth, x) => ({
    type: "rect", x0: x - 0.5, x1: x + 0.5, y0: depth + 0.5, y1: content.size - 0.5, fillcolor: colour("rock"), line: { width: 0 }, layer: "below",
  }));
  for (const { x, y } of content.treasure) shapes.push({ type: "rect", x0: x - 0.5, x1: x + 0.5, y0: y - 0.5, y1: y + 0.5, fillcolor: colour("cvar-wc"), opacity: 0.35, line: { width: 0 }, layer: "below" });
  draw(place, [
    { type: "scatter", mode: "text", x: content.arrows.map((a) => a.x), y: content.arrows.map((a) => a.y), text: content.arrows.map((a) => ARROWS[a.action] ?? a.action), textfont: { size: 19, color: colour("exact") }, hovertemplate: "column %{x}, row %{y}: %{text}<extra></extra>" },
    { type: "scatter", mode: "text", x: content.treasure.map((t) => t.x), y: content.treasure.map((t) => t.y), text: content.treasure.map((t) => String(t.value)), textfont: { size: place.clientWidth < 460 ? 8 : 10, color: colour("ink") }, hovertemplate: "treasure worth %{text}<extra></extra>" },
  ], layout({
    shapes, margin: { l: 30, r: 8, t: 8, b: 24 },
    xaxis: { range: [-0.5, content.size - 0.5], dtick: 1, showgrid: false, showticklabels: false }, yaxis: { range: [content.size - 0.5, -0.5], dtick: 1, showgrid: false, showticklabels: false },
  }));
  return `After ${content.moves} moves at a cost of 5 each: where the submarine can be, and its next move. Treasures are shaded, rock is grey.`;
}

function network(content, place) {
  const at = new Map(content.places.map((p) => [p.name, p]));
  const traces = [];
  const line = (from, to, style) => {
    const a = at.get(from), b = at.get(to);
    if (a && b) traces.push({ type: "scatter", mode: "lines", x: [a.x, b.x], y: [a.y, b.y], hoverinfo: "skip", ...style });
  };
  for (const { from, to } of content.roads) line(from, to, { line: { color: colour("rock"), width: 1.2 } });
  for (const { from, to, share } of content.routes) line(from, to, { line: { color: colour("exact"), width: 1 + 9 * share }, opacity: 0.25 + 0.75 * share });
  for (const { from, to } of content.next) line(from, to, { line: { color: colour("tail"), width: 2.2, dash: "dot" } });
  const dots = content.places;
  traces.push({
    type: "scatter", mode: "markers", x: dots.map((d) => d.x), y: dots.map((d) => d.y), text: dots.map((d) => d.name), customdata: dots.map((d) => d.share),
    marker: { size: dots.map((d) => 5 + 6 * d.share), color: dots.map((d) => colour(d.share ? "exact" : "rock")) }, hovertemplate: "%{text}: %{customdata:.1%} of runs<extra></extra>",
  });
  const annotations = ["start", "goal"].filter((end) => at.has(content[end])).map((end) => ({
    x: at.get(content[end]).x, y: at.get(content[end]).y, text: `${end} ${content[end]}`, showarrow: true, ax: 0, ay: 28, arrowcolor: colour("ink"), font: { color: colour("ink") },
  }));
  draw(place, traces, layout({ annotations, margin: { l: 8, r: 8, t: 8, b: 8 }, xaxis: { visible: false }, yaxis: { visible: false } }));
  return "Thick: the roads taken; line width shows the share of runs. Dotted: the next road from each of those junctions with this remaining budget. Grey: the network.";
}

function rows(content, place) {
  place.replaceChildren(tableOf(["state", "action"], content.rows.map((row) => [row.state, row.action])));
  return content.more ? `${content.more.toLocaleString("en")} more states are not shown: the download has all decisions.` : "States that no run can be in with this remaining budget are not shown.";
}

export function tableOf(head, body, numbers = []) {
  const table = document.createElement("table");
  const line = (cells, tag) => {
    const row = document.createElement("tr");
    cells.forEach((text, i) => {
      const cell = document.createElement(tag);
      cell.textContent = text;
      if (numbers.includes(i)) cell.className = "number";
      row.append(cell);
    });
    return row;
  };
  table.createTHead().append(line(head, "th"));
  table.createTBody().append(...body.map((cells) => line(cells, "td")));
  return table;
}
