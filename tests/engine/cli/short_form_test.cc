// The short form of a workflow, through the program: what it stands for, what it does, and that a
// file of JUBE's stays one.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

struct Pair {
  const char* name;
  const char* short_form;
  const char* long_form;  // by hand
};

const Pair kPairs[] = {
    {"parameters, a build of files beside the workflow, a run with repeats",
     "name: pi\n"
     "parameters: {terms: [1000000, 2000000]}\n"
     "build: cc -O2 -o pi pi.c\n"
     "run: build/pi $terms\n"
     "repeat: 6\n"
     "metrics: {seconds: {_: 'time = $jube_pat_fp', unit: s, better: lower}}\n",
     "name: pi\n"
     "outpath: pi_run\n"
     "parameterset: {name: parameters, parameter: {name: terms, type: int, _: [1000000, "
     "2000000]}}\n"
     "fileset: {name: build_files, copy: pi.c}\n"
     "step:\n"
     "  - {name: build, kind: build, use: build_files, do: cc -O2 -o pi pi.c}\n"
     "  - {name: run, kind: run, depend: build, use: parameters, repeat: 6, launch: build/pi "
     "$terms}\n"
     "patternset: {name: metrics, pattern: {name: seconds, type: float, _: 'time = $jube_pat_fp', "
     "unit: s}}\n"
     "analyser: {name: metrics, use: metrics, analyse: {step: run, file: stdout}}\n"
     "result: {use: metrics, table: {name: pi, style: pretty, column: [terms, {_: seconds, better: "
     "lower, uncertainty: ci}]}}\n"},
    {"names that are words elsewhere, tags, texts that YAML would change",
     "name: p\n"
     "outpath: own\n"
     "parameters:\n"
     "  name: [x, \"1.10\"]\n"
     "  tag: 1.10\n"
     "  on: 5\n"
     "  n: [{tag: small, _: 1}, {tag: \"!small\", type: int, _: \"1,2\"}]\n"
     "  m: {mode: python, _: $n * 2}\n"
     "run: echo $name $tag $on $m\n"
     "on: {tag: slurm, _: slurm}\n"
     "env: {A: 1}\n"
     "resources: {nodes: 1}\n"
     "metrics: {x: 'x $jube_pat_int'}\n",
     "name: p\n"
     "outpath: own\n"
     "parameterset:\n"
     "  name: parameters\n"
     "  parameter:\n"
     "    - {name: name, _: [x, \"1.10\"]}\n"
     "    - {name: tag, _: 1.10}\n"
     "    - {name: \"on\", type: int, _: 5}\n"
     "    - {name: n, type: int, tag: small, _: 1}\n"
     "    - {name: n, tag: \"!small\", type: int, _: \"1,2\"}\n"
     "    - {name: m, mode: python, _: $n * 2}\n"
     "step: {name: run, kind: run, use: parameters, platform: {tag: slurm, _: slurm}, env: {A: 1}, "
     "resources: {nodes: 1}, launch: echo $name $tag $on $m}\n"
     "patternset: {name: metrics, pattern: {name: x, type: float, _: 'x $jube_pat_int'}}\n"
     "analyser: {name: metrics, use: metrics, analyse: {step: run, file: stdout}}\n"
     "result: {use: metrics, table: {name: p, style: pretty, column: [name, tag, \"on\", {_: n, "
     "tag: "
     "(small)|(!small)}, m, x]}}\n"},
    {"a build for the parameters that it names, and for those that go with them",
     "name: p\n"
     "parameters: {opt: [-O0, -O2], label: [slow, fast], flags: \"$opt -g\", n: [1, 2]}\n"
     "zip: [opt, label]\n"
     "where: n > 1 and opt != '-O0'\n"
     "build: [echo $flags >flags, cat flags]\n"
     "run: cat build/flags\n"
     "metrics: {o: {type: string, _: '-O$jube_pat_wrd'}}\n",
     "name: p\n"
     "outpath: p_run\n"
     "parameterset:\n"
     "  - {name: build_parameters, parameter: [{name: opt, _: [-O0, -O2]}, {name: label, _: [slow, "
     "fast]}, {name: flags, _: $opt -g}], zip: [opt, label]}\n"
     "  - {name: parameters, parameter: {name: n, type: int, _: [1, 2]}, where: n > 1 and opt != "
     "'-O0'}\n"
     "step:\n"
     "  - {name: build, kind: build, use: build_parameters, do: [echo $flags >flags, cat flags]}\n"
     "  - {name: run, kind: run, depend: build, use: parameters, launch: cat build/flags}\n"
     "patternset: {name: metrics, pattern: {name: o, type: string, _: '-O$jube_pat_wrd'}}\n"
     "analyser: {name: metrics, use: metrics, analyse: {step: run, file: stdout}}\n"
     "result: {use: metrics, table: {name: p, style: pretty, column: [opt, label, flags, n, "
     "o]}}\n"},
    {"files: what commands name beside the workflow, and what `files` names",
     "name: p\n"
     "parameters: {n: [1, 2]}\n"
     "files: [more.txt]\n"
     "build: make -C folder --file=go.sh\n"
     "run: sh ./go.sh folder/in.$n absent.txt build/x '*' \\* .* 'pi.?' more.txt >pi.c\n",
     "name: p\n"
     "outpath: p_run\n"
     "parameterset: {name: parameters, parameter: {name: n, type: int, _: [1, 2]}}\n"
     "fileset:\n"
     "  - {name: build_files, copy: [more.txt, folder, go.sh]}\n"
     "  - {name: files, link: more.txt, copy: [folder, go.sh]}\n"
     "step:\n"
     "  - {name: build, kind: build, use: build_files, do: make -C folder --file=go.sh}\n"
     "  - {name: run, kind: run, depend: build, use: [parameters, files], launch: "
     "\"sh ./go.sh folder/in.$n absent.txt build/x '*' \\\\* .* 'pi.?' more.txt >pi.c\"}\n"
     "analyser: {name: metrics, analyse: {step: run}}\n"
     "result: {use: metrics, table: {name: p, style: pretty, column: n}}\n"},
    {"metrics that tags choose from, each with its own column",
     "name: p\n"
     "run: echo x 1 y 2\n"
     "metrics:\n"
     "  v: [{tag: small, _: 'x $jube_pat_int', type: int, reference: '<= 1'}, {tag: '!small', _: "
     "'y "
     "$jube_pat_int', title: V}]\n",
     "name: p\n"
     "outpath: p_run\n"
     "step: {name: run, kind: run, launch: echo x 1 y 2}\n"
     "patternset: {name: metrics, pattern: [{name: v, tag: small, type: int, _: 'x "
     "$jube_pat_int'}, "
     "{name: v, type: float, tag: '!small', _: 'y $jube_pat_int'}]}\n"
     "analyser: {name: metrics, use: metrics, analyse: {step: run, file: stdout}}\n"
     "result: {use: metrics, table: {name: p, style: pretty, column: [{_: v, tag: small, "
     "reference: "
     "'<= 1'}, {_: v, title: V, tag: '!small'}]}}\n"},
    {"metrics of several files, computed ones, references and a chart",
     "name: p\n"
     "parameters: {n: [1, 2]}\n"
     "run: ./go.sh\n"
     "metrics:\n"
     "  a: {_: 'a $jube_pat_fp', reference: '> 1'}\n"
     "  b: {_: 'b $jube_pat_fp', file: log, title: B}\n"
     "  c: {expression: a / b, unit: m/s}\n"
     "chart: {name: c, x: n, y: a}\n",
     "name: p\n"
     "outpath: p_run\n"
     "parameterset: {name: parameters, parameter: {name: n, type: int, _: [1, 2]}}\n"
     "fileset: {name: files, copy: go.sh}\n"
     "step: {name: run, kind: run, use: [parameters, files], launch: ./go.sh}\n"
     "patternset:\n"
     "  - {name: metrics, pattern: {name: a, type: float, _: 'a $jube_pat_fp'}}\n"
     "  - {name: metrics_2, pattern: {name: b, type: float, _: 'b $jube_pat_fp'}}\n"
     "analyser: {name: metrics, analyse: {step: run, file: [{use: metrics, _: stdout}, {use: "
     "metrics_2, _: log}]}}\n"
     "result:\n"
     "  use: metrics\n"
     "  table: {name: p, style: pretty, column: [n, {_: a, reference: '> 1'}, {_: b, title: B}, "
     "{_: "
     "c, expression: a / b, title: 'c[m/s]'}]}\n"
     "  chart: {name: c, x: n, y: a}\n"},
    {"a rule about the build's parameters, exported ones, a name as it is written",
     "name: 1.10\n"
     "parameters: {o: [1, 2], V: {export: true, _: [3, 4]}}\n"
     "where: o + V > 4\n"
     "build: echo $o $$V\n"
     "run: cat build/stdout\n"
     "repeat: 3\n"
     "metrics: {x: {_: '$jube_pat_int', relative_to: {o: 1}}}\n",
     "name: 1.10\n"
     "outpath: \"1.10_run\"\n"
     "parameterset: {name: build_parameters, parameter: [{name: o, type: int, _: [1, 2]}, {name: "
     "V, "
     "type: int, export: true, _: [3, 4]}], where: o + V > 4}\n"
     "step:\n"
     "  - {name: build, kind: build, use: build_parameters, do: echo $o $$V}\n"
     "  - {name: run, kind: run, depend: build, repeat: 3, launch: cat build/stdout}\n"
     "patternset: {name: metrics, pattern: {name: x, type: float, _: '$jube_pat_int'}}\n"
     "analyser: {name: metrics, use: metrics, analyse: {step: run, file: stdout}}\n"
     "result: {use: metrics, table: {name: 1.10, style: pretty, column: [o, V, {_: x, relative_to: "
     "{o: 1}}]}}\n"},
    {"on the way to the long form: an analyser and a result of one's own, keys of the step",
     "name: p\n"
     "parameters: {n: 1}\n"
     "run: {do: [echo 1], launch: echo x $n, timeout: 5m}\n"
     "metrics: {x: 'x $jube_pat_int'}\n"
     "analyser: {name: a, use: metrics, analyse: {step: run, file: stdout}}\n"
     "result: {use: a, table: {name: t, column: [x]}}\n",
     "name: p\n"
     "analyser: {name: a, use: metrics, analyse: {step: run, file: stdout}}\n"
     "result: {use: a, table: {name: t, column: [x]}}\n"
     "outpath: p_run\n"
     "parameterset: {name: parameters, parameter: {name: n, type: int, _: 1}}\n"
     "step: {name: run, kind: run, use: parameters, do: [echo 1], launch: echo x $n, timeout: 5m}\n"
     "patternset: {name: metrics, pattern: {name: x, type: float, _: 'x $jube_pat_int'}}\n"},
    {"rows, repeated, with a chart over the matched sizes",
     "name: p\n"
     "parameters: {n: [1, 2]}\n"
     "run: ./go.sh $n\n"
     "repeat: 6\n"
     "rows: [size, op]\n"
     "metrics:\n"
     "  size: {_: '^$jube_pat_int ', type: int}\n"
     "  op: {_: '^\\d+ (\\w+)', type: string}\n"
     "  lat: {_: '$jube_pat_fp us', unit: us, better: lower, reference: '< 5'}\n"
     "  first: {_: '$jube_pat_fp us', statistic: min}\n"
     "chart: {name: c, x: size, y: lat, series: op, log: x}\n",
     "name: p\n"
     "outpath: p_run\n"
     "parameterset: {name: parameters, parameter: {name: n, type: int, _: [1, 2]}}\n"
     "fileset: {name: files, copy: go.sh}\n"
     "step: {name: run, kind: run, use: [parameters, files], repeat: 6, launch: ./go.sh $n}\n"
     "patternset: {name: metrics, pattern: [{name: size, type: int, _: '^$jube_pat_int '}, {name: "
     "op, type: string, _: '^\\d+ (\\w+)'}, {name: lat, type: float, _: '$jube_pat_fp us', unit: "
     "us}, "
     "{name: first, type: float, _: '$jube_pat_fp us'}]}\n"
     "analyser: {name: metrics, use: metrics, rows: [size, op], analyse: {step: run, file: "
     "stdout}}\n"
     "result:\n"
     "  use: metrics\n"
     "  table: {name: p, style: pretty, column: [n, size, op, {_: lat, better: lower, reference: "
     "'< "
     "5', uncertainty: ci}, {_: first, statistic: min}]}\n"
     "  chart: {name: c, x: size, y: lat, series: op, log: x}\n"},
    {"keys of a run step beside `run`, lists of resources",
     "name: p\n"
     "run: ./go.sh\n"
     "on: slurm\n"
     "resources: {nodes: [1, 2], tasks_per_node: 4, time: 5m}\n"
     "env: {OMP_NUM_THREADS: 2}\n"
     "modules: [gcc, openmpi]\n"
     "retry: 2\n"
     "metrics: {t: {_: 't = $jube_pat_fp', unit: s}, speedup: {expression: baseline.t / t, "
     "relative_to: {nodes: 1}}}\n",
     "name: p\n"
     "outpath: p_run\n"
     "fileset: {name: files, copy: go.sh}\n"
     "step: {name: run, kind: run, use: files, platform: slurm, resources: {nodes: [1, 2], "
     "tasks_per_node: 4, time: 5m}, env: {OMP_NUM_THREADS: 2}, modules: [gcc, openmpi], retry: "
     "2, launch: ./go.sh}\n"
     "patternset: {name: metrics, pattern: {name: t, type: float, _: 't = $jube_pat_fp', unit: "
     "s}}\n"
     "analyser: {name: metrics, use: metrics, analyse: {step: run, file: stdout}}\n"
     "result: {use: metrics, table: {name: p, style: pretty, column: [nodes, t, {_: speedup, "
     "expression: baseline.t / t, relative_to: {nodes: 1}}]}}\n"},
    {"no name: that of the file", "run: echo 1\n",
     "name: short\n"
     "outpath: short_run\n"
     "step: {name: run, kind: run, launch: echo 1}\n"},
    {"one step of the long form, which needs no `use`, analyser and result",
     "name: p\n"
     "outpath: r\n"
     "step: {name: s, kind: run, do: echo x $n}\n"
     "parameters: {n: [1, 2]}\n"
     "metrics: {x: {type: int, _: 'x $jube_pat_int'}}\n",
     "name: p\n"
     "outpath: r\n"
     "step: {name: s, kind: run, do: echo x $n, use: parameters}\n"
     "parameterset: {name: parameters, parameter: {name: n, type: int, _: [1, 2]}}\n"
     "patternset: {name: metrics, pattern: {name: x, type: int, _: 'x $jube_pat_int'}}\n"
     "analyser: {name: metrics, use: metrics, analyse: {step: s, file: stdout}}\n"
     "result: {use: metrics, table: {name: p, style: pretty, column: [n, x]}}\n"},
};

