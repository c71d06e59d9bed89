// Result lines; expected values are those of runs of JUBE 2.5.1 unless a comment says otherwise.
#include "engine/results/rows/analyse.h"
#include "engine/workpackage/matching_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace tally;

namespace {

class Fixture {
 public:
  Fixture() {
    root_ = "/tmp/tally-analyse-" + std::to_string(::getpid());
    std::filesystem::create_directories(root_);
  }
  ~Fixture() { std::filesystem::remove_all(root_); }

  Pattern& pattern(const std::string& set, const std::string& name, const std::string& value,
                   ValueType type = ValueType::string, PatternMode mode = PatternMode::pattern) {
    PatternSet& to = benchmark.pattern_sets[set];
    Pattern p;
    p.name.value = name;
    p.value.value = value;
    p.type = type;
    p.mode = mode;
    to.patterns.push_back(p);
    return to.patterns.back();
  }
  void column(const std::vector<std::string>& names) {
    Table table;
    for (const std::string& name : names) {
      Column c;
      c.name.value = name;
      table.columns.push_back(c);
    }
    Result result;
    result.outputs.emplace_back(table);
    benchmark.results.push_back(result);
  }
  WorkpackageView& workpackage(int id, const std::string& step, std::vector<int> parents = {}) {
    WorkpackageView view;
    view.id = id;
    view.step = step;
    view.parents = std::move(parents);
    view.finished = true;
    view.work_dir = root_ + "/" + std::to_string(id);
    std::filesystem::create_directories(view.work_dir);
    if (benchmark.find_step(step) == nullptr) {
      benchmark.steps.emplace_back();
      benchmark.steps.back().name.value = step;
    }
    workpackages.push_back(view);
    return workpackages.back();
  }
  void file(int id, const std::string& name, const std::string& bytes) {
    std::ofstream(root_ + "/" + std::to_string(id) + "/" + name, std::ios::binary) << bytes;
  }
  void analyse_step(const std::string& step, const std::string& file,
                    const std::vector<std::string>& use = {}) {
    for (Analyse& a : analyser.analyse) {
      if (a.step.value != step) continue;
      a.files.push_back(analyse_file(file, use));
      return;
    }
    Analyse a;
    a.step.value = step;
    a.files.push_back(analyse_file(file, use));
    analyser.analyse.push_back(a);
  }
  Records run() {
    for (WorkpackageView& view : workpackages) view.parameters = view.values.size();
    auto evaluator = make_evaluator(".");
    return tally::analyse({benchmark, *evaluator, diagnostics}, analyser, workpackages);
  }
  // A row's value as text; "-" when it has none.
  static std::string at(const Records& records, size_t row, const std::string& name) {
    const Value* found = records.rows.at(row).values.find(name);
    return found == nullptr ? "-" : found->str();
  }

  Benchmark benchmark;
  Analyser analyser;
  std::vector<WorkpackageView> workpackages;
  Diagnostics diagnostics;

 private:
  static AnalyseFile analyse_file(const std::string& file, const std::vector<std::string>& use) {
    AnalyseFile f;
    f.path.value = file;
    for (const std::string& name : use) f.use.push_back({name, {}});
    return f;
  }
  std::string root_;
};

std::vector<Text> texts(const std::vector<std::string>& names) {
  std::vector<Text> out;
  for (const std::string& name : names) out.push_back({name, {}});
  return out;
}

}  // namespace

TEST_CASE_FIXTURE(
    Fixture, "a derived pattern says which value it lacks; what follows from it says nothing") {
  pattern("pt", "t", "time=$jube_pat_fp", ValueType::floating);
  pattern("pt", "rate", "100 / $t_avg", ValueType::floating, PatternMode::python);
  pattern("pt", "twice", "2 * $rate", ValueType::floating, PatternMode::python);
  column({"rate", "twice"});
  analyser.use = texts({"pt"});
  analyse_step("s", "out");
  workpackage(0, "s");
  file(0, "out", "time=4\n");
  workpackage(1, "s");
  file(1, "out", "ended early\n");
  Records records = run();
  CHECK(at(records, 0, "twice") == "50.0");
  CHECK(at(records, 1, "rate") == "nan");
  CHECK(at(records, 1, "twice") == "nan");
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(
      diagnostics.all()[0].message ==
      "pattern 'rate' could not be computed in 1 of 2 result lines: there is no value of 't_avg'");
}

