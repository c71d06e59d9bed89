// `env` means the same in every place where commands run.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Prints each variable between brackets, one in a line.
constexpr const char* kShow =
    "#!/bin/sh\nfor name; do printf '%s[%s]\\n' \"$name\" \"$(printenv \"$name\")\"; done\n";

constexpr const char* kNames = "A B C D E F G H BASE BEFORE";

// BASE=b is the caller's; `root` is a parameter.
constexpr const char* kEnv =
    "{A: '$NO_SUCH|${NO_SUCH}|$BASE|${BASE}x', B: '$$BASE|a$$b|5$|5$ x|$1|$(touch RAN)|`touch "
    "RAN`|$((1+1))', C: 'q\"uo''te\\back\\n', D: \"one\\ntwo $BASE\", E: '$root:$n:${n}x', F: "
    "'${BASE:-x} $$$BASE $? $@', G: \"$UID$RANDOM*\", H: 'end$', BASE: '/x:$BASE', BEFORE: $BASE}";

constexpr const char* kExpected =
    "A[||b|bx]\nB[$BASE|a$b|5$|5$ x|$1|$(touch RAN)|`touch RAN`|$((1+1))]\nC[q\"uo'te\\back\\n]\n"
    "D[one\ntwo b]\nE[b/sw:3:3x]\nF[${BASE:-x} $b $? $@]\nG[*]\nH[end$]\nBASE[/x:b]\nBEFORE[b]\n";

std::string workflow(const std::string& step) {
  return "name: w\noutpath: run\n"
         "parameterset: {name: ps, parameter: [{name: root, _: $BASE/sw}, {name: n, _: 3}]}\n"
         "step: {name: s, use: ps, env: " +
         std::string(kEnv) + ", " + step + "}\n";
}

std::string show(const std::string& key, const std::string& program = "$jube_benchmark_home/show") {
  return key + ": \"" + program + " " + kNames + "\"";
}

const Shell& prepared(const Shell& shell) {
  shell.file("show", kShow);
  CHECK(shell.sh("chmod +x show").code == 0);
  return shell;
}

// What a job script of the platform makes, started as the scheduler's node would start it.
std::string job_output(const Shell& shell, const std::string& bash = "bash") {
  CHECK(shell.sh("rm -rf scripts; BASE=login \"$TALLY\" script w.yaml --out scripts").code == 0);
  const Ran ran = shell.sh("cd scripts/*_s/work && unset PBS_O_WORKDIR; BASE=b NAME=none " + bash +
                           " submit.job > out; cat out stdout 2>/dev/null");
  return ran.out;
}

}  // namespace

TEST_CASE("env: the same in commands, launch lines, set-ups, builds and job scripts") {
  const Shell shell;
  prepared(shell);
  for (const std::string& step :
       {"kind: run, " + show("do"), "kind: run, " + show("launch"), "kind: setup, " + show("do"),
        "kind: build, " + show("do"), "kind: run, platform: here, " + show("launch"),
        "kind: run, platform: nothing, " + show("launch")}) {
    shell.file("here.yaml",
               "platform: {name: here, scheduler: local, env: {SITE: '$(touch RAN)'}}\n");
    shell.file("nothing.yaml", "platform: {name: nothing, scheduler: local}\n");
    shell.file("w.yaml", workflow(step));
    CAPTURE(step);
    CHECK(shell.sh("rm -rf run; \"$TALLY\" validate w.yaml").code == 0);
    const Ran ran = shell.sh("BASE=b \"$TALLY\" -q run w.yaml --fresh");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK(shell.content("run/000000/000000_s/work/stdout") == kExpected);
    CHECK(shell.sh("find . -name RAN").out.empty());
  }
  for (const char* scheduler : {"slurm", "pbs", "lsf"}) {
    shell.file("site.yaml", "platform: {name: site, launcher: none, scheduler: " +
                                std::string(scheduler) + "}\n");
    shell.file("w.yaml", workflow("kind: run, platform: site, " + show("launch")));
    CAPTURE(scheduler);
    CHECK(job_output(shell) == kExpected);
    CHECK(job_output(shell, "bash -u") == kExpected);
    CHECK(shell.sh("find . -name RAN").out.empty());
  }
}