// What lies beside the workflows.
void lay_files(const Shell& shell) {
  shell.sh("mkdir folder && touch pi.c more.txt folder/in.1 folder/Makefile go.sh");
}

std::string shown(const Shell& shell, const char* file) {
  const Ran ran = shell.tally(std::string("show ") + file);
  CHECK_MESSAGE(ran.code == 0, ran.err);
  return ran.out;
}

}  // namespace

TEST_CASE("the long form of a short one is a file by hand, byte for byte") {
  for (const Pair& pair : kPairs) {
    CAPTURE(pair.name);
    const Shell shell;
    lay_files(shell);
    shell.file("short.yaml", pair.short_form);
    shell.file("long.yaml", pair.long_form);
    const std::string text = shown(shell, "short.yaml");
    CHECK(text == shown(shell, "long.yaml"));
    shell.file("shown.yaml", text);
    CHECK(shown(shell, "shown.yaml") == text);
  }
}

TEST_CASE("a short form runs: parameters, a build that is reused, medians with their interval") {
  const Shell shell;
  shell.file("speed.sh", "echo rate = $1.5\n");
  shell.file("b.yaml",
             "name: b\n"
             "parameters: {n: [1, 2], kind: [a, b]}\n"
             "build: [cp speed.sh program, echo $kind >kind]\n"
             "run: sh build/program $n\n"
             "repeat: 6\n"
             "metrics: {rate: {_: 'rate = $jube_pat_fp', unit: x/s, better: higher}}\n");
  const Ran first = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(first.code == 0, (first.out + first.err));
  CHECK_MESSAGE(has(first.out,
                    "| n | kind | rate[x/s] | rate_ci_low | rate_ci_high | repeats |\n"
                    "|---|------|-----------|-------------|--------------|---------|\n"
                    "| 1 |    a |       1.5 |         1.5 |          1.5 |  6 of 6 |\n"
                    "| 2 |    a |       2.5 |         2.5 |          2.5 |  6 of 6 |\n"
                    "| 1 |    b |       1.5 |         1.5 |          1.5 |  6 of 6 |\n"
                    "| 2 |    b |       2.5 |         2.5 |          2.5 |  6 of 6 |\n"),
                (first.out + first.err));
  CHECK(has(shell.tally("run -n b.yaml").out, "#000000 build  kind=a  reused, the same as in "));
  shell.file("speed.sh", "echo rate = 7.5\n");
  CHECK(has(shell.tally("run -n b.yaml").out, "#000000 build  kind=a  will run: "));
  // The run that is there is shown by its own definitions, wherever the file is by now.
  CHECK(shell.sh("rm b.yaml speed.sh; $TALLY result b_run").code == 0);
}