// What JUBE 2.5.1's tables have (tests/peer/jube/w_missing_files.yaml).
TEST_CASE_FIXTURE(Fixture, "patterns of files that are missing") {
  pattern("all", "t", "time=$jube_pat_int", ValueType::integer);
  benchmark.pattern_sets["all"].patterns.back().default_value = "-1";
  pattern("all", "c", "2 + 3", ValueType::integer, PatternMode::python);
  pattern("one", "u", "used=$jube_pat_int", ValueType::integer);
  benchmark.pattern_sets["one"].patterns.back().default_value = "-2";
  pattern("one", "d", "u $u", ValueType::string, PatternMode::text);
  pattern("two", "w", "w=$jube_pat_int", ValueType::integer);
  pattern("two", "e", "'w' + '$u'", ValueType::string, PatternMode::python);
  column({"t", "t_cnt", "c", "u", "d", "w", "e"});
  analyser.use = texts({"all"});
  analyse_step("s", "out", {"one"});
  analyse_step("s", "glob*", {"two"});
  for (int id = 0; id < 4; ++id) workpackage(id, "s");
  file(0, "out", "time=3 used=4\n");
  file(1, "glob1", "w=5\n");
  file(2, "out", "ended early\n");
  file(2, "glob2", "ended early\n");
  const Records records = run();
  const auto row = [&](int id) {
    std::string cells;
    for (const char* name : {"t", "t_cnt", "c", "u", "d", "w", "e"})
      cells += at(records, id, name) + "|";
    return cells;
  };
  CHECK(row(0) == "3|1|5|4|u 4|-|-|");
  CHECK(row(1) == "-1|0|5|-|-|5|-|");
  CHECK(row(2) == "-1|0|5|-2|u -2|-|w-2|");
  CHECK(row(3) == "-1|0|5|-|-|-|-|");
}

TEST_CASE_FIXTURE(Fixture,
                  "a log given by hand stands for the first file; others lie beside its namesake") {
  pattern("log", "t", "time=$jube_pat_fp", ValueType::floating);
  pattern("record", "version", "version $jube_pat_wrd");
  column({"t_avg", "version"});
  analyse_step("s", "job.out", {"log"});
  analyse_step("s", "record", {"record"});
  workpackage(0, "s");
  file(0, "job.out", "time=4\n");
  file(0, "other.out", "time=8\n");
  file(0, "record", "version 7\n");
  workpackages[0].log = workpackages[0].work_dir + "/job.out";
  workpackages[0].work_dir = "/nowhere";
  Records records = run();
  CHECK(at(records, 0, "t_avg") == "4.0");
  CHECK(at(records, 0, "version") == "7");
  workpackages[0].log.replace(workpackages[0].log.rfind('/') + 1, std::string::npos, "other.out");
  records = run();
  CHECK(at(records, 0, "t_avg") == "8.0");
  CHECK(at(records, 0, "version") == "-");
  CHECK(diagnostics.all().empty());
}

// What JUBE 2.5.1's tables have (tests/peer/jube/w_folders_for_files.yaml). The error is Tally's own.
TEST_CASE_FIXTURE(Fixture, "what is no file does not count as an empty one") {
  pattern("one", "u", "used=$jube_pat_int", ValueType::integer);
  benchmark.pattern_sets["one"].patterns.back().default_value = "-2";
  pattern("one", "d", "u $u", ValueType::string, PatternMode::text);
  column({"u", "d"});
  analyse_step("s", "a", {"one"});
  analyse_step("s", "b*", {"one"});
  for (int id = 0; id < 5; ++id) workpackage(id, "s");
  std::filesystem::create_directories(workpackages[0].work_dir + "/a");
  REQUIRE(::mkfifo((workpackages[1].work_dir + "/b1").c_str(), 0600) == 0);
  std::filesystem::create_directories(workpackages[2].work_dir + "/b1");
  file(2, "b2", "used=7\n");
  std::filesystem::create_directory_symlink("/", workpackages[3].work_dir + "/a");
  file(4, "a", "");
  const Records records = run();
  std::string all;
  for (size_t row = 0; row < records.rows.size(); ++row)
    all += at(records, row, "u") + "," + at(records, row, "d") + ";";
  CHECK(all == "-,-;-,-;7,u 7;-,-;-2,u -2;");
  size_t errors = 0;
  for (const Diagnostic& one : diagnostics.all())
    errors += one.message.find("not a regular file") != std::string::npos ? 1 : 0;
  CHECK(errors == 4);
}