TEST_CASE("env: a step's sees its platform's, that one sees the interconnect's") {
  const Shell shell;
  prepared(shell);
  for (const char* scheduler : {"local", "slurm", "pbs", "lsf"}) {
    shell.file("site.yaml",
               "platform: {name: site, launcher: none, scheduler: " + std::string(scheduler) +
                   ", interconnect: {BASE: '/i:$BASE', A: '$BASE'}, env: {BASE: '/site:$BASE', "
                   "B: '$BASE $A $$', C: \"two\\nlines of $n\"}}\n");
    shell.file("w.yaml",
               "name: w\noutpath: run\nparameterset: {name: ps, parameter: {name: n, _: 3}}\n"
               "step: {name: s, kind: run, use: ps, platform: site, env: {BASE: '/x:$BASE', D: "
               "'$BASE|$B|$OMP_NUM_THREADS'}, launch: '$jube_benchmark_home/show A B C D BASE'}\n");
    std::string out;
    if (std::string(scheduler) == "local") {
      CHECK(shell.sh("rm -rf run; OMP_NUM_THREADS=1 BASE=b \"$TALLY\" -q run w.yaml").code == 0);
      out = shell.content("run/000000/000000_s/work/stdout");
    } else {
      out = job_output(shell);
    }
    CAPTURE(scheduler);
    CHECK(out ==
          "A[b]\nB[/i:b b $]\nC[two\nlines of 3]\nD[/site:/i:b|/i:b b $|1]\n"
          "BASE[/x:/site:/i:b]\n");
  }
}

TEST_CASE("env: a container's sees the job's, and runs nothing") {
  const Shell shell;
  prepared(shell);
  // Docker sets what --env names. Apptainer passes the environment on and sets what has its prefix; of
  // --env it would make two variables at a comma.
  for (const char* runtime : {"apptainer", "singularity", "docker"}) {
    shell.file(
        runtime,
        "#!/bin/bash\nprefix=${0##*/}; prefix=${prefix^^}ENV_\n"
        "for name in $(compgen -e $prefix); do value=${!name}; unset $name; export "
        "\"${name#$prefix}=$value\"; done\n"
        "while [ $# -gt 0 ]; do case $1 in\n"
        "  --env) case $2 in *=*) keep+=(\"$2\") ;; *) [ -z \"${!2+set}\" ] || "
        "keep+=(\"$2=${!2}\") ;; esac; shift ;;\n"
        "  image) shift; case $0 in *docker) exec env -i \"PATH=$PATH\" \"${keep[@]}\" \"$@\" ;; "
        "*) [ -z \"$keep\" ] && exec \"$@\" ;; esac ;;\nesac; shift; done\n");
    CHECK(shell.sh(std::string("chmod +x ") + runtime).code == 0);
    shell.file("site.yaml",
               "platform: {name: site, scheduler: local, env: {SITE: '/site:$BASE'}, "
               "container: {image: image, runtime: " +
                   std::string(runtime) +
                   ", env: {A: '$SITE|$$SITE|$(touch RAN)', B: \"x\\ny\", L: 'a=1,b=2'}}}\n");
    shell.file(
        "w.yaml",
        "name: w\noutpath: run\n"
        "parameterset: {name: p, parameter: [{name: EX, export: true, _: 'ex $jube_wp_id'}, {name: "
        "NO_EX, _: 1}]}\n"
        "step: {name: s, kind: run, use: p, platform: site, env: {OWN: 'own $BASE'}, container: "
        "{env: {C: '$OWN|`touch RAN`|$NO_SUCH'}}, launch: '$jube_benchmark_home/show A B C EX "
        "NO_EX L'}\n");
    CAPTURE(runtime);
    const Ran ran = shell.sh("rm -rf run; PATH=$PWD:$PATH BASE=b \"$TALLY\" -q run w.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK(shell.content("run/000000/000000_s/work/stdout") ==
          "A[/site:b|$SITE|$(touch RAN)]\nB[x\ny]\nC[own b|`touch RAN`|]\nEX[ex "
          "0]\nNO_EX[]\nL[a=1,b=2]\n");
    CHECK(shell.sh("find . -name RAN").out.empty());
  }
}

