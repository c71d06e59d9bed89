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
  CHECK(checked.messages() ==
        "f.yaml:8:15: warning: 'layres' is no parameter of step 's': it must come from the shell "
        "environment\n"
        "        train --n $layres $layersx\n"
        "                  ^~~~~~~\n"
        "hint: did you mean 'layers'?\n"
        "f.yaml:8:23: warning: 'layersx' is no parameter of step 's': it must come from the shell "
        "environment\n"
        "        train --n $layres $layersx\n"
        "                          ^~~~~~~~\n"
        "hint: did you mean 'layers'?\n");
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