// What JUBE 2.5.1's tables have (tests/peer/jube/w_computed_chains.yaml, w_computed_defaults.yaml).
TEST_CASE_FIXTURE(Fixture, "the name of a computed pattern without a value stays in later ones") {
  benchmark.rules.missing_values_are_reported = false;  // as in JUBE's files
  const auto computed = [&](const std::string& name, const std::string& value, PatternMode mode,
                            const char* default_value = nullptr) {
    pattern("pt", name, value, ValueType::string, mode);
    if (default_value != nullptr)
      benchmark.pattern_sets["pt"].patterns.back().default_value = default_value;
  };
  pattern("pt", "x", "x=(.)");
  computed("d", "$x + 1", PatternMode::python);
  computed("text", "[$d]", PatternMode::text);
  computed("is_empty", "'$d' == ''", PatternMode::python);
  computed("next", "$d + 1", PatternMode::python);
  computed("chain", "[$next]", PatternMode::text);
  computed("fails", "1 / 0", PatternMode::python);
  computed("of_failed", "[$fails]", PatternMode::text);
  computed("first", "$x + 1", PatternMode::python, "Z");
  computed("of_first", "[$first]", PatternMode::text);
  computed("second", "$x + $d", PatternMode::python, "Y");
  computed("of_second", "[$second]", PatternMode::text);
  const std::vector<std::string> names = {"d",        "text",   "is_empty",  "next",
                                          "chain",    "fails",  "of_failed", "first",
                                          "of_first", "second", "of_second"};
  column(names);
  analyser.use = texts({"pt"});
  analyse_step("s", "out");
  workpackage(0, "s");
  workpackage(1, "s");
  file(0, "out", "x=4\n");
  file(1, "out", "no match\n");
  const Records records = run();
  const auto row = [&](size_t index) {
    std::string all;
    for (const std::string& name : names) all += at(records, index, name) + ",";
    return all;
  };
  CHECK(row(0) == "5,[5],False,6,[6],,[],5,[5],9,[9],");
  CHECK(row(1) == ",[$d],False,,[$next],,[],Z,[Z],Y,[$second],");
}

