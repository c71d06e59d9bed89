// Odd places, odd bytes and half of a run: the program says what is wrong, or works.
#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "engine/base/secrets.h"
#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

constexpr const char* kSmall = R"yaml(name: small
outpath: run
parameterset:
  name: p
  parameter: {name: i, type: int, _: "1,2"}
patternset:
  name: pt
  pattern: {name: v, _: "v=$jube_pat_wrd"}
step: {name: s, use: p, do: "echo v=$i"}
analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}
result: {use: an, table: {name: t, style: csv, sort: i, column: [i, v]}}
)yaml";

}  // namespace

TEST_CASE("a run whose path has more than 1,000 bytes") {
  const Shell shell;
  shell.file("small.yaml", kSmall);
  const std::string go =
      "part=$(printf 'x%.0s' $(seq 200)); for i in 1 2 3 4 5; do mkdir -p $part; cd $part; done; ";
  const Ran ran = shell.sh("file=$PWD/small.yaml; " + go + "\"$TALLY\" run -r $file -o $PWD/run");
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "i,v\n1,1\n2,2\n"));
  CHECK(shell.sh(go + "\"$TALLY\" result run").out == "i,v\n1,1\n2,2\n\n");
  CHECK(shell.sh(go + "\"$TALLY\" continue $PWD/run").code == 0);
  CHECK(shell.sh(go + "\"$TALLY\" remove --force run; ls run | wc -l").out == "0\n");
}

TEST_CASE("a current directory that is gone is said once") {
  const Shell shell;
  shell.file("small.yaml", kSmall);
  const Ran ran = shell.sh("mkdir d; file=$PWD/small.yaml; cd d; rmdir ../d; \"$TALLY\" run $file");
  CHECK(ran.code == 1);
  CHECK(ran.err ==
        "tally: error: the current directory cannot be found (change to another one, or try again)"
        ": No such file or directory\n");
}

TEST_CASE("a run that was half removed can be removed") {
  const Shell shell;
  shell.file("small.yaml", kSmall);
  const std::string remove = "\"$TALLY\" remove --force run";
  SUBCASE("the journal is gone") {
    REQUIRE(shell.tally("run small.yaml").code == 0);
    REQUIRE(shell.sh("rm run/000000/journal.*; rm -r run/000000/000000_s").code == 0);
    CHECK(shell.sh(remove).code == 0);
  }
  SUBCASE("there is only an empty folder") {
    REQUIRE(shell.sh("mkdir -p run/000000").code == 0);
    CHECK(shell.sh(remove).code == 0);
  }
  SUBCASE("a file that is not of a run is there") {
    REQUIRE(shell.sh("mkdir -p run/000000 && touch run/000000/thesis.tex").code == 0);
    const Ran ran = shell.sh(remove);
    CHECK(ran.code == 1);
    CHECK(has(ran.err, "and there is 'thesis.tex'); remove it by hand if it is not needed"));
    CHECK(shell.exists("run/000000/thesis.tex"));
    return;
  }
  SUBCASE("something could not be removed: the journal stays, and the next time removes all") {
    REQUIRE(shell.tally("run small.yaml").code == 0);
    const bool mounted =
        geteuid() == 0 &&
        shell.sh("unshare -m sh -c 'mount -t tmpfs none run/000000/000001_s && \"$TALLY\" remove "
                 "--force run' 2>err; grep -q busy err")
                .code == 0;
    if (!mounted) {
      MESSAGE("skipped: nothing can be mounted here");
      return;
    }
    CHECK(shell.exists("run/000000/journal.sqlite"));
    CHECK(shell.sh(remove).code == 0);
  }
  CHECK(shell.sh("ls run").out.empty());
}

TEST_CASE("the umask holds for every file of a run") {
  const Shell shell;
  std::string input = kSmall;
  input.replace(input.find("step: {"), 7, "step: {export: true, ");
  shell.file("small.yaml", input);
  REQUIRE(shell.sh("umask 077; \"$TALLY\" run -r small.yaml && \"$TALLY\" analyse run").code == 0);
  CHECK(shell.sh("find run -type f | wc -l").out != "0\n");
  CHECK(shell.sh("find run -perm /077 -not -type l").out.empty());
}