TEST_CASE("a command that writes to a file beside the workflow writes to its copy") {
  const Shell shell;
  shell.file("out.txt", "mine\n");
  shell.file("b.yaml",
             "name: b\nrun: sh -c 'echo x 1 | tee out.txt' out.txt\n"
             "metrics: {x: 'x $jube_pat_int'}\n");
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(shell.content("out.txt") == "mine\n");
  CHECK(shell.content("b_run/000000/000000_run/work/out.txt") == "x 1\n");
}

TEST_CASE("points that write into a folder that their command names do not share it") {
  const Shell shell;
  shell.sh("mkdir case && echo x >case/in");
  shell.file("b.yaml",
             "name: b\nparameters: {n: [1, 2]}\n"
             "run: cd case && echo v=$n >out.txt\n"
             "metrics: {v: {_: 'v=$jube_pat_int', type: int, file: case/out.txt}}\n");
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out, "| 1 | 1 |\n| 2 | 2 |\n"), (ran.out + ran.err));
  CHECK(!shell.exists("case/out.txt"));
}

TEST_CASE(
    "a file that a metric is read from is the run's, also if an old one lies beside the workflow") {
  const Shell shell;
  shell.file("results.csv", "v=8\n");
  shell.file("b.yaml",
             "name: b\nparameters: {n: [1, 2]}\n"
             "run: sh -c 'echo v=$n | tee -a results.csv' results.csv stdout\n"
             "metrics: {v: {_: 'v=$jube_pat_int', type: int, file: results.csv}}\n");
  shell.file("stdout", "v=8\n");
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out, "| 1 | 1 |\n| 2 | 2 |\n"), (ran.out + ran.err));
  CHECK(shell.content("results.csv") == "v=8\n");
}

