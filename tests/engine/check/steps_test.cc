// Steps, analysers and results as plain values.
#include "tests/engine/check/checked.h"

using namespace tally;

TEST_CASE("a step with everything") {
  Checked checked(
      "name: b\noutpath: o\ncomment: ' text '\n"
      "parameterset: [{name: p}, {name: q}, {name: r}]\n"
      "step:\n"
      "  - {name: a, do: echo}\n"
      "  - name: s\n"
      "    depend: a, a\n"
      "    use: ['p,q', r]\n"
      "    work_dir: w\n"
      "    suffix: '${jube_wp_id}'\n"
      "    shared: sh\n"
      "    export: true\n"
      "    max_async: 2\n"
      "    iterations: 3\n"
      "    cycles: 4\n"
      "    procs: 5\n"
      "    active: $jube_wp_id < 2\n"
      "    do_log_file: log\n"
      "    do:\n"
      "      - ' echo 1 '\n"
      "      - {stdout: o, stderr: e, work_dir: d, done_file: df, error_file: ef, break_file: bf,\n"
      "         shared: true, active: false, _: echo 2}\n");
  CHECK(checked.messages() == "");
  const Benchmark& b = checked.benchmark();
  CHECK(b.name.value == "b");
  CHECK(b.outpath.value == "o");
  CHECK(b.comment == "text");
  CHECK(b.input_file == "f.yaml");
  CHECK(b.file_path.at(0) == '/');
  const Step* s = b.find_step("s");
  REQUIRE(s);
  CHECK(b.find_step("nix") == nullptr);
  CHECK(s->kind == StepKind::plain);
  REQUIRE(s->depend.size() == 1);
  REQUIRE(s->use.size() == 3);
  CHECK(s->use[1].value == "q");
  CHECK(s->work_dir.value == "w");
  CHECK(s->suffix.value == "${jube_wp_id}");
  CHECK(s->shared == "sh");
  CHECK(s->exported);
  CHECK(s->max_async.value == "2");
  CHECK(s->iterations.value == "3");
  CHECK(s->cycles.value == "4");
  CHECK(s->procs.value == "5");
  CHECK(s->active.value == "$jube_wp_id < 2");
  CHECK(s->do_log_file.value == "log");
  REQUIRE(s->operations.size() == 2);
  CHECK(s->operations[0].command.value == "echo 1");
  CHECK(s->operations[0].active.value == "true");
  const Operation& op = s->operations[1];
  CHECK(op.stdout_file.value == "o");
  CHECK(op.stderr_file.value == "e");
  CHECK(op.work_dir.value == "d");
  CHECK(op.done_file.value == "df");
  CHECK(op.error_file.value == "ef");
  CHECK(op.break_file.value == "bf");
  CHECK(op.shared);
  CHECK(op.active.value == "False");
}

TEST_CASE("a run step in Tally's own keys") {
  Checked checked(
      "name: b\n"
      "step:\n"
      "  name: t\n"
      "  kind: run\n"
      "  resources: {nodes: $n, tasks_per_node: 4, cpus_per_task: 8, gpus_per_node: 4,\n"
      "              time: '00:30:00', partition: gpu, account: acc, memory: 64G,\n"
      "              options: {constraint: a100, qos: high}}\n"
      "  launch: tally-train --layers 2\n"
      "  env: {OMP_NUM_THREADS: 4, EMPTY: }\n"
      "  env_unset: [A, B]\n"
      "  modules: [CUDA, NCCL]\n"
      "  expect: oom, timeout\n"
      "  timeout: 30m\n"
      "  retry: 2\n"
      "  repeat: 3\n"
      "  gpu_slots: 1\n");
  CHECK(checked.messages() == "");
  const Step& s = checked.benchmark().steps.at(0);
  CHECK(s.kind == StepKind::run);
  CHECK(s.resources.any);
  CHECK(s.resources.nodes.value == "$n");
  CHECK(s.resources.tasks_per_node.value == "4");
  CHECK(s.resources.cpus_per_task.value == "8");
  CHECK(s.resources.gpus_per_node.value == "4");
  CHECK(s.resources.time.value == "00:30:00");
  CHECK(s.resources.partition.value == "gpu");
  CHECK(s.resources.account.value == "acc");
  CHECK(s.resources.memory.value == "64G");
  REQUIRE(s.resources.extra.size() == 2);
  CHECK(s.resources.extra[0].first.value == "constraint");
  CHECK(s.resources.extra[0].second.value == "a100");
  CHECK(s.launch.value == "tally-train --layers 2");
  REQUIRE(s.env.size() == 2);
  CHECK(s.env[0].first.value == "OMP_NUM_THREADS");
  CHECK(s.env[0].second.value == "4");
  CHECK(s.env[1].second.value.empty());
  REQUIRE(s.env_unset.size() == 2);
  CHECK(s.env_unset[1].value == "B");
  REQUIRE(s.modules.size() == 2);
  CHECK(s.modules[0].value == "CUDA");
  REQUIRE(s.expect.size() == 2);
  CHECK(s.expect[1].value == "timeout");
  CHECK(s.timeout.value == "30m");
  CHECK(s.retry.value == "2");
  CHECK(s.repeat.value == "3");
  CHECK(s.gpu_slots.value == "1");
}