TEST_CASE("control characters of an output do not reach a terminal") {
  const Shell shell;
  std::string input = kSmall;
  const std::string plain = "echo v=$i";
  input.replace(input.find(plain), plain.size(),
                "printf 'v=\\\\033[31m%s\\\\302\\\\233\\\\n' $i; printf '\\\\033]0;x\\\\007' >&2; "
                "test $i = 1");
  shell.file("small.yaml", input);
  const std::string raw = "\033";
  const Ran piped = shell.tally("run -r small.yaml");
  CHECK(piped.code == 1);
  CHECK(has(piped.out, "1,\033[31m1\302\233\n"));  // a file has the bytes as they are
  if (shell.sh("command -v script").code != 0) {
    MESSAGE("skipped: there is no script(1)");
    return;
  }
  const Ran shown = shell.sh(
      "NO_COLOR=1 script -qec '\"$TALLY\" continue run; \"$TALLY\" result run' /dev/null "
      "</dev/null");
  CHECK(has(shown.out, "1,\\x1b[31m1\\x9b\r\n"));
  CHECK(has(shown.out, "\\x1b]0;x\\x07"));
  CHECK_FALSE(has(shown.out, raw + "]0"));
  CHECK_FALSE(has(shown.out, raw + "[31m1"));
}

TEST_CASE("validate executes and evaluates nothing of a stranger's file") {
  const std::string code = "__import__('os').system('touch EXECUTED')";
  const std::string shell_code = "touch EXECUTED; echo 1";
  // Each in the set, the step, the pattern set or the result of a file that is otherwise fine.
  struct Door {
    const char* name;
    std::string sets, step, result;
  };
  const auto parameter = [](const std::string& mode, const std::string& text) {
    return "parameter: {name: j, mode: " + mode + ", _: \"" + text + "\"}";
  };
  const std::vector<Door> doors = {
      {"python", parameter("python", code), "", ""},
      {"perl", parameter("perl", "system('touch EXECUTED')"), "", ""},
      {"shell", parameter("shell", shell_code), "", ""},
      {"python beside shell",
       "parameter: [{name: k, mode: shell, _: echo 1}, {name: j, mode: python, _: \"" + code +
           "\"}]",
       "", ""},
      {"python of python",
       "parameter: [{name: k, mode: python, _: \"" + code + "\"}, {name: j, mode: python, _: $k}]",
       "", ""},
      {"text in python",
       "parameter: [{name: k, separator: \"\", _: \"" + code +
           "\"}, {name: j, mode: python, _: $k}]",
       "", ""},
      {"a late value", parameter("python", code + " or $jube_wp_id"), "", ""},
      {"a comprehension", parameter("python", "[" + code + " for x in [1]]"), "", ""},
      {"a lambda", parameter("python", "(lambda: " + code + ")()"), "", ""},
      {"a rule", "where: \"" + code + "\", parameter: {name: j, _: 1}", "", ""},
      {"a rule with names", "where: \"" + code + " or $j\", parameter: {name: j, _: 1}", "", ""},
      {"a type",
       "parameter: {name: j, type: float, allowed: \">= 1\", mode: python, _: \"" + code + "\"}",
       "", ""},
      {"active", "parameter: {name: j, _: 1}", "active: \"" + code + "\"", ""},
      {"active with names", "parameter: {name: j, _: 1}", "active: \"$j and " + code + "\"", ""},
      {"active of a command", "parameter: {name: j, _: 1}",
       "do: {active: \"" + code + "\", _: echo}", ""},
      {"iterations", parameter("python", code), "iterations: $j", ""},
      {"work_dir", parameter("python", code), "work_dir: $j", ""},
      {"a set's name", parameter("python", code), "use: \"p,$j\"", ""},
      {"a job", parameter("python", code),
       "kind: run, platform: slurm, resources: {nodes: $j}, launch: \"$(touch EXECUTED)\", env: "
       "{A: "
       "\"$(touch EXECUTED)\"}",
       ""},
      {"a planner", "parameter: {name: j, _: 1}",
       "kind: run, platform: slurm, launch: ./tally-train --plan", ""},
      {"modules with the names of Python's",
       parameter("python", "random.random() + math.pi + json.loads('1') + datetime.now()"), "", ""},
      {"a derived pattern", "parameter: {name: j, _: 1}", "",
       "patternset: {name: q, pattern: {name: v, mode: python, _: \"" + code + "\"}}\n"},
      {"a column", "parameter: {name: j, _: 1}", "",
       "analyser: {name: an, analyse: {step: s, file: stdout}}\nresult: {use: an, table: {name: t, "
       "filter: \"" +
           code + "\", column: [j, {name: c, expression: \"" + code + "\"}]}}\n"},
  };
  const Shell shell;
  // Programs and modules that a careless PATH or Python would find beside the file.
  for (const char* program : {"python3", "perl", "git", "tally-train", "sh"})
    shell.file(program, "#!/bin/sh\ntouch EXECUTED\n");
  for (const char* module : {"random", "math", "json", "datetime", "os", "_ast", "sitecustomize",
                             "usercustomize", "encodings", "collections", "re"})
    shell.file(std::string(module) + ".py", "open('EXECUTED', 'w')\n");
  REQUIRE(shell.sh("chmod +x python3 perl git tally-train sh").code == 0);
  // A python3 in PATH that looks into its directory, as pyenv's does.
  shell.file("shims/python3",
             "#!/bin/sh\n[ ! -e g.yaml ] || touch EXECUTED\nexec /usr/bin/env "
             "PATH=\"$REAL_PATH\" python3 \"$@\"\n");
  REQUIRE(shell.sh("chmod +x shims/python3").code == 0);
  for (const Door& door : doors) {
    const std::string step =
        door.step.find("do:") == std::string::npos && door.step.find("launch:") == std::string::npos
            ? ", do: echo"
            : "";
    shell.file("g.yaml",
               "name: g\noutpath: run\nparameterset: {name: p, " + door.sets + "}\nstep: {name: s" +
                   (door.step.find("use:") == std::string::npos ? ", use: p" : "") + step +
                   (door.step.empty() ? "" : ", " + door.step) + "}\n" + door.result);
    CAPTURE(std::string(door.name));
    for (const char* command :
         {"validate g.yaml", "--no-exec validate g.yaml", "--strict validate g.yaml", "tag g.yaml",
          "validate --format json g.yaml", "validate g.yaml g.yaml"}) {
      CAPTURE(std::string(command));
      const Ran ran =
          shell.sh("REAL_PATH=$PATH PATH=.::$PWD/shims:$PATH:. \"$TALLY\" " + std::string(command));
      CHECK(ran.code <= 2);
      CHECK_MESSAGE(!shell.exists("EXECUTED"), (ran.out + ran.err));
      shell.sh("rm -f EXECUTED");
    }
  }
  CHECK_FALSE(shell.exists("run"));
}