TEST_CASE_FIXTURE(Fixture, "patterns, defaults and derived patterns of one workpackage") {
  pattern("pt", "t", "time=${jube_pat_fp}", ValueType::floating).unit = "s";
  pattern("pt", "n", "n=$jube_pat_int", ValueType::integer);
  pattern("pt", "w", "w=$jube_pat_wrd");
  pattern("pt", "big", "big=$jube_pat_wrd", ValueType::integer);
  pattern("pt", "none", "none=$jube_pat_int", ValueType::integer);
  pattern("pt", "dflt", "none=$jube_pat_int", ValueType::integer).default_value = "-1";
  pattern("pt", "ap", "a$a=$jube_pat_int", ValueType::integer);
  pattern("pt", "blk", R"((\d+))");
  pattern("pt", "viablk", "n=$blk");
  pattern("pt", "der2", "$der*2", ValueType::floating, PatternMode::python);
  pattern("pt", "der", "$t_avg*2", ValueType::floating, PatternMode::python);
  pattern("pt", "dbad", "$none*2", ValueType::integer, PatternMode::python);
  pattern("pt", "dbads", "$none*2", ValueType::string, PatternMode::python);
  pattern("pt", "dtx", "<$t_first|$a|$w>", ValueType::string, PatternMode::text);
  pattern("pt", "dsh", "echo $t; echo z", ValueType::string, PatternMode::shell);
  column({"t",     "t_std",    "t_cnt",     "n",   "n_last",  "n_sum", "n_avg",
          "w",     "w_cnt",    "w_sum",     "big", "big_cnt", "none",  "none_cnt",
          "dflt",  "dflt_cnt", "dflt_sum2", "ap",  "ap_cnt",  "der",   "der2",
          "dbad",  "dbads",    "dtx",       "dsh", "a",       "a_s",   "jube_res_analyser",
          "viablk"});
  WorkpackageView& p = workpackage(0, "s");
  p.values = {{"a", "1"}, {"unused", "x"}};
  p.types = WorkpackageView::Types{{"a", ValueType::integer}};
  file(0, "stdout",
       "time=1.5 n=3 big=1e30 w=foo a1=11 a2=22\ntime=2 n=4.5 big=abc w=bar a1=12 a2=23\n"
       "time=4e0 n=5 big=12345678901234567 w=bar\n");
  analyser.name.value = "an";
  analyser.use = texts({"pt"});
  analyse_step("s", "stdout");
  Records r = run();
  REQUIRE(r.rows.size() == 1);
  CHECK(at(r, 0, "t") == "1.5");
  CHECK(at(r, 0, "t_std") == "1.3228756555322954");
  CHECK(at(r, 0, "n_last") == "5");
  CHECK(at(r, 0, "n_sum") == "12");
  CHECK(at(r, 0, "n_avg") == "4.0");
  CHECK(at(r, 0, "w_cnt") == "3");
  CHECK(at(r, 0, "w_sum") == "-");
  CHECK(at(r, 0, "big") == "1000000000000000000000000000000");
  CHECK(at(r, 0, "big_cnt") == "2");
  CHECK(at(r, 0, "none") == "-");
  CHECK(at(r, 0, "none_cnt") == "-");
  CHECK(at(r, 0, "dflt") == "-1");
  CHECK(at(r, 0, "dflt_cnt") == "0");
  CHECK(at(r, 0, "ap") == "11");
  CHECK(at(r, 0, "ap_cnt") == "2");
  CHECK(at(r, 0, "der") == "5.0");
  CHECK(at(r, 0, "der2") == "10.0");
  CHECK(at(r, 0, "dbad") == "nan");
  CHECK(at(r, 0, "dbads") == "-");
  CHECK(at(r, 0, "dtx") == "<1.5|1|foo>");
  CHECK(at(r, 0, "dsh") == "1.5\nz\n");
  CHECK(at(r, 0, "a_s") == "1");
  CHECK(at(r, 0, "viablk") == "3");
  CHECK(at(r, 0, "jube_res_analyser") == "an");
  CHECK(at(r, 0, "unused") == "-");  // no result can ask for it
  CHECK(r.known["t_max"].unit == "s");
  CHECK(r.known["t_cnt"].unit.empty());
  CHECK(r.known["t_sum2"].unit.empty());
  std::string said = diagnostics.format(Sources());
  CHECK(said.find("\"abc\" cannot be represented as a \"int\"") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "leaves make the rows; parents' values are merged in") {
  pattern("pt", "t", "time=${jube_pat_fp}", ValueType::floating);
  pattern("pt2", "t2", "val=${jube_pat_fp}", ValueType::floating);
  pattern("pt3", "only3", "val=${jube_pat_fp}");
  column({"t", "t2", "t2_cnt", "t2_last", "only3", "only3_cnt", "a", "a_s", "a_t", "q",
          "jube_wp_id", "jube_step_name"});
  for (int id : {0, 1}) {
    workpackage(id, "s").values = {
        {"a", std::to_string(id)}, {"jube_wp_id", std::to_string(id)}, {"jube_step_name", "s"}};
    file(id, "stdout", "time=" + std::to_string(id) + ".5\nval=11\n");
  }
  workpackage(2, "m", {0}).values = {{"a", "0"}};
  workpackage(3, "t", {2}).values = {
      {"a", "0"}, {"q", "u"}, {"jube_wp_id", "3"}, {"jube_step_name", "t"}};
  file(3, "stdout", "val=1.25\n");
  file(3, "f10", "val=9\n");
  file(3, "f1", "val=7\n");
  file(3, "f2", "val=8\n");
  analyser.use = texts({"pt"});
  analyse_step("s", "stdout");
  analyse_step("t", "stdout, f*, nofile", {"pt2"});
  analyse_step("t", "f1", {"pt3"});
  Records r = run();
  REQUIRE(r.rows.size() == 2);
  CHECK(at(r, 0, "jube_wp_id") == "1");  // s's other child failed or never was
  CHECK(at(r, 0, "t2") == "-");
  CHECK(at(r, 1, "jube_wp_id") == "3");
  CHECK(at(r, 1, "jube_step_name") == "t");
  CHECK(at(r, 1, "t") == "0.5");
  CHECK(at(r, 1, "t2") == "1.25");
  CHECK(at(r, 1, "t2_cnt") == "4");
  CHECK(at(r, 1, "t2_last") == "9.0");  // natural order of files; JUBE's is the directory's
  CHECK(at(r, 1, "only3") == "7");
  CHECK(at(r, 1, "only3_cnt") == "1");
  CHECK(at(r, 1, "a_s") == "0");
  CHECK(at(r, 1, "a_t") == "0");
  CHECK(diagnostics.format(Sources()).find("no file 'nofile'") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "reduce merges the iterations of one point") {
  pattern("pt", "t", "time=${jube_pat_fp}", ValueType::floating);
  column({"a", "t", "t_cnt", "t_avg", "t_std", "jube_wp_id"});
  int id = 0;
  for (const char* a : {"1", "2"}) {
    for (int iteration : {0, 1}) {
      WorkpackageView& p = workpackage(id, "s");
      p.iteration = iteration;
      p.values = {{"a", a}, {"jube_wp_id", std::to_string(id)}};
      file(id, "stdout", std::string("time=") + a + "." + std::to_string(iteration) + "\n");
      ++id;
    }
  }
  analyser.use = texts({"pt"});
  analyse_step("s", "stdout");
  Records r = run();
  REQUIRE(r.rows.size() == 2);
  CHECK(at(r, 0, "t") == "1.0");
  CHECK(at(r, 0, "t_cnt") == "2");
  CHECK(at(r, 0, "t_avg") == "1.05");
  CHECK(at(r, 0, "t_std") == "0.070710678118654");
  CHECK(at(r, 1, "t_std") == "0.07071067811866028");
  CHECK(at(r, 1, "jube_wp_id") == "2");
  analyser.reduce = false;
  CHECK(run().rows.size() == 4);
}

TEST_CASE_FIXTURE(Fixture, "equal values of a parameter are still two points") {
  pattern("pt", "t", "time=${jube_pat_fp}", ValueType::floating);
  column({"t"});
  for (int id : {0, 1}) {
    workpackage(id, "s").values = {{"a", "1"}};
    file(id, "stdout", "time=1\n");
  }
  analyser.use = texts({"pt"});
  analyse_step("s", "stdout");
  CHECK(run().rows.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "a parameter made from jube_wp_iteration does not part the iterations") {
  ParameterSet& set = benchmark.parameter_sets["ps"];
  Parameter seed;
  seed.name.value = "seed";
  seed.value.value = "${jube_wp_iteration}7";
  Parameter twice = seed;
  twice.name.value = "twice";
  twice.value.value = "$seed$seed";
  set.parameters = {seed, twice};
  pattern("pt", "t", "time=${jube_pat_fp}", ValueType::floating);
  column({"t_cnt"});
  for (int id : {0, 1}) {
    WorkpackageView& p = workpackage(id, "s");
    p.iteration = id;
    p.values = {{"seed", std::to_string(id) + "7"}, {"twice", std::to_string(id)}};
    file(id, "stdout", "time=1\n");
  }
  analyser.use = texts({"pt"});
  analyse_step("s", "stdout");
  Records r = run();
  REQUIRE(r.rows.size() == 1);
  CHECK(at(r, 0, "t_cnt") == "2");
}

TEST_CASE_FIXTURE(Fixture, "a pattern with a parameter's name is an error") {
  pattern("pt", "a", "time=${jube_pat_fp}");
  column({"a"});
  workpackage(0, "s").values = {{"a", "1"}};
  file(0, "stdout", "time=1\n");
  analyser.use = texts({"pt"});
  analyse_step("s", "stdout");
  CHECK(run().rows.empty());
  CHECK(diagnostics.has_errors());
}

TEST_CASE_FIXTURE(Fixture, "an unreadable pattern is an error with its words") {
  pattern("pt", "t", "time=(");
  column({"t"});
  workpackage(0, "s");
  file(0, "stdout", "time=1\n");
  analyser.use = texts({"pt"});
  analyse_step("s", "stdout");
  run();
  CHECK(diagnostics.has_errors());
  Diagnostics early;
  check_patterns(benchmark, early);
  CHECK(early.error_count() == 1);
}

// What Python's re finds in the text that bytes.decode("utf-8", "surrogateescape") makes.
TEST_CASE_FIXTURE(Fixture,
                  "a byte that is not UTF-8 is a character that is no letter, digit or space") {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {R"(lat.*: (\d+))", "4 8"},
      {R"(lat [^:]*: (\d+))", "4 8"},
      {R"(lat \S+: (\d+))", "2 8"},
      {R"(lat \W+: (\d+))", "1 8"},
      {R"(lat \D+: (\d+))", "3 8"},
      {R"(lat .(.): )", "1 s"},
      {R"(lat . ..: (\d+))", "2 7"},
      {R"(lat .{4}: (\d+))", "3 8"},
      {R"(name=(.*))", "1 K\xf6ln end"},
      {R"(name=(\w+))", "1 K"},
      {R"(name=K(.)ln)", "1 \xf6"},
      {"\xc3\xa9 (..)", "1 \xe2\x82"},
      {"(?s)(5\nlat.*)lat \xc3\xa9", "1 5\nlat \xb5s: 6\n"},
      {"name=(K\xf6ln)", "1 K\xf6ln"},  // as a parameter's value may have it
      {R"(name=K([\s\d\w])ln)", "- -"}};
  std::vector<std::string> names;
  for (const auto& [text, values] : expected) {
    names.push_back("p" + std::to_string(names.size()));
    pattern("pt", names.back(), text);
  }
  std::vector<std::string> columns;
  for (const std::string& name : names) {
    columns.push_back(name + "_cnt");
    columns.push_back(name + "_last");
  }
  column(columns);
  analyser.use = texts({"pt"});
  for (const char* bytes : {"\n", "\r\n"}) {
    const int id = static_cast<int>(workpackages.size());
    std::string out;
    for (const char* line : {"lat 1 us: 5", "lat \xb5s: 6", "lat \xc3\xa9 \xe2\x82: 7",
                             "lat \xed\xa0\x80\xff: 8", "name=K\xf6ln end"})
      out += line + std::string(bytes);
    workpackage(id, "s");
    file(id, "out", out);
  }
  analyse_step("s", "out");
  const Records records = run();
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(expected[i].first);
    for (const size_t row : {size_t{0}, size_t{1}}) {
      CHECK(at(records, row, names[i] + "_cnt") + " " + at(records, row, names[i] + "_last") ==
            expected[i].second);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "unfinished workpackages have no row") {
  pattern("pt", "t", "time=${jube_pat_fp}");
  column({"t"});
  workpackage(0, "s").finished = false;
  file(0, "stdout", "time=1\n");
  analyser.use = texts({"pt"});
  analyse_step("s", "stdout");
  CHECK(run().rows.empty());
}

TEST_CASE("files in natural order") {
  CHECK(natural_less("f2", "f10"));
  CHECK(!natural_less("f10", "f2"));
  CHECK(natural_less("a", "b"));
  CHECK(natural_less("f", "f1"));
  CHECK(natural_less("f01", "f1") != natural_less("f1", "f01"));
}

// Runs of more than a thousand workpackages are read by several threads; what is reported must not
// depend on that.
TEST_CASE_FIXTURE(Fixture, "the rows and messages of a large run are in order") {
  pattern("p", "v", "v=$jube_pat_wrd", ValueType::integer);
  pattern("p", "w", "w=$jube_pat_int", ValueType::integer);
  pattern("p", "of_this", "v=($number)", ValueType::integer);
  column({"number", "v", "w", "of_this"});
  analyser.use = texts({"p"});
  analyse_step("s", "out");
  const int count = 2100;
  for (int id = 0; id < count; ++id) {
    WorkpackageView& one = workpackage(id, "s");
    one.values.emplace_back("number", std::to_string(id));
    const bool odd = id == 1700 || id == 300;
    if (id != 1999 && id != 20) file(id, "out", odd ? "v=x\n" : "v=" + std::to_string(id) + "\n");
  }
  file(7, "out", "v=7\nw=70\n");
  file(2000, "out", "v=2000\nw=71\n");
  const Records records = run();
  REQUIRE(records.rows.size() == count);
  for (size_t i = 0; i < records.rows.size(); ++i) {
    const std::string id = std::to_string(i);
    const bool lacks = i == 1700 || i == 300 || i == 1999 || i == 20;
    CHECK(at(records, i, "v") == (lacks ? "-" : id));
    CHECK(at(records, i, "of_this") == (lacks ? "-" : id));
  }
  CHECK(at(records, 7, "w") == "70");
  CHECK(at(records, 2000, "w") == "71");
  std::vector<std::string> said;
  for (const Diagnostic& one : diagnostics.all()) said.push_back(one.message);
  REQUIRE(said.size() == 2);
  CHECK(said[0].find("no file 'out' in the work directory of workpackage 20 ") == 0);
  CHECK(said[0].find(" (and 1 more of this kind)") != std::string::npos);
  CHECK(said[1].find("pattern 'v': \"x\" cannot be represented as a \"int\", in ") == 0);
  CHECK(said[1].find("/300/out (and 1 more of this kind)") != std::string::npos);
  REQUIRE(records.unmatched.size() == 2);
  CHECK(records.unmatched[0].text ==
        "pattern 'w' matched nothing in 2096 of 2098 workpackages (0, 1, 2, 3, 4, ...); searched: "
        "out");
  CHECK(records.unmatched[1].text ==
        "pattern 'of_this' matched nothing in 2 of 2098 workpackages (300, 1700); searched: out");
}
