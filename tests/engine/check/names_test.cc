// Names that lead nowhere.
#include "tests/engine/check/checked.h"

using namespace tally;

namespace {

const std::string kHead =
    "name: b\nparameterset: [{name: model, parameter: {name: layers, _: 1}}]\n";

}  // namespace

TEST_CASE("unknown sets and steps name the nearest") {
  CHECK(Checked(kHead + "step: {name: s, use: modle, do: echo}\n").messages() ==
        "f.yaml:3:22: error: unknown set 'modle' in step 's'\n"
        "    step: {name: s, use: modle, do: echo}\n"
        "                         ^~~~~\n"
        "hint: did you mean 'model'?\n");
  CHECK(Checked(kHead + "step: {name: s, depend: setup, do: echo}\n")
            .says("unknown step 'setup' in step 's'"));
  CHECK(Checked(kHead + "step: {name: s, use: set_$layers, do: echo}\n").messages() == "");
}

TEST_CASE("unknown pattern sets, steps and analysers of the result") {
  Checked checked(
      kHead +
      "patternset: {name: pat}\n"
      "step: {name: run, do: echo}\n"
      "analyser: {name: ana, use: pta, analyse: {step: rum, file: {use: zz, _: stdout}}}\n"
      "result: {use: aan, table: {name: t, column: layers}}\n");
  CHECK(checked.diagnostics.error_count() == 4);
  CHECK(checked.says("unknown pattern set 'pta' in analyser 'ana'"));
  CHECK(checked.says("unknown step 'rum' in analyser 'ana'"));
  CHECK(checked.says("unknown pattern set 'zz' in analyser 'ana'"));
  CHECK(checked.says("unknown analyser 'aan' in result"));
}

TEST_CASE("a pattern with the name of a parameter, before anything runs") {
  const std::string rest =
      "patternset: {name: pat, pattern: {name: layers, _: 'l=(.*)'}}\n"
      "analyser: {name: ana, use: pat, analyse: {step: run}}\n";
  Checked own(kHead + "step: {name: run, use: model, do: echo}\n" + rest);
  CHECK(own.says("f.yaml:4:41: error: pattern 'layers' has the name of a parameter of step 'run'"));
  CHECK(own.says("f.yaml:2:48: note: the parameter is here"));
  CHECK(Checked(
            kHead +
            "step: [{name: first, use: model, do: echo}, {name: run, depend: first, do: echo}]\n" +
            rest)
            .says("error: pattern 'layers' has the name of a parameter of step 'run'"));
  CHECK(
      Checked(kHead + "step: [{name: other, use: model, do: echo}, {name: run, do: echo}]\n" + rest)
          .messages()
          .empty());
}

TEST_CASE("a table sorted by a name that is nowhere") {
  const std::string start =
      kHead + "step: {name: s, use: model, do: echo}\nanalyser: {name: a, analyse: {step: s}}\n";
  CHECK(
      Checked(start + "result: {use: a, table: {name: t, sort: 'layers,layres', column: layers}}\n")
          .says("warning: sort: 'layres' of table 't' is neither a parameter nor a pattern\n"));
  CHECK(Checked(start + "result: {use: a, table: {name: t, sort: layers_s, column: layers}}\n")
            .messages()
            .empty());
}

TEST_CASE("steps that wait for each other, the circle named") {
  CHECK(Checked("name: b\nstep: [{name: a, depend: c, do: x}, {name: b, depend: a, do: x},\n"
                "       {name: c, depend: b, do: x}, {name: d, depend: a, do: x}]\n")
            .messages() ==
        "f.yaml:2:55: error: Cannot resolve dependencies. These steps wait for each other: "
        "a -> c -> b -> a\n"
        "    step: [{name: a, depend: c, do: x}, {name: b, depend: a, do: x},\n"
        "                                                          ^\n");
  CHECK(Checked("name: b\nstep: {name: a, depend: a, do: x}\n").says("a -> a"));
}

TEST_CASE("$names that no parameter defines must come from the shell") {
  Checked checked(kHead +
                  "step:\n"
                  "  name: s\n"
                  "  use: model\n"
                  "  do: |\n"
                  "    echo $layers ${layers} $$layers ${layers:-1}\n"
                  "    train --n $layres $layersx\n");
  CHECK(checked.workflow);
  CHECK(
      checked.messages() ==
      "f.yaml:8:15: warning: 'layres' is not a parameter of step 's': it must come from the shell "
      "environment\n"
      "        train --n $layres $layersx\n"
      "                  ^~~~~~~\n"
      "hint: did you mean 'layers'?\n"
      "note: 1 more of this kind: 'layersx' (8:23)\n");
}

