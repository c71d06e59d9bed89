"""The documents: every link leads somewhere, every command is one that the programs know, and the site is built.

docs/tutorial.md, docs/tutorial-jube.md and the reference's examples are run by tutorial_test.py.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unicodedata
import unittest

SOURCE, PYTHON, PROGRAMS = pathlib.Path(sys.argv[1]), sys.argv[2], [pathlib.Path(path) for path in sys.argv[3:]]
del sys.argv[1:]

PAGES = sorted(page for pattern in ("*.md", "docs/*.md", "workflows/*.md", "bench/*.md", "bench/*/*.md", "packaging/**/*.md")
               for page in SOURCE.glob(pattern))


def without_code(text):
    """The text with every fenced block and code span emptied."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "``", text)


def anchors(text):
    """What GitHub makes of the headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        kept = "".join(c for c in heading if c in " -_" or unicodedata.category(c)[0] in "LN")
        found.add(kept.replace(" ", "-"))
    return found


class Links(unittest.TestCase):
    def test_every_link_leads_to_a_file_and_a_heading(self):
        for page in PAGES:
            text = without_code(page.read_text())
            targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[\w+\]: (\S+)$", text, re.M)
            for target in targets:
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                linked = (page.parent / path).resolve() if path else page
                with self.subTest(page=page.relative_to(SOURCE).as_posix(), link=target):
                    self.assertTrue(linked.exists(), "there is no such file")
                    if anchor and linked.suffix == ".md":
                        self.assertIn(anchor, anchors(linked.read_text()))

    def test_a_missing_heading_is_seen(self):
        self.assertEqual(anchors("# One `two`: three\n```\n# not\n```\n"), {"one-two-three"})


def known_words(program):
    """{command: its options}, of the completion that the program prints; "" has those of every command."""
    text = subprocess.run([program, "complete", "bash"], capture_output=True, text=True, check=True).stdout
    known = {"": set(re.search(r"options\+=' ([^']*)'", text)[1].split())}
    for labels, options in re.findall(r"^    ((?:'[^']*'(?: \| )?)+)\) options='([^']*)'", text, re.M):
        for label in re.findall(r"'([^']*)'", labels):
            known.setdefault(label, set()).update(options.split())
    return known


def commands(text):
    """Command lines of blocks and of code spans that begin with one of our programs."""
    lines = []
    for block in re.findall(r"^```(?:sh|console|)\n(.*?)^```$", text, re.M | re.S):
        block = re.sub(r"\\\n\s*", " ", block)
        lines += block.splitlines()
    lines += [line[4:] for line in text.splitlines() if line.startswith("    ") and " tally" in f" {line[4:]}"]
    lines += re.findall(r"`((?:tally|tally-train) [^`]*)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    for line in lines:
        line = re.sub(r"^\$ ", "", line.strip())
        if found := re.match(r"(?:\w+=\S+ |mpirun [^&|;]*?|srun [^&|;]*?)*(?:\S*/)?(tally|tally-train) (?=\S)(.*)$", line):
            yield found[1], re.split(r"\s[|>]|&&|;| # |\s#\s*|\s#", found[2])[0]


class Commands(unittest.TestCase):
    known = {program.name: known_words(program) for program in PROGRAMS}

    def unknown(self, program, rest):
        """What the program does not know of a command line, or an empty text."""
        try:
            words = shlex.split(rest.replace("...", ""))
        except ValueError:
            return ""  # prose
        known = self.known[program]
        command = next((word for word in words if word in known and not word.startswith("-")), "")
        first = words[0] if words else ""
        if program == "tally" and re.fullmatch(r"[a-z][a-z-]*", first) and first not in known:
            return f"there is no command '{first}'"
        for word in words:
            if word == "--":
                break
            if not re.match(r"--?[A-Za-z]", word):
                continue
            name = word.split("=")[0]
            if name not in known[""] | known.get(command, set()) and not self.letters(name, known, command):
                return f"'{command}' has no option {name}"
        return ""

    @staticmethod
    def letters(name, known, command):
        """-vv, or -j4."""
        short = known[""] | known.get(command, set())
        return not name.startswith("--") and name[:2] in short

    def test_every_command_is_known(self):
        count = 0
        # CHANGELOG speaks of versions; records and history of what was.
        for page in [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "workflows/README.md",
                     *sorted(SOURCE.glob("docs/*.md"))]:
            for program, rest in commands(page.read_text()):
                if program in self.known:
                    count += 1
                    with self.subTest(page=page.name, command=f"{program} {rest}"):
                        self.assertEqual(self.unknown(program, rest), "")
        self.assertGreater(count, 60)

    def test_an_unknown_option_is_seen(self):
        self.assertNotEqual(self.unknown("tally", "run a.yaml --nothing"), "")
        self.assertNotEqual(self.unknown("tally", "walk a.yaml"), "")
        self.assertEqual(self.unknown("tally", "run a.yaml -n --tag slurm"), "")

    def test_dry_runs_of_the_pages_work(self):
        """Commands that write nothing are run, in a copy of the shipped workflows."""
        ran = 0
        tally = next(program for program in PROGRAMS if program.name == "tally")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("workflows", "templates"):
                os.symlink(SOURCE / name, f"{folder}/{name}")
            for page in [SOURCE / "README.md", SOURCE / "workflows/README.md", *sorted(SOURCE.glob("docs/*.md"))]:
                for program, rest in commands(page.read_text()):
                    words = [] if program != "tally" else shlex.split(rest)
                    dry = words[:1] == ["validate"] or (words[:1] == ["run"] and "-n" in words)
                    # NAME stands for any of them.
                    if not dry or not any(re.match(r"workflows/(?!NAME)", word) for word in words):
                        continue
                    # It asks the planner, which is tally-train.
                    if any("my-cluster" in word for word in words) and not any(p.name == "tally-train" for p in PROGRAMS):
                        continue
                    ran += 1
                    done = subprocess.run([tally, *words], cwd=folder, capture_output=True, text=True, timeout=120)
                    with self.subTest(page=page.name, command=rest):
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(ran, 4)


FILE = r"[\w./-]+\.(?:h|cc|cu|cuh|cmake|py|yaml|json|md|txt)"


def missing_code(text, sources):
    """What a page says of the sources that is not so: files that are not there, functions that no file has, and functions
    that the named file does not have. `sources`: texts by path. NAME and OP stand for any of them."""
    text = re.sub(r"\b(?=\w*(?:NAME|OP))[\w/]+(?:\.\w+|\(\))", "", text)
    words = set().union(*(set(re.findall(r"\w+", each)) for each in sources.values()))

    def files(name):
        return [path for path in sources if path == name or path.endswith("/" + name.removeprefix("../"))]

    wrong = [f"there is no file {name}" for name in re.findall(rf"`({FILE})`", text) if not files(name)]
    wrong += [f"there is no function {name}()" for name in re.findall(r"`(?:\w+::)*(\w+)\([^()`\n]*\)`", text) if name not in words]
    for name, file in re.findall(rf"`(?:\w+::)*(\w+)\([^()`\n]*\)`\s+(?:in|of|\()\s*`({FILE})`", text):
        if files(file) and not any(re.search(rf"\b{name}\b", sources[path]) for path in files(file)):
            wrong.append(f"{file} has no {name}()")
    return wrong


def story(text):
    """The left column of `tally run`'s story as code spans."""
    block = re.search(r"^```\n(tally run FILE.*?)^```$", text, re.M | re.S)[1]
    left = "\n".join(line[:62] for line in block.splitlines())
    return " ".join(f"`{name}()`" for name in re.findall(r"(\w+)\(", left)) + " " + \
        " ".join(f"`{path}`" for path in re.findall(r"cli/\w+\.cc", left))


