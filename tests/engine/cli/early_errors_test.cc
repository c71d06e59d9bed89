// Mistakes that are seen before anything runs, through the program.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

TEST_CASE("files that the first step copies and nothing can have made are missed at once") {
  const Shell shell;
  auto bench = [&](const std::string& fileset, const std::string& steps) {
    shell.file("bench.yaml", "name: b\noutpath: runs\nfileset: {name: fs, " + fileset +
                                 "}\nstep: [" + steps + "]\n");
  };
  bench("copy: nofile.txt", "{name: s, use: fs, do: cat nofile.txt}");
  for (const char* command : {"run bench.yaml", "run -n bench.yaml", "validate bench.yaml"}) {
    CAPTURE(std::string(command));
    Ran ran = shell.tally(command);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "bench.yaml:3:27: error: step 's': no files found using \"nofile.txt\"\n"));
  }
  CHECK(!shell.exists("runs"));
  // Known by its value as well.
  bench("copy: $jube_benchmark_home/nofile.txt", "{name: s, use: fs, do: echo}");
  CHECK(shell.tally("validate bench.yaml").code == 2);
  CHECK(shell.tally("run bench.yaml").code == 2);
  // What an earlier step or command may make is looked for when it is needed.
  bench(
      "copy: made.txt",
      "{name: m, do: echo 1 >$jube_benchmark_home/made.txt}, {name: s, use: fs, do: cat made.txt}");
  Ran ran = shell.tally("run bench.yaml");
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "warning: step 's': no files found using \"made.txt\"\n"));
  shell.sh("rm made.txt");
  bench(
      "copy: made.txt",
      "{name: m, do: echo 1 >$jube_benchmark_home/made.txt}, {name: s, depend: m, use: fs, do: cat "
      "made.txt}");
  ran = shell.tally("run bench.yaml");
  CHECK(ran.code == 0);
  CHECK(ran.err.empty());
}

TEST_CASE("a benchmark that has nothing to run says so") {
  const Shell shell;
  shell.file("none.yaml", "name: n\noutpath: runs\nparameterset: {name: p}\n");
  for (const char* command : {"run none.yaml", "run -n none.yaml"}) {
    Ran ran = shell.tally(command);
    CHECK(ran.code == 0);
    CHECK(has(ran.err, "warning: benchmark 'n' has no workpackages: it has no step\n"));
  }
  CHECK(shell.tally("validate none.yaml").out ==
        "none.yaml: fine: n (no step: nothing would run)\n");
}

TEST_CASE(
    "values of the command line that a parameter cannot have, and expressions that cannot be") {
  const Shell shell;
  shell.file(
      "fails.yaml",
      "name: f\nparameterset: {name: p, parameter: [{name: layers, type: int, _: 2}, {name: a, "
      "mode: "
      "python, _: \"$b * 2\"}, {name: b, _: 1}, {name: c, mode: python, _: exit(1)}]}\n"
      "step: {name: s, use: p, do: echo $a}\n");
  Ran ran = shell.tally("run fails.yaml -n --set b=two --set c=1");
  CHECK(ran.code == 2);
  CHECK(has(ran.err,
            "error: Cannot evaluate \"two * 2\" for parameter \"a\": name 'two' is not defined\n"));
  ran = shell.tally("run fails.yaml -n --set layers=two");
  CHECK(ran.code == 2);
  CHECK(has(ran.err,
            "--set layers=two: 'two' is not a valid int, which parameter 'layers' has to be\n"));
  // A long expression is shortened, and a key that is missing is called so.
  const std::string table = "{'small': '" + std::string(300, 's') + "'}['$size']";
  shell.file("table.yaml",
             "name: t\nparameterset: {name: p, parameter: [{name: size, _: small}, "
             "{name: a, mode: python, _: \"" +
                 table +
                 "\"}]}\n"
                 "step: {name: s, kind: run, use: p, do: echo $a}\n");
  ran = shell.tally("run table.yaml -n --set size=smal");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "sss ...\" for parameter \"a\": KeyError: 'smal'\n"), ran.err);
  CHECK(!has(ran.err, std::string(160, 's')));
  CHECK(has(
      shell.tally("run fails.yaml -n").err,
      "error: Cannot evaluate \"exit(1)\" for parameter \"c\": it ends Python, exit(1), instead "
      "of giving a value\n"));
}

