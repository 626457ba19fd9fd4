"""How the report looks: light and dark, wide and narrow, on paper."""

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6675; --line: #d8dee6; --paper: #ffffff; --shade: #f1f5f9;
  --blue: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa7b5; --line: #38424f; --paper: #14181e; --shade: #1e252d; --blue: #56b4e9; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
a { color: var(--blue); }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { margin: 2.8rem 0 .5rem; font-size: 1.4rem; } h3 { margin: 1.8rem 0 .3rem; font-size: 1.1rem; }
p { max-width: 46rem; } .lead { font-size: 1.1rem; } .soft { color: var(--soft); font-size: .92rem; }
nav { margin: 1.2rem 0 1.6rem; padding: .7rem 1rem; background: var(--shade); border-radius: 6px; max-width: 46rem; }
nav ul { margin: 0; padding: 0; list-style: none; columns: 2; column-gap: 2rem; }
nav li { break-inside: avoid; padding: .1rem 0; }
.wide { overflow-x: auto; margin: .6rem 0 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
thead th { border-bottom: 2px solid var(--line); font-weight: 600; vertical-align: bottom; }
tr.exact td { background: var(--shade); font-weight: 600; }
td small { color: var(--soft); font-weight: 400; }
figure { margin: 1.2rem 0; } figure img { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 46rem; margin-top: .4rem; }
.pairs { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem 2.5rem; }
.pairs h3 { margin: 0 0 .3rem; } .pairs figure { margin: 0 0 1rem; }
@media (max-width: 44rem) {
  body { padding: 1.2rem 1rem 3rem; } h1 { font-size: 1.5rem; } nav ul { columns: 1; } .pairs { display: block; }
  .wide { overflow: visible; } table, caption, tbody { display: block; } thead { display: none; }
  tbody tr { display: grid; grid-template-columns: repeat(var(--across), minmax(0, 1fr)); padding: .35rem 0;
    border-bottom: 1px solid var(--line); }
  td { border: 0; padding: .1rem .3rem; white-space: normal; text-align: left; font-size: .85rem; }
  td:first-child { grid-column: 1 / -1; position: static; font-weight: 600; font-size: .95rem; }
  td:not(:first-child)::before { content: attr(data-head); display: flex; align-items: end; min-height: 2.5em;
    color: var(--soft); font-size: .72rem; font-weight: 400; line-height: 1.25; }
  td:empty { display: none; } td small { display: block; } tr.exact td:first-child { background: none; }
  tr.exact { background: var(--shade); border-radius: 4px; }
}
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } h2 { break-after: avoid; }
  figure, table { break-inside: avoid; } .wide { overflow: visible; } }
"""
