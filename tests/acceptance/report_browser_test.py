#!/usr/bin/env python3
"""A real browser (headless Chromium) opens a report: it sorts and filters, fits a screen of 400 pixels, has both themes
and prints; without JavaScript it shows the same rows. report_browser_test.py TALLY [FOLDER]: FOLDER keeps the pictures.
"""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TALLY = sys.argv[1]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SKIPPED = 77
WIDE = 1000

WORKFLOW = r"""
name: scaling
outpath: run
comment: '<script>document.title = "hostile"</script> & "quotes"'
parameterset:
  name: ps
  parameter:
    - {name: gpus, type: int, _: "1,2,4,8"}
    - {name: precision, _: "fp32,bf16,<b>fp8</b>"}
    - {name: model, _: gpt2-medium}
    - {name: machine, _: NVIDIA H100 80GB HBM3}
    - {name: why, separator: "", _: "a text that is too long for one line, because a person has written it for others"}
patternset: {name: pt, pattern: {name: tps, type: float, unit: tokens/s, _: "tps=$jube_pat_fp"}}
step:
  name: s
  kind: run
  use: ps
  do:
    - 'p="$precision"; echo "tps=$(( $gpus * 9000 + 7 * ${{#p}} ))"; printf "\033[1mlast words\033[0m <i>\n"; test "$gpus$p" != 8fp32'
analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}
result:
  use: a
  table:
    - name: scaling
      column: [gpus, precision, {_: tps, reference: [">= 9000", {_: "<= 70000", note: "a <note>"}]}]
    - name: wide
      column:
        [gpus, {title: Model, _: model}, {title: Machine, _: machine}, {title: Why it was measured, _: why},
         {title: Fused optimizer, _: precision}, {title: Peer to peer, _: precision}, {title: Samples per second, _: tps},
         {title: Accumulation, _: precision}, {title: "Notebook (24 GB GPU)", _: precision}]
  chart:
    - {name: lines, table: scaling, title: Scaling, x: gpus, y: tps, series: precision, ideal: linear}
    - {name: bars, table: scaling, kind: bar, x: gpus, y: tps, series: precision}
""".replace("${{#p}}", "${#p}")

# Runs in the page, after the page's own script. Its answer is the text of an element that --dump-dom prints.
PROBE = r"""
<script>
const say = {};
const rows = () => [...document.querySelectorAll("#t0 tbody tr")].filter(row => !row.hidden)
  .map(row => [...row.cells].map(cell => cell.textContent));
say.before = rows();
const head = document.querySelectorAll("#t0 th");
head[0].querySelector("button").click();
say.up = rows();
head[0].querySelector("button").click();
say.down = rows();
say.sorted = head[0].getAttribute("aria-sort");
head[1].querySelector("button").click();
say.words = rows();
const find = document.querySelector("input.find");
find.value = "bf16 18";
find.dispatchEvent(new Event("input"));
say.found = rows();
say.width = document.documentElement.scrollWidth;
say.window = innerWidth;
say.title = document.title;
const lines = cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const tops = [...range.getClientRects()].map(box => box.top).sort((a, b) => a - b);
  return tops.filter((top, at) => at === 0 || top - tops[at - 1] > 8).length;  // a badge is lower than its line
};
const cells = [...document.querySelectorAll("#t1 tbody tr")].map(row => [...row.cells]);
say.short = Math.max(...cells.map(row => Math.max(...row.filter((_, at) => at !== 3).map(lines))));
say.long = cells.map(row => lines(row[3]));
say.long_width = cells[0][3].clientWidth;
say.bold = document.querySelectorAll("td b:not(.badge), li b, dd script, svg b, pre i").length;
const seen = element => element.getClientRects().length > 0;
const charts = [...document.querySelectorAll(".chart svg")].filter(seen);
say.charts = charts.map(chart => Math.round(chart.getBoundingClientRect().width));
say.letters = charts.map(chart => 12 * chart.getBoundingClientRect().width / chart.viewBox.baseVal.width);
say.verdict = document.querySelector(".verdict p").textContent.trim();
say.first = document.querySelector("h1 ~ div").className;
say.folded = !document.querySelector("#run").open;
say.missed = [...document.querySelectorAll("#t0 td.x")].map(cell => [cell.parentNode.rowIndex, cell.cellIndex]);
say.sign = getComputedStyle(document.querySelector("#t0 td.x"), "::after").content;
say.filters = [...document.querySelectorAll("input.find")].length;
say.background = getComputedStyle(document.body).backgroundColor;
say.paper = getComputedStyle(document.querySelector("svg .paper")).fill;
say.ink = getComputedStyle(document.querySelector("svg text")).fill;
const answer = document.createElement("pre");
answer.id = "probe";
answer.textContent = JSON.stringify(say);
document.body.append(answer);
</script>
"""


def browse(page, *options, width=WIDE, height=900):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--virtual-time-budget=5000", f"--user-data-dir={profile}",
             f"--window-size={width},{height}", *options, page.as_uri()],
            check=True, capture_output=True, text=True, timeout=120).stdout


def probe(page, *options, width=None):
    """What the probe found in a copy of the page."""
    copy = page.with_name("probe.html")
    copy.write_text(page.read_text().replace("</body>", PROBE + "</body>"))
    if width:
        copy = in_frame(copy, width, 900)
    found = re.search(r'<pre id="probe">(.*?)</pre>', browse(copy, "--dump-dom", *options), re.S)
    assert found, "the page's script did not run to its end"
    class Text(html.parser.HTMLParser):
        text = ""
        def handle_data(self, data):
            self.text += data
    parser = Text()
    parser.feed(found[1])
    return json.loads(parser.text)