TEST_CASE("JUBE_GROUP_NAME: a run belongs to the group and its members may go on with it") {
  const Shell shell;
  shell.file("b.yaml", "name: b\noutpath: run\nstep: {name: s, do: mkdir made}\n");
  Ran ran = shell.sh("JUBE_GROUP_NAME=no-such-group \"$TALLY\" run b.yaml");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "Failed to get group ID, group \"no-such-group\" does not exist"));
  CHECK(!shell.exists("run"));
  ran = shell.sh("umask 077; JUBE_GROUP_NAME=$(id -gn) \"$TALLY\" run b.yaml");
  CHECK(ran.code == 0);
  CHECK(shell
            .sh("stat -c %a run run/000000 run/000000/000000_s run/000000/000000_s/work/made "
                "run/000000/journal.sqlite")
            .out == "775\n2775\n2775\n2775\n664\n");
  if (shell.sh("test $(id -u) = 0 && getent group adm").code != 0) return;
  CHECK(shell.sh("JUBE_GROUP_NAME=adm \"$TALLY\" run b.yaml").code == 0);
  CHECK(shell.sh("stat -c %G run/000001 run/000001/000000_s/work/made run/000001/journal.sqlite")
            .out == "adm\nadm\nadm\n");
}

TEST_CASE("a run knows where its included files were: continue and result need no option") {
  const Shell shell;
  shell.file("elsewhere/set.yaml", "name: ps\nparameter: {name: a, _: \"7\"}\n");
  shell.file("b.yaml",
             "name: b\noutpath: runs\nparameterset: !include set.yaml\n"
             "patternset: {name: pt, pattern: {name: v, _: \"v=$jube_pat_int\"}}\n"
             "step: {name: s, use: ps, do: [echo v=$a, test -e $jube_benchmark_home/good]}\n"
             "analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}\n"
             "result: {use: an, table: {name: t, style: csv, column: [a, v]}}\n");
  CHECK(shell.tally("run b.yaml").code == 2);
  CHECK(has(shell.tally("run b.yaml -r --include-path elsewhere").out, "a,v\n7,7\n"));
  shell.file("good", "");
  const Ran ran = shell.tally("remove runs -w 0 -f && \"$TALLY\" continue runs");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.tally("result runs").out, "a,v\n7,7\n"));
}