class Code(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sources = {path.relative_to(SOURCE).as_posix(): path.read_text(errors="replace")
                       for part in ("engine", "steps", "src", "tests", "scripts", "cmake", "bench", "docs", "templates", "workflows")
                       for path in SOURCE.glob(f"{part}/**/*")
                       if path.is_file() and path.suffix in (".h", ".cc", ".cu", ".cuh", ".cmake", ".py", ".yaml", ".json", ".md", ".txt")}

    def test_files_and_functions_of_the_pages_for_developers_are_there(self):
        for page in ("CONTRIBUTING.md", "docs/architecture.md"):
            text = (SOURCE / page).read_text()
            found = missing_code(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), self.sources)
            # Beside the sources: what scripts and other programs make.
            self.assertEqual([each for each in found if not re.search(r"(?:record|config|tokenizer)\.json$", each)], [], page)

    def test_the_story_of_a_run_is_that_of_the_code(self):
        text = story((SOURCE / "docs/architecture.md").read_text())
        self.assertGreater(text.count("()"), 8)
        engine = {path: each for path, each in self.sources.items() if path.startswith("engine/")}
        self.assertEqual(missing_code(text, engine), [])

    def test_a_wrong_name_is_seen(self):
        sources = {"engine/a/b.cc": "int here();", "engine/c.h": "int there();"}
        self.assertEqual(missing_code("`here()` of `a/b.cc`, `engine/c.h`, `add_NAME()`", sources), [])
        self.assertEqual(missing_code("`gone()` `there()` in\n  `a/b.cc` `d.cc`", sources),
                         ["there is no file d.cc", "there is no function gone()", "a/b.cc has no there()"])


class Site(unittest.TestCase):
    def test_the_site_is_built_and_can_be_searched(self):
        there = subprocess.run([PYTHON, "-c", "import mkdocs, material"], capture_output=True)
        if there.returncode != 0:
            self.skipTest("there is no mkdocs; scripts/setup --tests installs it")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PYTHON, "-m", "mkdocs", "build", "--strict", "-q", "-d", folder, "-f",
                                   SOURCE / "packaging/site/mkdocs.yml"], capture_output=True, text=True, timeout=200,
                                  env=dict(os.environ, NO_MKDOCS_2_WARNING="1"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            found = json.loads((pathlib.Path(folder) / "search/search_index.json").read_text())
            places = {entry["location"].split("#")[0] for entry in found["docs"]}
            for page in SOURCE.glob("docs/*.md"):
                self.assertIn(page.with_suffix(".html").name, places)
            self.assertTrue(any("journal" in entry["text"] for entry in found["docs"]))


if __name__ == "__main__":
    unittest.main()