TEST_CASE("analysers and results") {
  Checked checked(
      "name: b\n"
      "patternset: [{name: p, pattern: {name: v, _: x}}, {name: q, pattern: {name: w, type: int, "
      "_: x}}]\n"
      "step: [{name: s, do: echo}, {name: t, do: echo}]\n"
      "analyser:\n"
      "  name: a\n"
      "  reduce: false\n"
      "  use: p\n"
      "  analyse:\n"
      "    - {step: s, file: [stdout, {use: q, _: 'a.log, b*'}]}\n"
      "    - {step: t, file: stderr}\n"
      "result:\n"
      "  result_dir: rd\n"
      "  use: a\n"
      "  table:\n"
      "    name: t\n"
      "    style: pretty\n"
      "    separator: ' ; '\n"
      "    sort: [v, w]\n"
      "    filter: $v > 1\n"
      "    transpose: true\n"
      "    column:\n"
      "      - v\n"
      "      - {title: W, format: .2f, colw: 8, null_value: '-', _: w_avg}\n"
      "      - {_: speedup, expression: baseline.v / v, relative_to: {w: 1},\n"
      "         reference: {_: '>= 2', note: from the paper}}\n"
      "    reference: {column: v, where: $w == 1, _: '<= 560'}\n"
      "  database: {name: d, file: f.db, primekeys: 'v', filter: 'True', key: [v, {primekey: true, "
      "_: w}]}\n"
      "  syslog: {name: l, host: h, sort: v, key: {title: T, format: d, _: v}}\n");
  CHECK(checked.messages() == "");
  const Benchmark& b = checked.benchmark();
  const Analyser& a = b.analysers.at(0);
  CHECK_FALSE(a.reduce);
  CHECK(a.use.at(0).value == "p");
  REQUIRE(a.analyse.size() == 2);
  REQUIRE(a.analyse[0].files.size() == 2);
  CHECK(a.analyse[0].files[1].path.value == "a.log, b*");
  CHECK(a.analyse[0].files[1].use.at(0).value == "q");
  const Result& r = b.results.at(0);
  CHECK(r.result_dir.value == "rd");
  CHECK(r.use.at(0).value == "a");
  REQUIRE(r.outputs.size() == 3);
  const auto& t = std::get<Table>(r.outputs[0]);
  CHECK(t.style == TableStyle::pretty);
  CHECK(t.separator == " ; ");
  CHECK(t.sort == std::vector<std::string>{"v", "w"});
  CHECK(t.filter.value == "$v > 1");
  CHECK(t.transpose);
  REQUIRE(t.columns.size() == 3);
  CHECK(t.columns[1].title == "W");
  CHECK(t.columns[1].format == ".2f");
  CHECK(t.columns[1].colw == "8");
  CHECK(t.columns[1].null_value_set);
  CHECK(t.columns[1].null_value == "-");
  CHECK(t.columns[2].expression.value == "baseline.v / v");
  REQUIRE(t.columns[2].relative_to.size() == 1);
  CHECK(t.columns[2].relative_to[0].first.value == "w");
  REQUIRE(t.references.size() == 2);
  CHECK(t.references[0].column.value == "speedup");
  CHECK(t.references[0].condition.value == ">= 2");
  CHECK(t.references[0].note.value == "from the paper");
  CHECK(t.references[1].where.value == "$w == 1");
  const auto& d = std::get<Database>(r.outputs[1]);
  CHECK(d.file.value == "f.db");
  CHECK(d.primary_keys == std::vector<std::string>{"v", "w"});
  CHECK(d.keys.at(0).primary_key);
  const auto& l = std::get<Syslog>(r.outputs[2]);
  CHECK(l.host == "h");
  CHECK(l.port == "514");
  CHECK(l.keys.at(0).title == "T");
}