TEST_CASE("expressions that Python cannot read, whatever their names stand for") {
  const Shell shell;
  const std::string head = "name: b\noutpath: runs\n";
  const std::string tail = "step: {name: s, use: p, do: echo x=1}\n";
  auto parameter = [&](const std::string& text) {
    shell.file("bench.yaml",
               head + "parameterset: {name: p, parameter: {name: a, mode: python, _: " + text +
                   "}}\n" + tail);
    return shell.tally("validate bench.yaml");
  };
  Ran ran = parameter("\"[1, 2][$i\"");
  CHECK(ran.code == 2);
  CHECK(has(ran.err,
            "bench.yaml:3:63: error: parameter 'a': Python cannot read \"[1, 2][$i\": '[' "
            "was never closed\n"));
  CHECK(parameter("\"$i +\"").code == 2);
  CHECK(parameter("\"x = 1\"").code == 2);
  // What may be Python once the names are known.
  for (const char* fine :
       {"\"$i $op $i\"", "\"'$name'.upper()\"", "\"$name.upper()\"", "\"$list[0]\"", "\"$f(1)\"",
        "\"${i}0\"", "\"{'x': 1}['$key']\"", "\"$whole\"", "\" 1\"", "\"1 if $a else $b\"",
        "\"'\\\\d' + \\\"q\\\"\"", "\"$i if $not $i else 2\""}) {
    CAPTURE(std::string(fine));
    ran = parameter(fine);
    CHECK(!has(ran.err, "Python cannot read"));
  }
  // What only the result needs is told before the jobs are made, too.
  shell.file(
      "bench.yaml",
      head +
          "step: {name: s, do: echo x=1}\n"
          "patternset: {name: ps, pattern: [{name: x, type: int, _: x=$jube_pat_int},\n"
          "    {name: y, mode: python, _: \"$x *\"}]}\n"
          "analyser: {name: a, use: ps, analyse: {step: s, file: stdout}}\n"
          "result: {use: a, table: {name: t, filter: \"$x = 1\",\n"
          "    column: [{format: q3, _: x}, {format: 4d, _: x}, {format: \">4\", _: y}]}}\n");
  const char* const told[] = {
      "bench.yaml:5:32: warning: pattern 'y': Python cannot read \"$x *\": "
      "invalid syntax\n",
      "bench.yaml:7:43: warning: the filter: Python cannot read \"$x = 1\": ",
      "warning: column 'x': no value can be formatted as \"q3\": Invalid "
      "format specifier\n"};
  for (const char* command : {"run -n bench.yaml", "run bench.yaml"}) {
    ran = shell.tally(command);
    for (const char* message : told) CHECK(has(ran.err, message));
    CHECK(!has(ran.err, "formatted as \"4d\""));
    CHECK(ran.code == (std::string(command) == "run bench.yaml" ? 1 : 0));  // it has no table
  }
  shell.sh("rm -r runs");
  for (const char* command : {"--strict run bench.yaml", "validate bench.yaml"}) {
    ran = shell.tally(command);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "bench.yaml:5:32: error: pattern 'y'"));
  }
  CHECK(!shell.exists("runs"));
}

TEST_CASE(
    "without a Python, expressions of results are not checked, and that is no mistake of the "
    "file" *
    doctest::test_suite(tally::testing::kSeesProcesses)) {
  const Shell shell;
  shell.sh("mkdir bin; ln -s \"$(command -v sh)\" bin/sh");
  shell.file("b.yaml",
             "name: b\noutpath: run\nstep: {name: s, do: echo 5}\n"
             "patternset: {name: p, pattern: [{name: v, type: int, _: '$jube_pat_int'},\n"
             "  {name: w, mode: python, _: '2 * $v'}, {name: x, mode: python, _: '3 * $v'}]}\n"
             "analyser: {name: a, use: p, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [v, w, x]}}\n");
  for (const char* command : {"run -n b.yaml", "--strict run -n b.yaml"}) {
    CAPTURE(std::string(command));
    const Ran ran = shell.sh(std::string("PATH=$PWD/bin \"$TALLY\" ") + command);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE(has(ran.err,
                      "note: pattern 'w' was not checked, nor was 1 more of Python: values "
                      "of mode python need the program python3, which is not in $PATH"),
                  ran.err);
  }
  // What needs it is missing, and that is said.
  const Ran ran = shell.sh("PATH=$PWD/bin \"$TALLY\" run b.yaml");
  CHECK_MESSAGE(has(ran.out, "\n5,,\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "warning: pattern 'x' could not be computed in 1 of 1 result lines"),
                ran.err);
  const Ran later = shell.tally("result run");
  CHECK_MESSAGE(later.code == 0, later.err);
  CHECK_MESSAGE(has(later.out, "5,10,15"), later.out);
}

TEST_CASE("misspelt keys in JUBE's files: validate warns and says fine, --strict refuses") {
  const Shell shell;
  shell.file("bench.yaml",
             "name: b\noutpath: runs\nparameterset:\n  name: p\n  parameter:\n"
             "    - {name: x, type: str, seperator: \";\", _: 1}\n"
             "    - {name: y, seperator: \";\", _: 1}\n    - {name: z, seperator: \";\", _: 1}\n"
             "step: {name: s, use: p, do: echo $x}\nresult: {name: r}\n");
  Ran ran = shell.tally("validate bench.yaml");
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "bench.yaml: 5 warning(s): b (1 step)\n"));
  CHECK(has(ran.err, "bench.yaml:6:28: warning: unknown key 'seperator' in parameter 'x'\n"));
  CHECK(has(ran.err, "note: 2 more of this kind: 'y' (7:17), 'z' (8:17)\n"));
  CHECK(has(ran.err, "warning: 'str' is not a valid value for 'type' in parameter 'x'\n"));
  CHECK(has(ran.err, "warning: unknown key 'name' in result 'r'\n"));
  for (const char* command : {"--strict validate bench.yaml", "--strict run bench.yaml"}) {
    CHECK(shell.tally(command).code == 2);
  }
  CHECK(!shell.exists("runs"));
}