def in_frame(page, width, height):
    """A page that shows the other in a frame: the browser's own window is never narrower than 500 pixels."""
    content = json.dumps(page.read_text()).replace("</", "<\\/")
    frame = page.with_name("frame.html")
    frame.write_text(f"""<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="frame" style="border:0;width:{width}px;height:{height}px"></iframe><script>
frame.onload = () => {{
  const probe = frame.contentDocument?.getElementById("probe");
  if (probe) document.body.append(document.importNode(probe, true));
}};
frame.srcdoc = {content};
</script>""")
    return frame


def check(what, condition, *shown):
    if not condition:
        sys.exit(f"failed: {what} {shown}")
    print("ok:", what)


def main():
    if not BROWSER:
        print("skipped: there is no chromium; 1 browser test not run")
        return SKIPPED
    keep = pathlib.Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("b.yaml").write_text(WORKFLOW)
        ran = subprocess.run([TALLY, "run", "b.yaml"], capture_output=True, text=True)
        assert ran.returncode == 5, ran.stderr + ran.stdout
        made = subprocess.run([TALLY, "report", "run", "-o", "out/report.html"], capture_output=True, text=True)
        check("the folder of the report must be there", made.returncode != 0 and "out/report.html" in made.stderr, made)
        subprocess.run([TALLY, "report", "run", "-o", "report.html"], check=True)
        page = pathlib.Path("report.html").absolute()
        text = page.read_text()
        check("under 200 kB", page.stat().st_size < 200_000, page.stat().st_size)
        check("nothing is fetched", not re.findall(r'(?:src|href)="(?!\./|#)', text))
        for target in re.findall(r'href="\./([^"]*)"', text):
            check(f"the link {target} leads to something", pathlib.Path(target).exists())

        said = probe(page)
        check("12 rows", len(said["before"]) == 12, said)
        check("only long texts are broken", said["short"] == 1, said["short"])
        check("a long text has two lines or three", set(said["long"]) <= {2, 3} and said["long_width"] >= 300,
              said["long"], said["long_width"])
        gpus = [row[0] for row in said["up"]]
        check("sorted as numbers", gpus == sorted(gpus, key=int) and said["up"] != said["down"], gpus)
        check("sorted downwards", [row[0] for row in said["down"]] == gpus[::-1] and said["sorted"] == "descending")
        check("sorted as words", [row[1] for row in said["words"]] == sorted(row[1] for row in said["words"]))
        # A busy machine adds a column.
        check("filtered by two words", [row[:4] for row in said["found"]] == [["2", "bf16", "18028.0", "done"]], said["found"])
        check("values are texts, not markup", said["bold"] == 0 and said["title"] == "Report of scaling", said)
        light, dark = said, probe(page, "--blink-settings=preferredColorScheme=0")
        check("a light theme", light["background"] == "rgb(255, 255, 255)" == light["paper"], light)
        check("a dark theme", dark["background"] == "rgb(20, 24, 29)" == dark["paper"] != light["paper"], dark)
        check("dark charts have light text", dark["ink"] == "rgb(230, 233, 237)", dark["ink"])
        check("the verdict comes first", said["first"] == "verdict bad" and
              said["verdict"].startswith("\u2717 4 of 24 references missed, 1 of 12 workpackages failed"), said["verdict"])
        check("what was run is folded", said["folded"])
        # The sorted table has other places.
        check("cells that miss are marked", len(said["missed"]) == 3 and "\u2717" in said["sign"], said["missed"])
        check("tables of ten rows have a filter", said["filters"] == 2)
        check("charts have the page's width", min(said["charts"]) > 0.4 * WIDE and len(said["charts"]) == 2, said["charts"])
        narrow = probe(page, width=400)
        check("charts of a narrow page are drawn for it", max(narrow["charts"]) <= 400 and min(narrow["letters"]) > 9.5,
              narrow["charts"], narrow["letters"])
        check("it fits 400 pixels", narrow["width"] <= 400 == narrow["window"], narrow["width"], narrow["window"])

        dark_theme = ["--blink-settings=preferredColorScheme=0"]
        # A policy that refuses every script: what a browser shows of the page with JavaScript off.
        allowed = "script-src 'unsafe-inline'"
        check("the page's policy names scripts", text.count(allowed) == 1)
        silent = page.with_name("silent.html")
        silent.write_text(text.replace(allowed, "script-src 'none'"))
        shown = browse(silent, "--dump-dom")
        check("without JavaScript all rows are there and no dead controls",
              shown.count("<tr") == 2 * 13 and "<button" not in shown and "<input" not in shown)
        for name, shown, options, width in (("light", page, [], WIDE), ("dark", page, dark_theme, WIDE),
                                            ("narrow", None, [], 400), ("no_script", silent, [], WIDE)):
            picture = page.with_name(name + ".png")
            browse(shown or in_frame(page, width, 3000), f"--screenshot={picture}", *options, width=max(width, 500),
                   height=3000)
            check(f"a picture: {name}", picture.stat().st_size > 100_000, picture.stat().st_size)
            if keep:
                shutil.copy(picture, keep)
        browse(page, f"--print-to-pdf={page.with_name('printed.pdf')}")
        check("printed", page.with_name("printed.pdf").read_bytes().startswith(b"%PDF"))
        # Without its script the page has every row and no dead controls.
        check("without JavaScript", text.count("<tr") == 2 * 13 and "<button" not in text.split("<script>")[0]
              and "<input" not in text.split("<script>")[0])
        if keep:
            shutil.copy(page, keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
