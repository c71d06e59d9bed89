#!/usr/bin/env python3
"""Plants faults, one at a time, in one consumer of the workpackages; property_test is to find each.

  mutations.py SOURCE BUILD [NAME...]

BUILD is a directory that CMake made for Ninja, in which property_test is built. Neither directory is
changed: the faulty file is compiled elsewhere and linked in front of the library that has it. The
last run, of 2026-11-24 (seeds 0 to 1500; one is beyond the 300 of every day):

  found by seed 7   views: a parameter hides what its kind of step adds
  found by seed 0   views: the parents' names stand at the wrong ids
  found by seed 2   views: what a child exports is forgotten
  found by seed 0   plan, script and --logs: work_dir is ignored
  found by seed 2   iterations: the parents' count for nothing
  found by seed 2   run: a child's exported parameters are not in its environment
  found by seed 132 continue: a value's place in its list is forgotten
  found by seed 5   continue: work_dir is forgotten
  found by seed 80  continue: all are first repetitions
  found by seed 9   continue: what has ended is no parent any more
  found by seed 5   continue: children are made twice
  found by seed 6   zip: lists cross
  found by seed 598 script: shell values that wait for an id stay open
  found by seed 0   result: a parent's values are its child's
  14 of 14 faults found
"""
import re
import subprocess
import sys
import tempfile

SEEDS = ("0", "1500")

# name: file, then what stands there and what is put in its place, once or more
MUTATIONS = {
    "views: a parameter hides what its kind of step adds": (
        "engine/workpackage/values.cc",
        "const std::string* hiding = find_in(added_, name);",
        "if (benchmark_ == nullptr) break;\n"
        "    const std::string* hiding = find_in(added_, name);"),
    "views: the parents' names stand at the wrong ids": (
        "engine/results/read/views.cc",
        "parameters.parents.push_back({step_of(parent), parent});",
        "parameters.parents.push_back({step_of(parent), view.parents.front()});"),
    "views: what a child exports is forgotten": (
        "engine/workpackage/values.cc",
        "if (const Parameter* parameter = definition(name)) add_exported(*parameter, name, value);",
        "if (!stored_.parents.empty()) break;\n"
        "    if (const Parameter* parameter = definition(name)) add_exported(*parameter, name, value);"),
    "plan, script and --logs: work_dir is ignored": (
        "engine/workpackage/generator.cc",
        "  const std::string problem = locate(step, expander_, values, &workpackage);",
        "  std::string problem;\n"
        "  if (purpose_ == Purpose::run) problem = locate(step, expander_, values, &workpackage);",
        "  const std::string problem = locate(step, expander, values, workpackage);\n"
        "  return problem.empty()",
        "  const std::string problem;\n"
        "  return problem.empty()"),
    "iterations: the parents' count for nothing": (
        "engine/workpackage/generator.cc",
        "family.base * copies.total() + repetition",
        "0 * family.base + repetition"),
    "run: a child's exported parameters are not in its environment": (
        "engine/workspace/setup_inputs.cc",
        "for (const auto& [name, value] : values.exported()) changes[name] = value;",
        "if (step.depend.empty())\n"
        "    for (const auto& [name, value] : values.exported()) changes[name] = value;"),
    "continue: a value's place in its list is forgotten": (
        "engine/execute/graph.cc",
        "value, stored.index[i], &binding)",
        "value, Binding::no_index, &binding)"),
    "continue: work_dir is forgotten": (
        "engine/execute/graph.cc",
        "workpackage.wp.work_dir = std::move(stored.work_dir);",
        "workpackage.wp.work_dir.clear();"),
    "continue: all are first repetitions": (
        "engine/workpackage/generator.cc",
        "workpackage->repetition = workpackage->iteration % copies.total() / copies.iterations;",
        "workpackage->repetition = 0;"),
    "continue: what has ended is no parent any more": (
        "engine/workpackage/generator.cc",
        "  finished_.add(sink_.at(id));",
        "  if (ended_before_.count(id) == 0) finished_.add(sink_.at(id));"),
    "continue: children are made twice": (
        "engine/workpackage/generator.cc",
        "if (adopted_[child].count(parents) == 0) make(",
        "make("),
    "zip: lists cross": (
        "engine/expand/expansion.cc",
        "  for (const std::vector<Text>& group : set.zip) {",
        "  for (const std::vector<Text>& group : std::vector<std::vector<Text>>()) {"),
    "script: shell values that wait for an id stay open": (
        "engine/plan/generated_files.cc",
        "  TRY(finish_planned(benchmark, expander, &workpackage));\n",
        ""),
    "result: a parent's values are its child's": (
        "engine/results/rows/row_maker.cc",
        "parameters_.add(*workpackage, false, values, records);",
        "parameters_.add(shown, false, values, records);"),
}


def run(command, directory):
    return subprocess.run(command, cwd=directory, shell=True, capture_output=True, text=True,
                          check=False)


def faulty_text(source, name):
    """The file's path below SOURCE and its text with the fault; None where the lines are not there."""
    path, *edits = MUTATIONS[name]
    with open(f"{source}/{path}", encoding="utf-8") as file:
        text = file.read()
    for old, new in zip(edits[::2], edits[1::2]):
        if text.count(old) != 1:
            return path, None
        text = text.replace(old, new)
    return path, text


def try_one(source, build, commands, name, folder):
    path, text = faulty_text(source, name)
    if text is None:
        return "the line is not there (or not once): mend the list"
    faulty, made, program = f"{folder}/faulty.cc", f"{folder}/faulty.o", f"{folder}/property_test"
    with open(faulty, "w", encoding="utf-8") as file:
        file.write(text)
    # As another file of its library is: a unity build has no command for this one.
    library = "/".join(path.split("/")[:2])
    compile_it = next(line for line in commands if f" -o {library}/CMakeFiles/" in line)
    compile_it = re.sub(r" -MD .*", f" -O0 -Wno-error -o {made} -c {faulty}", compile_it)
    link = commands[-1].replace(" -o tests/property_test ",
                                f" {made} -Wl,--allow-multiple-definition -o {program} ")
    for command in (compile_it, link):
        done = run(command, build)
        if done.returncode != 0:
            return "does not compile: " + (re.findall(r".*error.*", done.stderr) or ["?"])[0]
    done = run(f"timeout 600 {program} --first {SEEDS[0]} {SEEDS[1]}", build)
    if done.returncode == 0:
        return "NOT FOUND"
    return "found by " + re.sub(r"/\S*tally-test-\w+", "...", done.stdout.strip().split("\n")[0])


def main():
    source, build = sys.argv[1:3]
    names = sys.argv[3:] or list(MUTATIONS)
    commands = run("ninja -t commands property_test", build).stdout.strip().split("\n")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            verdict = try_one(source, build, commands, name, folder)
            bad += not verdict.startswith("found by")
            print(f"  {name}\n    {verdict[:110]}", flush=True)
    print(f"{len(names) - bad} of {len(names)} faults found")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