TEST_CASE("by the name jube: an outpath is needed, and of several -t the last counts") {
  const Shell shell;
  shell.sh("ln -s \"$TALLY\" jube");
  shell.file("none.yaml", "name: b\nstep: {name: s, do: echo}\n");
  Ran ran = shell.sh("./jube run none.yaml");
  CHECK(ran.code == 1);
  CHECK(has(ran.err, "error: Missing attribute 'outpath' in <benchmark>\n"));
  CHECK(!shell.exists("benchmark_runs"));
  CHECK(shell.sh("./jube run none.yaml -o there").code == 0);
  CHECK(shell.tally("run none.yaml").code == 0);
  CHECK(shell.exists("benchmark_runs"));
  shell.file("tags.yaml",
             "name: b\noutpath: runs\nstep: [{name: s, tag: a, do: echo}, {name: t, tag: b, do: "
             "echo}]\n");
  ran = shell.sh("./jube run tags.yaml -t a -t b");
  CHECK(has(ran.err, "note: -t is given more than once: as in JUBE only the last counts (b)\n"));
  CHECK(!shell.exists("runs/000000/000000_s"));
  CHECK(shell.exists("runs/000000/000000_t"));
  CHECK(shell.tally("run tags.yaml -t a -t b").code == 0);
  CHECK(shell.exists("runs/000001/000001_t"));
}

TEST_CASE("the shipped platform.xml: a job's name, and a trace of its commands") {
  const Shell shell;
  shell.file("job.xml",
             "<jube><benchmark name=\"b\" outpath=\"runs\">\n"
             "<parameterset name=\"systemParameter\" init_with=\"platform.xml\">\n"
             "<parameter name=\"jobname\">mine_$jube_wp_id</parameter>\n"
             "<parameter name=\"executable\">true</parameter></parameterset>\n"
             "<step name=\"s\"><use>systemParameter</use>\n"
             "<use from=\"platform.xml\">executeset,executesub,jobfiles</use><do>cat "
             "$submit_script</do></step></benchmark></jube>\n");
  const Ran ran = shell.tally("run job.xml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string script = shell.content("runs/000000/000000_s/work/stdout");
  CHECK(script.rfind("#!/bin/bash -x\n", 0) == 0);
  CHECK(has(script, "#SBATCH --job-name=\"mine_0\"\n"));
}

TEST_CASE("a value that result and analyse would not take is not ignored") {
  const Shell shell;
  shell.file("v.yaml",
             "name: v\noutpath: run\nparameterset: {name: p, parameter: {name: n, _: 1}}\n"
             "step: {name: s, use: p, do: echo $n}\n"
             "patternset: {name: q, pattern: {name: got, _: (\\d+)}}\n"
             "analyser: {name: a, analyse: {step: s, file: {use: q, _: stdout}}}\n"
             "result: {use: a, table: {name: t, column: [n, got]}}\n");
  CHECK(shell.tally("run v.yaml").code == 0);
  for (const std::string command : {"result run", "analyse run", "result run -u v.yaml"}) {
    const Ran ran = shell.tally(command + " --set n=2");
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(has(ran.err, "error: --set changes nothing here: a run keeps the values that it had\n"));
  }
}

TEST_CASE("of a long expression, messages show the beginning") {
  const Shell shell;
  shell.file("b.yaml", "name: b\noutpath: run\nparameterset: {name: p, where: '" +
                           std::string(100000, '(') + "', parameter: {name: a, _: 1}}\n" +
                           "step: {name: s, use: p, do: echo}\n");
  const Ran ran = shell.tally("validate b.yaml");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "a rule of parameter set 'p': Python cannot read \"" + std::string(160, '(') +
                         " ...\": "));
  CHECK(ran.err.size() < 1000);
}