TEST_CASE("validate names what it did not compute, and a dry run does it") {
  const Shell shell;
  shell.file("g.yaml", R"yaml(name: g
outpath: run
parameterset:
  name: p
  where: $n > 1
  parameter:
    - {name: n, _: "1,2"}
    - {name: j, mode: python, _: "$n * 2"}
    - {name: k, mode: python, _: "$j + 1"}
step: {name: s, use: p, active: "$n == 2", do: echo $j}
)yaml");
  Ran ran = shell.tally("validate g.yaml");
  CHECK(ran.code == 0);
  CHECK(
      ran.out ==
      "g.yaml: fine: g (1 step)\n  not computed, nor checked what depends on it: 'active' of step "
      "'s', parameter 'j', the rules of step 's'; `tally run -n g.yaml` does\n");
  CHECK(shell.tally("run -n g.yaml").code == 0);
  // What no value hides is said as before.
  shell.file("h.yaml", "name: h\noutpath: run\nstep: {name: s, do: echo}\n");
  ran = shell.tally("validate h.yaml");
  CHECK(ran.out == "h.yaml: fine: h (1 step)\n");
}

TEST_CASE("--no-exec: nothing that an input names is executed, and what needs it is refused") {
  const Shell shell;
  const std::string marked = R"yaml(name: n
outpath: run
parameterset:
  name: p
  parameter:
    - {name: a, mode: MODE, _: "CODE"}
step: {name: s, use: p, do: echo $a}
patternset:
  name: pt
  pattern:
    - {name: v, type: int, _: "v=$jube_pat_int"}
    - {name: w, mode: python, _: "__import__('os').system('touch executed') or $v"}
analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}
result: {use: an, table: {name: t, style: csv, column: [a, v, w]}}
)yaml";
  const auto input = [&](const std::string& mode, const std::string& code) {
    std::string text = marked;
    text.replace(text.find("MODE"), 4, mode);
    text.replace(text.find("CODE"), 4, code);
    shell.file("n.yaml", text);
  };
  const std::string python = "__import__('os').system('touch executed')";
  input("python", python);
  CHECK(shell.tally("run -n n.yaml").code == 0);
  CHECK(shell.exists("executed"));  // what the documentation says
  REQUIRE(shell.sh("rm executed").code == 0);
  for (const char* command : {"run -n", "script --out out"}) {
    const std::string called = command;
    CAPTURE(called);
    const Ran ran = shell.tally("--no-exec " + called + " n.yaml");
    CHECK(ran.code == 1);
    CHECK(ran.err == "tally: error: --no-exec: Python would compute \"" + python +
                         "\": Operation not permitted\n");
  }
  input("text", "v=1");
  const Ran plan = shell.tally("--no-exec run -n n.yaml");
  CHECK(plan.code == 0);
  for (const char* command : {"run n.yaml", "continue run", "watch run"}) {
    const std::string called = command;
    CAPTURE(called);
    shell.sh("mkdir -p run/000000 && touch run/000000/journal.sqlite");
    const Ran ran = shell.tally("--no-exec " + called);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "executes commands, which --no-exec does not allow"));
  }
  REQUIRE(shell.sh("rm -r run; \"$TALLY\" run n.yaml && rm -f executed").code == 0);
  const Ran result = shell.tally("--no-exec result run");
  CHECK(result.code == 1);
  CHECK(has(result.err, "--no-exec: Python would compute \"__import__('os')"));
  CHECK_FALSE(shell.exists("executed"));
  CHECK(shell.tally("result run").code == 0);
  CHECK(shell.exists("executed"));
}