TEST_CASE("mistakes in the short form point into it") {
  struct Mistake {
    const char* text;
    const char* message;
  };
  const Mistake mistakes[] = {
      {"parameters: 5\nrun: echo\n",
       "b.yaml:2:13: error: 'parameters' takes names with their values\n"
       "    parameters: 5\n"
       "                ^\n"
       "hint: parameters: {size: [1, 2]}\n"},
      {"run: echo\nmetrics: ['a $jube_pat_fp']\n",
       "b.yaml:3:10: error: 'metrics' takes names with their values\n"
       "    metrics: ['a $jube_pat_fp']\n"
       "             ^\n"
       "hint: metrics: {seconds: 'time = $jube_pat_fp'}\n"},
      {"run: [echo, ls]\n",
       "b.yaml:2:6: error: 'run' takes a command, or the keys of a step\n"
       "    run: [echo, ls]\n"
       "         ^\n"
       "hint: commands before it: run: {do: [...], launch: COMMAND}\n"},
      {"run: {name: x, launch: echo}\n",
       "b.yaml:2:7: error: the step that 'run' makes is called so\n"
       "    run: {name: x, launch: echo}\n"
       "          ^~~~\n"
       "hint: leave out `name`, or write the step as an item of `step`\n"},
      {"run: echo\nparameters: {n: {name: n, _: 1}}\n",
       "b.yaml:3:24: error: 'n' has its name before the colon\n"
       "    parameters: {n: {name: n, _: 1}}\n"
       "                           ^\n"
       "hint: leave out `name`\n"},
      {"run: echo\nfiles: {a: b}\n",
       "b.yaml:3:8: error: 'files' takes names of files, not keys\n"
       "    files: {a: b}\n"
       "           ^\n"
       "hint: files: [input.dat, cases]\n"},
      {"runs: echo $n\nparameters: {n: 1}\nmetrics: {a: 'a (.)'}\n",
       "b.yaml:4:1: error: there is nothing to run: the file has no `run`\n"
       "    metrics: {a: 'a (.)'}\n"
       "    ^~~~~~~\n"
       "hint: is 'runs' meant to be 'run'?\n"},
      {"run: {launch: echo, timeout: 5m}\ntimeout: 10m\n",
       "b.yaml:3:1: error: 'timeout' is given beside `run` and in it\n"},
      {"run: echo\nresult: {table: {name: t, column: jube_wp_id}}\nchart: {name: c, x: a, y: b}\n",
       "b.yaml:4:1: error: a chart belongs in the `result` of a file that has one of its own\n"},
      {"run: echo\nmetrcs: {a: b}\n",
       "b.yaml:3:1: error: unknown key 'metrcs' in benchmark 'b'\n"
       "    metrcs: {a: b}\n"
       "    ^~~~~~\n"
       "hint: did you mean 'metrics'?\n"},
      {"run: echo $m\nparameters: {n: {typ: int, _: 1}}\n",
       "b.yaml:3:18: error: unknown key 'typ' in parameter 'n'\n"},
      {"run: echo\nparameters: {n: [1, {_: 2}]}\n", "error: a list under '_' holds texts only\n"},
  };
  for (const Mistake& mistake : mistakes) {
    const Shell shell;
    shell.file("b.yaml", std::string("name: b\n") + mistake.text);
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == 2, ran.err);
    CHECK_MESSAGE(has(ran.err, mistake.message), ran.err);
  }
}