TEST_CASE("a whole number may be octal as in YAML 1.2") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: a, _: "
             "0o17}}\nstep: {name: s, kind: run, use: p, iterations: 0o2, do: echo "
             "$a}\n");
  const Ran ran = shell.tally("run -q b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(shell.sh("cat run/*/*_s/work/stdout").out == "0o17\n0o17\n");
}

TEST_CASE("the version of a file stands at the top level, also of one benchmark") {
  const Shell shell;
  for (const char* step : {"{name: s, do: echo}", "{name: s, kind: run, do: echo}"}) {
    for (const char* version : {"2.5", "'2.7.1'", "2"}) {
      shell.file("b.yaml", std::string("version: ") + version +
                               "\nname: m\noutpath: run\nstep: " + step + "\n");
      CAPTURE(step);
      for (const char* command : {"validate b.yaml", "--strict validate b.yaml", "-q run b.yaml"}) {
        const Ran ran = shell.tally(command);
        CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
        CHECK_MESSAGE(!has(ran.err, "version"), ran.err);
      }
    }
    shell.file("b.yaml", std::string("version: 9\nname: m\noutpath: run\nstep: ") + step + "\n");
    CHECK(has(shell.tally("validate b.yaml").err, "the file was written for JUBE 9"));
    CHECK(shell.tally("--strict validate b.yaml").code == 2);
  }
  shell.file("b.yaml", "version: 2.5\nrun: echo 1\n");
  CHECK(shell.tally("validate b.yaml").code == 0);
}

TEST_CASE("what is no regular file is not read, but a stream that a person names") {
  const Shell shell;
  const std::string text = "name: w\noutpath: run\nstep: {name: s, kind: run, do: echo}\n";
  shell.file("b.yaml", text);
  for (const char* other : {"pipe", "/dev/zero", "/dev/stdin", "/dev/fd/0", "/dev/tty"}) {
    CAPTURE(other);
    const std::string name = other;
    shell.file("i.yaml", "parameterset: !include " + name + "\n" + text);
    shell.file("f.yaml", "name: w\noutpath: run\nstep: {name: s, kind: run, use: {from: " + name +
                             ", _: p}, do: echo}\n");
    shell.file("x.xml",
               "<jube><benchmark name=\"w\" outpath=\"run\"><parameterset "
               "init_with=\"" +
                   name + "\" name=\"p\"/></benchmark></jube>");
    for (const char* file : {"i.yaml", "f.yaml", "x.xml"}) {
      // Nothing comes from this standard input, and it has no end.
      const Ran ran = shell.sh("test -e pipe || mkfifo pipe; timeout 5 \"$TALLY\" validate " +
                               std::string(file) + " <>pipe");
      CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
    }
  }
  CHECK(shell.sh("timeout 5 \"$TALLY\" validate pipe").code == 2);
  CHECK(shell.sh("cat b.yaml | \"$TALLY\" validate /dev/stdin").code == 0);
  CHECK(shell.sh("bash -c '\"$TALLY\" validate <(cat b.yaml)'").code == 0);
}