TEST_CASE("secrets that are exported are readable for the run's user alone, or are not written") {
  const Shell shell;
  shell.file("in.txt", "token: #T#\n");
  shell.file("small.yaml", R"yaml(name: small
outpath: run
parameterset:
  name: p
  parameter: {name: HUB_TOKEN, mode: env, export: true, _: HUB}
fileset: {name: f, copy: in.txt}
substituteset:
  name: sub
  iofile: {in: in.txt, out: made.txt}
  sub: {source: "#T#", dest: $HUB_TOKEN}
step:
  - name: s
    use: [p, f, sub]
    do_log_file: do_log
    do:
      - export DB_PASSWORD=pearl-$HUB_TOKEN
      - test $DB_PASSWORD = pearl-dia''mond
      - sleep 1.2
      - cd ../..; find . -type f -perm /077 -exec grep -l 'dia[m]ond' {} + > ../../seen || true; ls -l journal.* > ../../files
  - {name: t, depend: s, do: "test $DB_PASSWORD = pearl-dia''mond"}
  - {name: fails, use: p, do: "test $HUB_TOKEN = pearl"}
)yaml");
  const std::string visible =
      "find run -type f -perm /077 -exec grep -l diamond {} + ; find run -type f -exec grep -l "
      "diamond {} + | wc -l";
  const Ran ran = shell.sh("umask 022; HUB=diamond \"$TALLY\" run small.yaml");
  CHECK(ran.code == 1);  // of the step that fails
  CHECK(has(shell.content("run/000000/000001_fails/error"), "test diamond = pearl"));
  CHECK(shell.content("seen").empty());
  CHECK(has(shell.content("files"), "journal.snapshot"));
  // The journal, run.log and the error of the command that fails, the log of commands, and the file
  // that a substitution made.
  CHECK(shell.sh(visible).out == "5\n");
  CHECK(shell
            .sh("stat -c %a run/000000/workpackages.xml run/000000/journal.sqlite "
                "run/000000/000000_s/do_log run/000000/000000_s/work/made.txt")
            .out == "644\n600\n600\n600\n");
  CHECK(has(shell.content("run/000000/workpackages.xml"), "<parameter name=\"HUB_TOKEN\""));
  // It stays so.
  CHECK(
      shell.sh("umask 022; HUB=diamond \"$TALLY\" continue run; HUB=diamond \"$TALLY\" result run")
          .code == 0);
  CHECK(shell.sh(visible).out == "5\n");
}