TEST_CASE("a file that runs in JUBE stays JUBE's: its unknown keys may hold anchors") {
  const Shell shell;
  const std::string anchors =
      "parameters: &p {terms: [1, 2]}\nrun: &r echo hi\nmetrics: &m [a, b]\nrepeat: 3\nbuild: x\n";
  const std::string bench =
      "name: b\noutpath: r\n"
      "parameterset: {name: ps, parameter: {name: n, _: \"1,2\"}}\n"
      "step: {name: s, use: ps, do: *r}\n";
  shell.file("b.yaml", anchors + bench);
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.err, "warning: unknown key 'parameters' in benchmark 'b'"));
  CHECK(has(ran.err, "warning: unknown key 'run' in benchmark 'b'"));
  CHECK(shell.content("r/000000/000001_s/work/stdout") == "hi\n");
  CHECK(!shell.exists("r/000000/000002_s"));
}

TEST_CASE(
    "a program beside the workflow that the build makes, too, is not the build's: a warning") {
  const Shell shell;
  shell.sh("printf '#!/bin/sh\\necho old\\n' >pi; chmod +x pi");
  shell.file("b.yaml", "name: b\nbuild: cp go.sh pi\nrun: ./pi 5\nfiles: go.sh\n");
  shell.file("go.sh", "echo new\n");
  const Ran ran = shell.tally("validate b.yaml");
  CHECK_MESSAGE(
      has(ran.err,
          "b.yaml:3:6: warning: './pi' is the file beside the workflow, not the one of the "
          "build\n"),
      ran.err);
  CHECK(has(ran.err, "hint: what the build makes lies in its folder: build/pi\n"));
  shell.file("b.yaml", "name: b\nbuild: cp go.sh pi\nrun: build/pi 5\nfiles: go.sh\n");
  CHECK(shell.tally("validate b.yaml").err == "");
}