TEST_CASE(
    "env: pyxis is srun's: image, mounts that exist, work directory, and the image's variables") {
  const Shell shell;
  prepared(shell);
  // As srun takes its options: up to the first word that is none.
  shell.file("bin/srun",
             "#!/bin/bash\nwhile [ $# -gt 0 ]; do case $1 in\n"
             "  --container-image=*) echo \"image ${1#*=}\" ;;\n"
             "  --container-workdir=*) [ \"${1#*=}\" = \"$PWD\" ] && echo workdir ;;\n"
             "  --container-mounts=*) IFS=, read -ra mounts <<<\"${1#*=}\"\n"
             "    for mount in \"${mounts[@]}\"; do [ -d \"${mount%:*}\" ] && echo \"mount of "
             "${mount#*:}\"; done ;;\n"
             "  --no-container-mount-home) echo no home ;;\n"
             "  -*) ;;\n  *) exec \"$@\" ;;\nesac; shift; done\n");
  shell.file(
      "w.yaml",
      "name: w\noutpath: run\n"
      "step: {name: s, kind: run, platform: slurm, env: {OWN: 'own $BASE'}, container: {runtime: "
      "pyxis, image: 'nvcr.io#nvidia/pytorch:25.09-py3', args: --no-container-mount-home, bind: "
      "['/etc', '/usr:/opt/usr'], env: {A: '$OWN|`touch RAN`', L: 'a=1,b=2'}}, launch: "
      "'$jube_benchmark_home/show A L OWN'}\n");
  REQUIRE(shell.sh("chmod +x bin/srun; \"$TALLY\" script w.yaml --out scripts").code == 0);
  const Ran ran = shell.sh(
      "cd scripts/*_s/work && mkdir -p cache && PATH=\"$PWD/../../../bin:$PATH\" BASE=b "
      "TMPDIR=/var/tmp XDG_CACHE_HOME=$PWD/cache bash submit.job >out; cat out stdout");
  for (const char* part :
       {"image nvcr.io#nvidia/pytorch:25.09-py3\n", "workdir\n", "mount of /etc\n",
        "mount of /opt/usr\n", "no home\n", "A[own b|`touch RAN`]\n", "L[a=1,b=2]\n",
        "OWN[own b]\n", "mount of /var/tmp/tally-", "/cache/tally\n"}) {
    CAPTURE(part);
    CHECK_MESSAGE(has(ran.out, part), ran.out);
  }
  CHECK_MESSAGE(has(ran.out, "mount of " + std::string(shell.root()) + "\n"), ran.out);
  CHECK(shell.sh("find . -name RAN").out.empty());
}

TEST_CASE("pyxis where no srun starts the program is refused") {
  for (const char* platform : {"", "platform: {name: site, launcher: mpiexec, scheduler: slurm}"}) {
    const Shell shell;
    shell.file("w.yaml", std::string("name: w\noutpath: run\n") + "step: {name: s, kind: run, " +
                             (*platform ? "platform: site, " : "") +
                             "container: {runtime: pyxis, image: i}, launch: 'true'}\n");
    shell.file("site.yaml", std::string(platform) + "\n");
    for (const char* command : {"validate w.yaml", "run w.yaml", "run w.yaml -n"}) {
      const Ran ran = shell.tally(command);
      CAPTURE(command);
      CHECK(ran.code == 2);
      CHECK_MESSAGE(has(ran.err, "step 's': container: pyxis is a part of Slurm's srun"), ran.err);
    }
  }
}

namespace {

// The environment that the program of each workpackage gets, local or by its job script.
std::string shown_by_programs(const Shell& shell, const std::string& platform) {
  shell.sh(
      "mkdir -p bin; printf '#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift 2; "
      "done; exec \"$@\"\n' > bin/srun; chmod +x bin/srun; cp bin/srun bin/mpirun; cp bin/srun "
      "bin/mpiexec");
  if (platform == "local")
    return shell.sh("rm -rf here; \"$TALLY\" -q run w.yaml -o here; cat here/*/*_*/work/stdout")
        .out;
  shell.sh("rm -rf scripts; \"$TALLY\" script w.yaml --out scripts");
  return shell
      .sh("for work in scripts/*_*/work; do (cd $work && PATH=\"$PWD/../../../bin:$PATH\" bash "
          "submit.job > out; cat out stdout 2>/dev/null); done")
      .out;
}

}  // namespace