TEST_CASE("secrets are not readable for others in any file that a job needs, whatever they are") {
  const Shell shell;
  // Values that quoting, JUBE's substitution and XML write in another way than they are.
  for (const std::string secret :
       {"pearldiamond", "pearl$J\"`id` diamond\\", "pearl'<&>$ diamond$"}) {
    struct {
      const char *name, *keys, *launch, *pack;
    } ways[] = {{"MY_TOKEN", "export: true, ", "true", ""},
                {"my_token", "", "prog --token '$my_token'", "pack: array, "},
                {"OF_HUB", "export: true, ", "true", "pack: array, "},
                {"MY_TOKEN", "export: true, ", "true", "pack: {_: steps, at_once: 2}, "},
                {"of_hub", "", "prog -t '$of_hub'", ""},
                {"MY_TOKEN", "", "prog --url 'https://$derived'", ""}};
    for (const auto& way : ways) {
      CAPTURE(secret);
      CAPTURE(std::string(way.name));
      CAPTURE(std::string(way.pack));
      const std::string name = way.name;
      const std::string variable = tally::names_secret(name) ? "HUB" : "HUB_SECRET";
      shell.file("s.yaml",
                 "name: s\noutpath: run\nparameterset: {name: p, parameter: [{name: " + name +
                     ", " + way.keys + "separator: '', mode: env, _: " + variable +
                     "}, {name: derived, separator: '', _: 'user:$" + name +
                     "@host'}]}\nstep: {name: s, kind: run, use: p, platform: slurm, " + way.pack +
                     "resources: {nodes: 1, tasks_per_node: 1, time: 5m}, launch: \"" + way.launch +
                     "\"}\n");
      shell.file("secret", secret);
      // No PBS takes the job: what qsub says is that it is not there.
      const Ran ran = shell.sh(
          "umask 022; rm -rf run jobs; sed 's/slurm/pbs/; s/pack: .*resources/resources/' s.yaml "
          "> r.yaml; "
          "mkdir -p bin; printf '#!/bin/sh\\necho no >&2; exit 1\\n' > bin/qsub; "
          "printf '#!/bin/sh\\n' | tee bin/qdel > bin/qselect; chmod +x bin/*; "
          "export PATH=$PWD/bin:$PATH; export " +
          variable +
          "=\"$(cat secret)\"; timeout 60 \"$TALLY\" run "
          "r.yaml; \"$TALLY\" script s.yaml --out jobs");
      CHECK(shell.sh("ls run/000000/000000_s/work/submit.job jobs/*/work/submit.job").code == 0);
      CHECK(shell.sh("grep -rlE 'pearl.*diamond' run jobs | wc -l").out != "0\n");
      CHECK_MESSAGE(shell.sh("find run jobs -type f -perm /044 | xargs grep -lE 'pearl.*diamond'")
                        .out.empty(),
                    (ran.out + ran.err));
    }
  }
}

TEST_CASE("a run without secrets is readable as the umask says") {
  const Shell shell;
  shell.file("small.yaml", kSmall);
  REQUIRE(shell.sh("umask 022; \"$TALLY\" run small.yaml").code == 0);
  CHECK(shell.sh("stat -c %a run/000000/journal.sqlite").out == "644\n");
}