TEST_CASE("a program that is not beside the workflow, or not called as one that is: a warning") {
  const Shell shell;
  shell.sh("printf '#!/bin/sh\\necho 1\\n' >work.sh; chmod +x work.sh");
  const auto said = [&](const std::string& run) {
    shell.file("b.yaml", "name: b\nparameters: {n: [1, 2]}\nrun: " + run + "\n");
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    return ran.err;
  };
  CHECK(said("./wrok.sh $n") ==
        "b.yaml:3:6: warning: there is no file './wrok.sh' beside the workflow\n"
        "    run: ./wrok.sh $n\n"
        "         ^~~~~~~~~\n"
        "hint: did you mean './work.sh'?\n");
  CHECK(said("work.sh $n") ==
        "b.yaml:3:6: warning: no folder of PATH has a program 'work.sh'\n"
        "    run: work.sh $n\n"
        "         ^~~~~~~\n"
        "hint: the file beside the workflow is ./work.sh\n");
  CHECK(said("other/work.sh") ==
        "b.yaml:3:6: warning: there is no file 'other/work.sh' beside the workflow\n"
        "    run: other/work.sh\n"
        "         ^~~~~~~~~~~~~\n");
  for (const char* fine : {"./work.sh $n", "sh work.sh $n", "./work$n", "/bin/true", "echo work.sh",
                           "X=1 ./work.sh", "true"})
    CHECK_MESSAGE(said(fine).empty(), std::string(fine));
}