TEST_CASE("env: exported parameters are the same text in launch lines and job scripts") {
  const Shell shell;
  prepared(shell);
  const std::string value = "$HOME/x $(touch RAN) $$ `id` \"q\" 'r' \\";
  for (const std::string env : {"", "env: {M: m}, ", "env: {M: $EX}, env_unset: NAME, "}) {
    for (const std::string platform : {"local", "slurm", "pbs", "lsf"}) {
      CAPTURE(env);
      CAPTURE(platform);
      shell.file("w.yaml",
                 "name: w\noutpath: run\n"
                 "parameterset:\n  name: p\n  parameter:\n    name: EX\n    export: true\n"
                 "    separator: \"\"\n    _: >-\n      " +
                     value +
                     "\n"
                     "step: {name: s, kind: run, use: p, platform: " +
                     platform + ", " + env +
                     "resources: {nodes: 1, tasks_per_node: 1, time: 5m}, "
                     "launch: '$jube_benchmark_home/show EX'}\n");
      const std::string out = shown_by_programs(shell, platform);
      CHECK_MESSAGE(has(out, "EX[" + value + "]"), out);
      CHECK(shell.sh("find . -name RAN").out.empty());
    }
  }
}

TEST_CASE(
    "env: exported parameters that get their value late, in each step anew or from a parent") {
  const Shell shell;
  prepared(shell);
  for (const std::string env : {"", "env: {M: m}, "}) {
    for (const std::string platform : {"local", "slurm", "pbs", "lsf"}) {
      CAPTURE(env);
      CAPTURE(platform);
      const std::string keys = std::string("kind: run, platform: ") + platform + ", " + env +
                               "resources: {nodes: 1, tasks_per_node: 1, time: 5m}, launch: "
                               "'$jube_benchmark_home/show";
      shell.file("w.yaml", R"yaml(name: w
outpath: run
parameterset:
  - name: p
    parameter:
      - {name: LATE, export: true, separator: "", _: '$jube_wp_padid|$jube_wp_cycle "$$HOME $(touch RAN)" 5$$$$x \'}
      - {name: OF_LATE, export: true, separator: "", _: "<$LATE>"}
      - {name: PLACE, export: true, mode: python, _: "'$jube_wp_abspath'[-6:]"}
      - {name: ALWAYS, export: true, update_mode: always, mode: python, _: "'$jube_step_name'+'x'"}
      - {name: IN_STEP, export: true, update_mode: step, _: "$jube_step_name"}
      - {name: CYCLE, export: true, update_mode: cycle, _: "$jube_step_name"}
  - name: q
    parameter: [{name: OWN, export: true, _: "$jube_step_name of $jube_wp_id"}, {name: BLANKS, export: true, mode: python, separator: "", _: "'  a\\n '"}]
step:
  - {name: one, use: p, )yaml" +
                               keys + " LATE OF_LATE PLACE ALWAYS IN_STEP CYCLE'}\n" +
                               "  - {name: two, depend: one, use: q, " + keys +
                               " LATE PLACE ALWAYS IN_STEP CYCLE OWN BLANKS'}\n");
      const std::string late = "000000|0 \"$HOME $(touch RAN)\" 5$$x \\";
      const std::string out = shown_by_programs(shell, platform);
      CHECK_MESSAGE(has(out, "LATE[" + late + "]\nOF_LATE[<" + late +
                                 ">]\nPLACE[e/work]\nALWAYS[onex]\nIN_STEP[one]\nCYCLE[one]\n"),
                    out);
      CHECK_MESSAGE(has(out, "LATE[" + late +
                                 "]\nPLACE[e/work]\nALWAYS[twox]\nIN_STEP[two]\nCYCLE[two]\n"
                                 "OWN[two of 1]\nBLANKS[  a\n ]\n"),
                    out);
      CHECK(shell.sh("find . -name RAN").out.empty());
    }
  }
}

TEST_CASE("env: a platform's own lines beside those of exported parameters") {
  const Shell shell;
  prepared(shell);
  for (const std::string own :
       {"\"$jube_wp_envstr\\nexport OWN=of-$n\"", "\"export OWN=of-$n\\n$jube_wp_envstr\"",
        "\"export OWN=of-$n\\n${jube_wp_envstr}\""}) {
    CAPTURE(own);
    shell.file("w.yaml", R"yaml(name: w
outpath: run
parameterset:
  - name: systemParameter
    init_with: slurm/platform.yaml:systemParameter
    parameter: {name: env, separator: "", _: )yaml" +
                             own + R"yaml(}
  - {name: executeset, init_with: "slurm/platform.yaml:executeset"}
  - {name: p, parameter: [{name: n, _: 3}, {name: EX, export: true, separator: "", _: '$jube_wp_id "$$HOME" $(touch RAN)'}]}
fileset: {name: jobfiles, init_with: "slurm/platform.yaml:jobfiles"}
substituteset: {name: executesub, init_with: "slurm/platform.yaml:executesub"}
step: {name: s, kind: run, use: [p, systemParameter, executeset, jobfiles, executesub], resources: {time: 5m}, launch: '$jube_benchmark_home/show EX OWN'}
)yaml");
    const std::string out = shown_by_programs(shell, "slurm");
    CHECK_MESSAGE(has(out, "EX[0 \"$HOME\" $(touch RAN)]\nOWN[of-3]\n"), out);
    CHECK(shell.sh("find . -name RAN").out.empty());
  }
}

TEST_CASE("env: names that no shell can have are errors of the file") {
  const Shell shell;
  for (const char* keys : {"env: {A-B: x}", "env: {\"A B\": x}", "env: {\"\": x}", "env: {1A: x}",
                           "env: {\"X;touch RAN;Y\": x}", "env: {\"$(touch RAN)\": x}",
                           "env_unset: \"X;touch RAN\""}) {
    CAPTURE(keys);
    for (const char* platform : {"local", "slurm"}) {
      shell.file("w.yaml",
                 std::string("name: w\noutpath: run\nstep: {name: s, kind: run, platform: ") +
                     platform + ", " + keys + ", launch: 'true'}\n");
      const Ran ran = shell.tally("validate w.yaml");
      CHECK_MESSAGE(
          (ran.code == 2 && has(ran.err + ran.out, "is not the name of an environment variable")),
          (ran.out + ran.err));
    }
  }
}

TEST_CASE("env: names that no shell can have and that parameters give are errors, too") {
  const Shell shell;
  const struct {
    const char *parameter, *keys;
    bool computed;
  } cases[] = {{"_: 'X;touch RAN;Y'", "env: {$nm: x}", false},
               {"_: 'X;touch RAN'", "env_unset: $nm", false},
               {"_: 'A B'", "env: {'N_$nm': x}", false},
               {"_: A-B", "env_unset: 'OK,$nm'", false},
               {"_: ''", "env: {$nm: x}", false},
               {"mode: shell, _: 'printf \"%s\" \"X;touch RAN\"'", "env: {$nm: x}", true},
               {"mode: shell, _: 'printf \"%s\" 1A'", "env_unset: $nm", true},
               {"_: '$jube_wp_abspath'", "env: {$nm: x}", true}};
  for (const auto& one : cases) {
    CAPTURE(std::string(one.parameter));
    CAPTURE(std::string(one.keys));
    for (const std::string step :
         {"kind: run, platform: local, launch: 'true'",
          "kind: run, platform: slurm, launch: 'true'", "kind: run, do: 'true'",
          "kind: setup, do: 'true'", "kind: build, do: 'true'"}) {
      CAPTURE(step);
      shell.file("w.yaml",
                 std::string("name: w\noutpath: run\nparameterset: {name: p, parameter: {name: nm, "
                             "separator: '', ") +
                     one.parameter + "}}\nstep: {name: s, use: p, " + one.keys + ", " + step +
                     "}\n");
      const char* message = "is not the name of an environment variable";
      if (!one.computed) {
        const Ran checked = shell.tally("validate w.yaml");
        CHECK_MESSAGE((checked.code == 2 && has(checked.err + checked.out, message)),
                      (checked.out + checked.err));
      }
      const Ran ran = shell.sh("rm -rf run; timeout 60 \"$TALLY\" run w.yaml");
      CHECK_MESSAGE((ran.code != 0 && ran.code != 124 && has(ran.err + ran.out, message)),
                    (ran.out + ran.err));
      CHECK(shell.sh("find . -name RAN").out.empty());
    }
  }
}

TEST_CASE("env: variables are put in once, also after commands that changed them") {
  const Shell shell;
  prepared(shell);
  shell.file("here.yaml", "platform: {name: here, scheduler: local, env: {SITE: s}}\n");
  shell.file("w.yaml",
             "name: w\noutpath: run\nstep: {name: s, kind: run, platform: here, env: {BASE: "
             "'/x:$BASE', A: '$BASE', N: '1'}, do: ['$jube_benchmark_home/show BASE A N', "
             "'export A=changed'], launch: '$jube_benchmark_home/show BASE A N'}\n");
  const Ran ran = shell.sh("BASE=b \"$TALLY\" -q run w.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(shell.content("run/000000/000000_s/work/stdout") ==
        "BASE[/x:b]\nA[b]\nN[1]\nBASE[/x:b]\nA[b]\nN[1]\n");
}

TEST_CASE("env: a set-up or a build is done again when a variable that its env names has changed") {
  for (const char* kind : {"setup", "build"}) {
    const Shell shell;
    shell.file("w.yaml", "name: w\noutpath: run\nstep: {name: s, kind: " + std::string(kind) +
                             ", env: {A: '/a:$BASE', B: \"$$NAME\"}, do: 'echo \"$$A $$B\"'}\n");
    const auto run = [&](const std::string& variables) {
      const Ran planned = shell.sh(variables + " \"$TALLY\" run w.yaml -n");
      const Ran ran = shell.sh(variables +
                               " \"$TALLY\" -q run w.yaml; cat run/*/*_s/work/stdout | "
                               "tail -n 1");
      return (has(planned.out, "reused") ? "reused: " : "done: ") + ran.out;
    };
    CAPTURE(kind);
    CHECK(run("BASE=1 NAME=1") == "done: /a:1 $NAME\n");
    CHECK(run("BASE=1 NAME=2") == "reused: /a:1 $NAME\n");
    CHECK(run("BASE=2 NAME=2") == "done: /a:2 $NAME\n");
    CHECK(run("NAME=2") == "done: /a: $NAME\n");
    CHECK(run("BASE=2") == "reused: /a:2 $NAME\n");
  }
}

TEST_CASE("env: the value of a secret that env names stays private") {
  const Shell shell;
  shell.file("w.yaml",
             "name: w\noutpath: run\nstep: {name: s, kind: run, env: {A: 'x$MY_TOKEN'}, export: "
             "true, do: ['true', 'true']}\n");
  CHECK(shell.sh("umask 022; MY_TOKEN=abcdefgh \"$TALLY\" -q run w.yaml").code == 0);
  CHECK(shell.sh("find run -type f -perm /044 | xargs grep -l abcdefgh").out.empty());
  CHECK(shell
            .sh("umask 022; MY_TOKEN= \"$TALLY\" -q run w.yaml; find run/000001 -name "
                "journal.sqlite -perm 644")
            .out == "run/000001/journal.sqlite\n");
}

// Without one of its modules the program would measure something else.
TEST_CASE("a module that cannot be loaded fails the step on this machine, too") {
  const struct {
    const char *step, *site, *row;
  } cases[] = {
      {"modules: [good, fine]", "", "good fine"},
      {"modules: [good, bad]", "", nullptr},
      {"modules: [bad, good]", "", nullptr},
      {"", "modules: [good]", "good"},
      {"", "modules: [bad]", nullptr},
      {"modules: good", "modules: [bad]", nullptr},
  };
  for (const char* shell_program : {"/bin/sh", "/bin/bash"}) {
    for (const auto& [step, site, row] : cases) {
      CAPTURE(std::string(step) + " | " + site);
      const Shell shell;
      shell.sh(
          "printf '#!/bin/sh\\nshift; for m; do [ $m != bad ] || exit 1; done; echo \"v=$*\"\\n' "
          "> module; chmod +x module");
      shell.file("site.yaml", std::string("platform: {name: site, scheduler: local") +
                                  (*site != 0 ? ", " : "") + site + "}\n");
      shell.file("b.yaml",
                 std::string("name: b\noutpath: run\nstep: {name: s, kind: run, platform: "
                             "site.yaml, quiet_check: false") +
                     (*step != 0 ? ", " : "") + step +
                     ", launch: 'echo end'}\n"
                     "patternset: {name: o, pattern: {name: v, _: 'v=(.*)'}}\n"
                     "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
                     "result: {use: a, table: {name: t, style: csv, column: [v]}}\n");
      const Ran ran = shell.sh("PATH=.:$PWD:$PATH JUBE_EXEC_SHELL=" + std::string(shell_program) +
                               " \"$TALLY\" run b.yaml");
      CHECK_MESSAGE(ran.code == (row == nullptr ? 1 : 0), (ran.out + ran.err));
      if (row != nullptr) CHECK_MESSAGE(has(ran.out, "v\n" + std::string(row) + "\n"), ran.out);
    }
  }
}

TEST_CASE("modules of a step without `launch` would not be loaded, and that is an error") {
  for (const std::string kind : {"kind: run, ", "kind: build, ", "kind: setup, ", ""}) {
    CAPTURE(kind);
    const Shell shell;
    shell.file("b.yaml", "name: b\noutpath: run\nstep: {name: s, " + kind +
                             "modules: [GCC, CUDA], do: cc --version}\n");
    for (const char* command : {"validate b.yaml", "run b.yaml", "run -n b.yaml"}) {
      const Ran ran = shell.tally(command);
      CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
      CHECK_MESSAGE(
          has(ran.err, "error: step 's' has no `launch`: its modules would not be loaded\n"),
          ran.err);
      CHECK(has(ran.err, "hint: load them in its commands: module load NAME && ...\n"));
    }
    CHECK(!shell.exists("run"));
  }
}

TEST_CASE("modules of a step are an error exactly where nothing would load them") {
  const std::string sets =
      "{from: slurm/platform.yaml, _: \"systemParameter,executeset,executesub,jobfiles\"}";
  const struct {
    std::string step;
    const char* error;  // nullptr: none
  } cases[] = {
      // A script of its own sets names them.
      {"use: " + sets + ", modules: [foo], do: sbatch submit.job", nullptr},
      {"use: [q, " + sets + "], modules: [foo], do: $go", nullptr},
      {"use: " + sets + ", modules: [foo], do: $submit $submit_script", nullptr},
      {"use: " + sets + ", modules: [foo], do: '$modules && make'", nullptr},
      {"kind: run, modules: [foo], do: 'module load foo && make'", nullptr},
      {"kind: run, use: q, modules: $none, do: make", nullptr},
      {"kind: run, use: q, modules: [$none, foo], do: make", "step 's' has no `launch`"},
      {"kind: run, use: q, platform: here.yaml, modules: [foo], launch: $none, do: make",
       "the `launch` of step 's' is empty"},
      {"kind: run, use: q, modules: [foo], do: $submit hi", "step 's' has no `launch`"},
      {"kind: run, platform: slurm, modules: [foo], do: make", "step 's' has no `launch`"},
      {"kind: run, platform: slurm, modules: [foo], launch: make", nullptr},
      {"kind: run, use: q, platform: here.yaml, modules: [foo], launch: make", nullptr},
      {"kind: run, modules: [foo], launch: make", nullptr},
      {"kind: run, use: q, modules: $none, platform: own.yaml, launch: make", nullptr},
      {"kind: run, platform: own.yaml, modules: [foo], launch: make",
       "no job script of step 's' names $modules"},
  };
  for (const auto& [step, error] : cases) {
    CAPTURE(step);
    const Shell shell;
    shell.file("here.yaml", "platform: {name: here, scheduler: local}\n");
    // A site's own script, which has no place for modules.
    shell.file("own.yaml", "platform: {name: own, scheduler: slurm, template: own_sets.yaml}\n");
    shell.file("own.in", "#!/bin/sh\n#EXE#\n");
    shell.file("own_sets.yaml",
               "parameterset:\n"
               "  - {name: systemParameter, init_with: 'slurm/platform.yaml:systemParameter'}\n"
               "  - {name: executeset, init_with: 'slurm/platform.yaml:executeset'}\n"
               "fileset: {name: jobfiles, copy: own.in}\n"
               "substituteset: {name: executesub, iofile: {in: own.in, out: submit.job}, "
               "sub: {source: '#EXE#', dest: $launch}}\n");
    shell.file("b.yaml",
               "name: b\noutpath: run\nparameterset: {name: q, parameter: [{name: none, _: ''}, "
               "{name: go, _: $submit $submit_script}" +
                   std::string(has(step, "$submit hi") ? ", {name: submit, _: echo}" : "") +
                   "]}\nstep: {name: s, " + step + "}\n");
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == (error == nullptr ? 0 : 2), (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "its modules would not be loaded") == (error != nullptr), ran.err);
    if (error != nullptr) CHECK_MESSAGE(has(ran.err, error), ran.err);
  }
}