TEST_CASE("the same in XML") {
  Checked checked("f.xml",
                  Files{{"f.xml",
                         "<?xml version=\"1.0\"?>\n<jube>\n <benchmark name=\"b\" outpath=\"o\">\n"
                         "  <parameterset name=\"p\">\n   <parameter name=\"x\" type=\"int\">\n   "
                         "1,2 </parameter>\n"
                         "  </parameterset>\n"
                         "  <step name=\"s\" kind=\"run\" iterations=\"2\">\n   <use>\n p </use>\n"
                         "   <resources nodes=\"2\"><options qos=\"x\"/></resources>\n"
                         "   <launch> prog $x </launch>\n   <env A=\"1\"/>\n  </step>\n "
                         "</benchmark>\n</jube>\n"}});
  CHECK(checked.messages() == "");
  const Step& s = checked.benchmark().steps.at(0);
  CHECK(s.use.at(0).value == "p");
  CHECK(s.resources.extra.at(0).first.value == "qos");
  CHECK(s.launch.value == "prog $x");
  CHECK(s.env.at(0).second.value == "1");
  const Parameter& x = checked.set("p").parameters.at(0);
  CHECK(x.value.value == "1,2");
  CHECK(x.value.mark == Mark{0, 6, 4});
  CHECK(x.type == ValueType::integer);
}

TEST_CASE("names given twice") {
  CHECK(Checked("name: b\nstep: [{name: s, do: a}, {name: s, do: b}]\n").messages() ==
        "f.yaml:2:33: error: step 's' is defined twice\n"
        "    step: [{name: s, do: a}, {name: s, do: b}]\n"
        "                                    ^\n"
        "f.yaml:2:15: note: the first one is here\n"
        "    step: [{name: s, do: a}, {name: s, do: b}]\n"
        "                  ^\n");
  CHECK(Checked("- {name: b, step: {name: s}}\n- {name: b, step: {name: s}}\n")
            .says("f.yaml:2:10: error: benchmark 'b' is defined twice"));
  CHECK(Checked("name: b\nparameterset: [{name: p}, {name: p}]\n")
            .says("error: parameterset 'p' is defined twice"));
  CHECK(Checked("parameterset: {name: p}\nbenchmark: {name: b, parameterset: {name: p}}\n")
            .says("error: parameterset 'p' is defined twice"));
  CHECK(Checked("name: b\nparameterset: {name: p}\nstep: {name: s, use: [p, p], do: x}\n")
            .says("Element \"p\" can only be used once"));
  const std::string results =
      "name: b\nresult: {table: [{name: t, column: n}, {name: t, column: v}]}\n";
  CHECK(Checked(results).says("f.yaml:2:47: error: result 't' is defined twice"));
  CHECK(Checked(results).says("f.yaml:2:25: note: the first one is here"));
  CHECK(Checked("name: b\nresult: [{table: {name: t, column: n}}, {database: {name: t, key: n}}]\n")
            .says("error: result 't' is defined twice"));
}

TEST_CASE("a command that YAML takes for a mapping is an error, not an empty command") {
  const std::string start = "name: b\nstep:\n  - name: s\n    do:\n    - echo a\n";
  const Checked checked(start + "    - echo val: b\n");
  CHECK(checked.says("f.yaml:6:7: error: unknown key 'echo val' in do"));
  CHECK(checked.says("hint: a command with ': ' in it must be quoted"));
  CHECK(
      Checked(start + "    - {_: echo, my key: b}\n").says("warning: unknown key 'my key' in do"));
}