TEST_CASE("$names that are known: parents' parameters, built-ins, the commands' own variables") {
  CHECK(Checked(kHead + "step:\n"
                        "  - {name: a, use: model, do: 'x=1; for i in 1 2; do echo $i $x; done'}\n"
                        "  - {name: s, depend: a, do: 'echo $layers $jube_wp_id $x $SLURM_JOB_ID "
                        "$jube_wp_parent_a_id $1 $? $PATH'}\n")
            .messages() == "");
  CHECK(Checked(kHead + "step: {name: s, do: echo $layers}\n")
            .says("hint: parameter set 'model' defines it, but the step does not use that set"));
  // Where the sets depend on a parameter, nothing is known.
  CHECK(Checked(kHead + "step: {name: s, use: 'm$x', do: echo $nix}\n").messages() == "");
}

TEST_CASE("in a file of our own a $name that nobody knows is an error") {
  const std::string own =
      "name: b\noutpath: o\nparameterset: {name: p, where: $n > 0, parameter: "
      "{name: n, _: 1}}\nstep: {name: s, use: p, do: ";
  CHECK(Checked(own + "'echo ${n} ${nn}'}\n").messages() ==
        "f.yaml:4:40: error: 'nn' is not a parameter of step 's', and the environment has no "
        "variable "
        "of that name\n"
        "    step: {name: s, use: p, do: 'echo ${n} ${nn}'}\n"
        "                                           ^\n"
        "hint: did you mean 'n'?\n");
  CHECK(Checked(own + "echo $zzyzx}\n").says("hint: write $$zzyzx to leave it to the shell"));
  // What stands behind v= is not a name that printf -v would make.
  for (const char* command : {"'echo v=${nn} $n'", "'echo v=[${nn}] [$n]'", "'echo v=$nn'"}) {
    CAPTURE(command);
    CHECK(Checked(own + command + "}\n").says("'nn' is not a parameter of step 's'"));
  }
  // The commands themselves, the environment, the shell, what is escaped.
  for (const char* command :
       {"'for q in 1 2; do echo ${q} $q; done'", "'q=1; echo $q'", "'read q r < x; echo $q $r'",
        "'export q=2; echo ${q}'", "': ${q:=3}; echo ${q}'", "'printf -v q %s 1; echo $q'",
        "echo $HOME $PATH $RANDOM $SLURM_JOB_ID", "echo $$zzyzx"}) {
    CAPTURE(command);
    CHECK(Checked(own + command + "}\n").messages() == "");
  }
  // What the shell or a file read may know after all is a warning.
  for (const char* command :
       {"\"awk '{print $NF}' x\"", "'. ./setup; echo $zzyzx'", "'eval $(setup); echo $zzyzx'"}) {
    CAPTURE(command);
    Checked checked(own + command + "}\n");
    CHECK(checked.workflow);
    CHECK(checked.diagnostics.warning_count() == 1);
  }
  // A run's own input was checked when the run began.
  CheckOptions stored;
  stored.stored = true;
  CHECK(Checked(own + "'echo ${nn}'}\n", stored).workflow);
}

TEST_CASE("what tags leave out is missed when it is analysed, not before") {
  const std::string file =
      "name: b\nstep:\n  - {name: run, do: echo}\n  - {name: post, tag: more, do: echo}\n"
      "  - {name: last, tag: last, depend: post, do: echo}\n"
      "patternset: {name: p, tag: more}\n"
      "analyser:\n  - {name: a, use: p, analyse: {step: post}}\n"
      "  - {name: c, tag: more, analyse: {step: run}}\nresult: {use: 'a,c'}\n";
  Checked without(file);
  CHECK(without.workflow);
  CHECK(without.diagnostics.warning_count() == 3);
  CHECK(
      without.says("f.yaml:8:39: warning: analyser 'a' names step 'post', which the tags leave "
                   "out"));
  CHECK(without.says("analyser 'a' names patternset 'p', which the tags leave out"));
  CHECK(without.says("result names analyser 'c', which the tags leave out"));
  CHECK(Checked(file, with_tags({"more"})).messages() == "");
  CHECK(Checked(file, with_tags({"last"})).says("error: unknown step 'post' in step 'last'"));
  CHECK(Checked(file, with_tags({"last"})).says("hint: it is defined, but the tags leave it out"));
}

TEST_CASE("columns that nothing fills") {
  Checked checked(kHead +
                  "patternset: {name: pat, pattern: {name: time, type: float, _: x}}\n"
                  "step: {name: run, use: model, do: echo}\n"
                  "analyser: {name: a, use: pat, analyse: {step: run, file: stdout}}\n"
                  "result: {use: a, table: {name: t, column: [layers, time_avg, layers_run, "
                  "jube_res_analyser, jube_wp_id, tiem]}}\n");
  CHECK(checked.workflow);
  CHECK(checked.diagnostics.warning_count() == 1);
  CHECK(checked.says("column 'tiem' of table 't' is neither a parameter nor a pattern"));
  CHECK(checked.says("did you mean 'time'?"));
}