TEST_CASE("what the build made is in its folder; what is above the workflow's is named from it") {
  const Shell shell;
  const auto said = [&](const std::string& text) {
    shell.file("here/b.yaml", "name: b\n" + text);
    return shell.sh("cd here && \"$TALLY\" validate b.yaml").err;
  };
  shell.sh("mkdir here; touch above.txt");
  const std::string warning = "b.yaml:3:6: warning: there is no file 'pi/pi' beside the workflow\n";
  const std::string hint = "hint: what the build makes lies in its folder: build/pi\n";
  CHECK(said("build: echo 1 >pi\nrun: pi/pi 5\n") ==
        warning + "    run: pi/pi 5\n         ^~~~~\n" + hint);
  CHECK(has(said("build: echo 1 >pi\nrun: ./pi 5\n"), "'./pi' beside the workflow\n"));
  CHECK(said("build: echo 1 >pi\nrun: build/pi 5\n").empty());
  CHECK(said("run: cat ../above.txt\n") ==
        "b.yaml:2:6: warning: '../above.txt' is looked for from the folder of the workpackage, "
        "where the command runs\n"
        "    run: cat ../above.txt\n"
        "         ^~~\n"
        "hint: from the folder of the workflow it is $jube_benchmark_home/../above.txt\n");
  for (const char* fine : {"cd .. && cat ../above.txt", "cat ../other.txt", "echo >../above.txt"})
    CHECK_MESSAGE(said("run: " + std::string(fine) + "\n").empty(), std::string(fine));
}

