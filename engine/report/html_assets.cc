#include "engine/report/html_report.h"

namespace tally {

// Colours are those of the charts' classes, too (engine/chart/svg.h).
const char* const kReportStyle = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1f2328;--soft:#57606a;--line:#d8dee4;
--shade:#f6f8fa;--bad:#b42318;--badshade:#fef0ee;--good:#0a6b3d;--goodshade:#ecf8f1;
--doubt:#7a4b00;--doubtshade:#fff6e0;--link:#0550ae}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e6e9ed;--soft:#a3adb8;
--line:#3a424c;--shade:#1d232a;--bad:#ff9d92;--badshade:#3a1d1b;--good:#6fd6a0;--goodshade:#14301f;
--doubt:#f0c26a;--doubtshade:#33280f;--link:#84b9ff}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1280px;padding:1rem;background:var(--paper);color:var(--ink);
font:15px/1.5 Arial,Helvetica,"Liberation Sans","DejaVu Sans",sans-serif}
h1{font-size:1.6rem;margin:.2rem 0;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .4rem;overflow-wrap:anywhere}
a{color:var(--link)}
.soft{overflow-wrap:anywhere;color:var(--soft);margin:.2rem 0}
.bad{color:var(--bad)}.good{color:var(--good)}.doubt{color:var(--doubt)}
.verdict{border:1px solid;border-left-width:6px;border-radius:4px;padding:.5rem .8rem;margin:.8rem 0}
.verdict p{margin:0;font-size:1.15rem;font-weight:bold}.verdict a{color:inherit}
.verdict.good{background:var(--goodshade)}.verdict.bad{background:var(--badshade)}
.verdict.doubt{background:var(--doubtshade)}
.contents{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}
.badge{font-size:.75rem;padding:.05rem .45rem;border-radius:1rem;border:1px solid}
.badge.bad{background:var(--badshade)}.badge.doubt{background:var(--doubtshade)}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:4px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:left;border-bottom:1px solid var(--line);
white-space:pre;vertical-align:top}
th{background:var(--shade);white-space:nowrap}
th button{all:unset;cursor:pointer}
th button:focus-visible{outline:2px solid var(--link)}
th[aria-sort=ascending] button::after{content:" \25B2"}
th[aria-sort=descending] button::after{content:" \25BC"}
tr.f td{background:var(--badshade);color:var(--bad)}
tr.m td{background:var(--badshade)}td.x{color:var(--bad);font-weight:bold}
td.w{color:var(--doubt);background:var(--doubtshade);font-weight:bold}
td.x::after{content:" \2717"}td.w::after{content:" !"}
.runs td{white-space:pre-wrap;overflow-wrap:anywhere;min-width:12rem}
.runs tr.d td{background:var(--doubtshade)}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.4rem 0}
.facts dt{color:var(--soft)}
.facts dd{margin:0;overflow-wrap:anywhere}
pre{background:var(--shade);border:1px solid var(--line);border-radius:4px;padding:.5rem;
overflow-x:auto;font-size:13px;white-space:pre-wrap;overflow-wrap:anywhere}
ul{margin:.3rem 0;padding-left:1.2rem;overflow-wrap:anywhere}
summary{color:var(--soft);cursor:pointer}
summary h2{display:inline-block;width:calc(100% - 2rem);margin:1.5rem 0 .5rem;color:var(--ink)}
.find{margin:.4rem 0;font:inherit;padding:.2rem .5rem;width:16rem;max-width:100%;
background:var(--paper);color:inherit;border:1px solid var(--soft);border-radius:4px}
.charts{display:grid;gap:.8rem;margin:.6rem 0}
.chart{border:1px solid var(--line);border-radius:4px;min-width:0}
.chart svg{display:block;width:100%;height:auto}
.both svg+svg{display:none}
svg .paper{fill:var(--paper)}
svg .ink{fill:var(--ink)}
svg .axis{stroke:var(--soft)}
svg .grid{stroke:var(--line)}
@media (max-width:720px){.both svg{display:none}.both svg+svg{display:block}}
@media (max-width:500px){body{padding:.6rem}.facts{grid-template-columns:1fr;gap:0}
.facts dd{margin-bottom:.3rem}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--line:#bbb;
--shade:#f3f3f3;--bad:#900;--badshade:#fff;--good:#060;--goodshade:#fff;--doubt:#640;
--doubtshade:#fff;--link:#000}
body{max-width:none;padding:0;font-size:10pt}.find{display:none}.wide{overflow:visible;border:0}
.chart,tr,.failure{break-inside:avoid}thead{display:table-header-group}
table.data td{white-space:pre-wrap!important;overflow-wrap:anywhere;min-width:0!important}}
)css";

const char* const kReportScript = R"js(
"use strict";
for (const table of document.querySelectorAll("table.data")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const number = text => {
    const value = text.trim() === "" ? NaN : Number(text);
    return Number.isNaN(value) ? null : value;
  };
  const compare = (a, b) => {
    const x = number(a), y = number(b);
    if (x !== null && y !== null) return x - y;
    if (x !== null || y !== null) return x !== null ? -1 : 1;
    return a < b ? -1 : a > b ? 1 : 0;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    button.title = "sort";
    head.replaceChildren(button);
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map((row, i) => [row.cells[column].textContent, i, row]);
      const empty = text => text.trim() === "" ? 1 : 0;
      keyed.sort((a, b) => empty(a[0]) - empty(b[0]) ||
        (down ? compare(b[0], a[0]) : compare(a[0], b[0])) || a[1] - b[1]);
      body.append(...keyed.map(one => one[2]));
    };
  });
  const find = document.createElement("input"), count = document.createElement("span");
  find.className = "find";
  find.type = "search";
  find.placeholder = "show rows with …";
  find.setAttribute("aria-label", "show rows with these words");
  count.className = "soft";
  find.oninput = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(word => word);
    let shown = 0;
    for (const row of rows) {
      const text = [...row.cells].map(cell => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      if (!row.hidden) ++shown;
    }
    count.textContent = words.length ? ` ${shown} of ${rows.length} rows` : "";
  };
  if (rows.length >= 10) table.parentNode.before(find, count);
}
)js";

}  // namespace tally