TEST_CASE("what a platform of this machine sets is missed by commands without `launch`") {
  const Shell shell;
  const std::string step =
      "name: b\noutpath: run\nstep: {name: s, kind: run, platform: here.yaml, ";
  shell.file("b.yaml", step + "do: env}\n");
  for (const std::string key : {"modules", "env", "interconnect"}) {
    shell.file("here.yaml", "platform: {name: here, scheduler: local, " + key +
                                (key == "modules" ? ": [GCC]}\n" : ": {A: 1}}\n"));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(has(ran.err,
                      "warning: step 's' has no `launch`: its commands run without its "
                      "platform's `" +
                          key + "`\n"),
                  ran.err);
  }
  shell.file("c.yaml", step + "do: env, launch: env}\n");
  CHECK(!has(shell.tally("validate c.yaml").err, "run without"));
  shell.file("here.yaml", "platform: {name: here, scheduler: local}\n");
  CHECK(!has(shell.tally("validate b.yaml").err, "run without"));
}

TEST_CASE("a run step with `launch` behind a step of a platform needs one, too") {
  const Shell shell;
  const std::string steps =
      "name: b\noutpath: run\nstep:\n"
      "  - {name: s, kind: run, platform: slurm, launch: echo v=1}\n"
      "  - {name: post, depend: s, do: cat s/stdout}\n"
      "  - {name: q, kind: run, depend: post, ";
  for (const char* own : {"launch: echo", "resources: {nodes: 2}, launch: echo"}) {
    shell.file("b.yaml", steps + own + "}\n");
    for (const char* command : {"validate b.yaml", "run b.yaml", "run -n b.yaml"}) {
      const Ran ran = shell.tally(command);
      CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.err,
                        "error: step 'q' has no `platform`: its scheduler (slurm) is that "
                        "of a step before it, and it has no job script\n"),
                    ran.err);
    }
  }
  for (const char* own :
       {"platform: slurm, launch: echo", "platform: local, launch: echo", "do: echo"}) {
    shell.file("b.yaml", steps + own + "}\n");
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  }
}

