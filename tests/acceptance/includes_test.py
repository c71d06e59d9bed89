"""The order of the folders, names and style: the tree keeps them, and scripts/check-includes, check-names and check-style
see what breaks them."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
SCRIPT = SOURCE / "scripts/check-includes"
NAMES = SOURCE / "scripts/check-names"
STYLE = SOURCE / "scripts/check-style"


def check(root, *options):
    ran = subprocess.run([SCRIPT, *options, root], capture_output=True, text=True, timeout=60)
    return ran.returncode, ran.stdout + ran.stderr


class Includes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for part in ("engine", "src", "steps"):
            shutil.copytree(SOURCE / part, self.root / part)
        (self.root / "docs").mkdir()
        shutil.copy(SOURCE / "docs/architecture.md", self.root / "docs")

    def add(self, name, header):
        with open(self.root / name, "a") as file:
            file.write(f'#include "{header}"\n')

    def test_the_tree_keeps_the_order(self):
        code, said = check(SOURCE)
        self.assertEqual(code, 0, said)

    def test_an_arrow_against_the_order(self):
        self.add("engine/expand/expand.cc", "engine/journal/journal.h")
        code, said = check(self.root)
        self.assertEqual(code, 1)
        self.assertIn("engine/expand/expand.cc: includes engine/journal/journal.h: "
                      "engine/journal comes after engine/expand", said)

    def test_a_further_include_of_steps(self):
        self.add("engine/check/check.cc", "steps/kinds.h")
        code, said = check(self.root)
        self.assertEqual(code, 1)
        self.assertIn("engine/check/check.cc: includes steps/kinds.h: ", said)

    def test_the_trainer_stays_outside(self):
        self.add("steps/kinds.cc", "src/config/config.h")
        self.assertEqual(check(self.root)[0], 1)

    def test_the_trainer_has_an_order_of_its_own(self):
        self.add("src/config/resolve_model.cc", "src/checkpoint/checkpoint.h")
        self.add("src/ops/norm/norm.h", "src/nn/block.h")
        code, said = check(self.root, "--order")
        self.assertEqual(code, 1)
        self.assertIn("src/checkpoint comes after src/config", said)
        self.assertIn("src/nn comes after src/ops", said)

    def test_rooms_of_a_folder_have_an_order(self):
        self.add("src/data/text/utf8.cc", "src/data/tokens/dataset.h")
        self.add("src/train/feed/loader.cc", "src/train/step/step_loop.h")
        code, said = check(self.root, "--order")
        self.assertEqual(code, 1)
        self.assertIn("src/data/tokens comes after src/data/text", said)
        self.assertIn("src/train/step comes after src/train/feed", said)

    def test_no_arrow_back_between_the_rooms_of_results(self):
        self.add("engine/results/read/scan.cc", "engine/results/rows/records.h")
        self.add("engine/results/table/marks.cc", "engine/results/judge/compare.h")
        code, said = check(self.root, "--order")
        self.assertEqual(code, 1)
        self.assertIn("results/rows comes after engine/results/read", said)
        self.assertIn("results/judge comes after engine/results/table", said)

    def test_a_file_beside_the_rooms(self):
        (self.root / "src/train/attic.cc").write_text('#include "src/train/run/output.h"\n')
        code, said = check(self.root, "--order")
        self.assertEqual(code, 1)
        self.assertIn("the folder src/train has no place", said)

    def test_only_the_program_registers_the_kinds_of_step(self):
        self.add("engine/cli/main.cc", "steps/pack.h")
        self.assertEqual(check(self.root, "--order")[0], 0)
        self.add("engine/cli/app.cc", "steps/pack.h")
        code, said = check(self.root, "--order")
        self.assertEqual(code, 1)
        self.assertIn("engine/cli/app.cc: includes steps/pack.h: ", said)

    def test_a_folder_without_a_place(self):
        (self.root / "engine/attic").mkdir()
        (self.root / "engine/attic/a.cc").write_text('#include "engine/base/text.h"\n')
        code, said = check(self.root)
        self.assertEqual(code, 1)
        self.assertIn("the folder engine/attic has no place", said)

    def names(self, root):
        ran = subprocess.run([NAMES, root], capture_output=True, text=True, timeout=60)
        return ran.returncode, ran.stdout + ran.stderr

    def test_each_type_has_one_definition(self):
        code, said = self.names(SOURCE)
        self.assertEqual(code, 0, said)
        for name, form in (("a", "struct Twin {"), ("b", "template <typename T>\nclass Twin final : public Base<T> {")):
            (self.root / f"engine/base/{name}.cc").write_text(f"namespace tally {{\n{form}\n}};\n}}  // namespace tally\n")
            (self.root / f"steps/{name}.cc").write_text(
                "namespace tally {\nnamespace {\nenum class Own {\n};\n}  // namespace\n}  // namespace tally\n")
        code, said = self.names(self.root)
        self.assertEqual(code, 1)
        self.assertIn("tally::Twin is defined 2 times: engine/base/a.cc:2, engine/base/b.cc:3: ", said)
        self.assertIn(" 1 names that would be mistaken", said)

    def test_no_function_hides_one_of_a_header(self):
        for name in ("grid", "json"):  # fleet_report.cc calls that of chart/markup.h
            with open(self.root / f"engine/report/{name}.cc", "a") as file:
                file.write("namespace tally {\nnamespace {\nstd::string escaped(const std::string& cell) {\n"
                           "  return cell;\n}\n}  // namespace\n}  // namespace tally\n")
        code, said = self.names(self.root)
        self.assertEqual(code, 1)
        self.assertIn("escaped is in the unnamed namespaces of engine/report/grid.cc:", said)
        self.assertIn(": escaped would be called in engine/report/fleet_report.cc in place of that in "
                      "engine/chart/markup.h: rename it", said)

    def test_no_type_hides_one_of_a_header(self):
        with open(self.root / "engine/execute/jobs/slurm.cc", "a") as file:
            file.write("namespace tally {\nnamespace {\nstruct Column {\n};\n}  // namespace\n}  // namespace tally\n")
        code, said = self.names(self.root)
        self.assertEqual(code, 1)
        self.assertRegex(said, r"jobs/slurm.cc:\d+: Column would be mistaken in engine/execute/\w+.cc for that of "
                               "engine/workflow/workflow.h: rename it")

    def test_functions_have_five_arguments_and_comments_a_subject(self):
        def style(root):
            ran = subprocess.run([STYLE, root], capture_output=True, text=True, timeout=60)
            return ran.returncode, ran.stdout + ran.stderr

        code, said = style(SOURCE)
        self.assertEqual(code, 0, said)
        head = "(const std::map<int, std::string>& a, int b, int c, int d, std::function<void(int, int)> e"
        (self.root / "engine/base/a.cc").write_text(
            f"namespace tally {{\n// What a function is. Its use.\nvoid f{head}) {{}}\nC::C{head},\n     int g)\n"
            f"    : a_(a) {{}}\n  bool g{head}, int h) const {{\n    call(1, 2, 3, 4, 5, 6);\n  }}\n// A text. Of what\n}}\n")
        (self.root / "src/device/a.cc").write_text(
            f"// How a thing is done.\n// A comment that goes on\n// of itself.\nint a;  // of the file\nvoid f{head}, int g);\n")
        code, said = style(self.root)
        self.assertEqual(code, 1)
        self.assertEqual([line.split(": ")[0] for line in said.splitlines()[1:]],
                         [f"engine/base/a.cc:{line}" for line in (4, 7, 2, 10)] + [f"src/device/a.cc:{line}" for line in (1, 4)], said)

    def test_the_drawing_is_renewed(self):
        page = self.root / "docs/architecture.md"
        page.write_text(page.read_text().replace("flowchart BT", "flowchart TB"))
        code, said = check(self.root)
        self.assertEqual(code, 1)
        self.assertIn("the drawing of the includes is old", said)
        check(self.root, "--write")
        self.assertNotIn("drawing", check(self.root)[1])


if __name__ == "__main__":
    unittest.main()