TEST_CASE("show: texts that other readers of YAML would take for something else are escaped") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\noutpath: r\nparameterset: {name: p, where: 1 > 0, parameter: [{name: a, _: "
      "\"x\\u0085y\"}, {name: b, _: \"\\u2028\\u2029\\uFEFF\"}, {name: c, _: \"\\e[1m\"}, {name: "
      "d, _: \"\u00e9 \\u00a0\"}]}\nstep: {name: s, use: p, do: echo}\n");
  const Ran ran = shell.tally("show b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  for (const char* text :
       {"\"x\\u0085y\"", "\"\\u2028\\u2029\\ufeff\"", "\"\\x1b[1m\"", "_: \u00e9 \u00a0\n"})
    CHECK_MESSAGE(has(ran.out, text), ran.out);
  shell.file("shown.yaml", ran.out);
  CHECK(shell.tally("show shown.yaml").out == ran.out);
}

// The engine is killed in the first workpackage, when the files of the second are not there yet.
TEST_CASE("continue from another folder finds what commands name beside the workflow") {
  const Shell shell;
  shell.file("p.sh", "echo v=$1\n");
  shell.file("b.yaml",
             "name: b\nparameters: {n: [1, 2]}\n"
             "run: {do: 'test $n = 2 || test -e $jube_benchmark_home/go || kill -9 $TALLY_PID', "
             "launch: sh p.sh $n}\n"
             "metrics: {v: {_: 'v=$jube_pat_int', type: int}}\n");
  shell.sh("sh -c 'export TALLY_PID=$$; exec \"$TALLY\" run b.yaml'");
  const Ran ran =
      shell.sh("touch go; mkdir elsewhere; cd elsewhere && \"$TALLY\" -q continue ../b_run");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "| 1 | 1 |\n| 2 | 2 |\n"), (ran.out + ran.err));
}

TEST_CASE("tables for people show what was printed; CSV has what Python prints") {
  const Shell shell;
  shell.file("b.yaml",
             "parameters: {n: [1, 2]}\n"
             "run: sh -c 'echo time = 12, lat = 0.040, rate = $n.50e+03'\n"
             "metrics: {time: 'time = $jube_pat_fp', lat: {_: 'lat = $jube_pat_fp', unit: us}, "
             "rate: 'rate = $jube_pat_fp', half: {expression: time / 24}}\n");
  Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(ran.out ==
                    "b:\n"
                    "| n | time | lat[us] | rate | half |\n"
                    "|---|------|---------|------|------|\n"
                    "| 1 |   12 |   0.040 | 1500 |  0.5 |\n"
                    "| 2 |   12 |   0.040 | 2500 |  0.5 |\n\n",
                (ran.out + ran.err));
  CHECK(shell.tally("-q result b_run -s csv").out ==
        "n,time,lat[us],rate,half\n1,12.0,0.04,1500.0,0.5\n2,12.0,0.04,2500.0,0.5\n\n");
}

TEST_CASE("a table says that it shows medians, with their digits") {
  const Shell shell;
  shell.file("b.yaml",
             "run: sh -c 'echo time = 1$jube_wp_iteration, lat = 0.0$jube_wp_iteration'\n"
             "repeat: 6\n"
             "metrics: {time: 'time = $jube_pat_fp', lat: 'lat = $jube_pat_fp'}\n");
  Ran ran = shell.tally("-q run b.yaml");
  const std::string table =
      "| time | time_ci_low | time_ci_high |   lat | lat_ci_low | lat_ci_high | repeats |\n"
      "|------|-------------|--------------|-------|------------|-------------|---------|\n"
      "| 12.5 |          10 |           15 | 0.025 |       0.00 |        0.05 |  6 of 6 |\n";
  const std::string legend = "time, lat: median of the repeats and its 95 % interval\n";
  CHECK_MESSAGE(ran.out == "b:\n" + table + legend + "\n", (ran.out + ran.err));
  CHECK(shell.content("b_run/000000/result/b.dat") == "b:\n" + table);
  CHECK(has(shell.tally("-q result b_run -s markdown").out, "|\n\n" + legend));
  CHECK(!has(shell.tally("-q result b_run -s csv").out, "median"));
  // Fewer repeats have no such interval.
  shell.file("few.yaml", shell.content("b.yaml"));
  shell.sh("sed -i s/6/3/ few.yaml");
  ran = shell.tally("-q run few.yaml");
  CHECK_MESSAGE(
      has(ran.out, "|\ntime, lat: median of the repeats, and the smallest and largest\n\n"),
      (ran.out + ran.err));
}