TEST_CASE(
    "a step without `launch` behind a step of a platform submits nothing, and that is no "
    "surprise") {
  const Shell shell;
  const std::string steps =
      "name: b\noutpath: run\nstep:\n"
      "  - {name: s, kind: run, platform: slurm, launch: echo v=1}\n"
      "  - {name: post, kind: run, depend: s, ";
  shell.file("b.yaml", steps + "do: cat s/stdout}\n");
  CHECK_MESSAGE(!has(shell.tally("validate b.yaml").err, "has no `launch`"),
                shell.tally("validate b.yaml").err);
  for (const char* own : {"platform: slurm, ", "resources: {nodes: 2}, "}) {
    shell.file("b.yaml", steps + own + "do: cat s/stdout}\n");
    CHECK(has(shell.tally("validate b.yaml").err, "nothing is submitted (platform slurm)"));
  }
}

TEST_CASE("tmp and cache: a ~ that no shell reads is refused") {
  for (const char* key : {"tmp", "cache"}) {
    for (const auto& [value, bad] : {std::pair{"~root/x", true},
                                     {"${NOTSET:-~/x}", true},
                                     {"${NOTSET:=~/x}", true},
                                     {"${NOTSET:- ~/x}", true},
                                     {"${NOTSET+~}", true},
                                     {"\\~/x", true},
                                     {"~/x", false},
                                     {"~/x-~tmp", false},
                                     {"$HOME/a~b", false},
                                     {"/a/x-~tmp", false},
                                     {"$HOME-~/y", false},
                                     {"${HOME:-/a}/x-~y", false},
                                     {"~", false}}) {
      CAPTURE(std::string(key) + ": " + value);
      const Shell shell;
      shell.file("site.yaml",
                 std::string("platform: {name: site, ") + key + ": '" + value + "'}\n");
      shell.file("b.yaml",
                 "name: b\noutpath: run\nstep: {name: s, kind: run, platform: site.yaml, launch: "
                 "echo}\n");
      const Ran ran = shell.tally("validate b.yaml");
      CHECK_MESSAGE(ran.code == (bad ? 2 : 0), ran.err);
      CHECK(has(ran.err, std::string(key) + " names a folder by '~") == bad);
    }
  }
}
