// What schedulers print, as their tables read it: every file of answers/ has the answers of one.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/execute/jobs/table_answers.h"
#include "engine/read/scheduler_file.h"

using namespace tally;

namespace {

std::shared_ptr<const SchedulerTable> shipped(const std::string& name) {
  const std::string path = std::string(TALLY_TEMPLATES) + "/" + scheduler_file(name);
  std::string text;
  REQUIRE(read_file(path, &text));
  Sources sources;
  Diagnostics diagnostics;
  const uint32_t file = sources.add(path, text);
  auto table = read_scheduler_table(path, file, text, diagnostics);
  CAPTURE(diagnostics.format(sources));
  REQUIRE(table);
  return table;
}

// "=== QUESTION EXPECTED | where it is from", and the answer until the next such line. Of a command
// that failed the question is refused (a submission), failed or account-failed.
struct Recorded {
  std::string question, expected, source, answer;
};

std::vector<Recorded> recorded(const std::string& name) {
  std::ifstream file(std::string(TALLY_ANSWERS) + "/" + name + ".txt");
  std::vector<Recorded> all;
  for (std::string line; std::getline(file, line);) {
    if (!starts_with(line, "=== ")) {
      if (!all.empty()) all.back().answer += line + "\n";
      continue;
    }
    const size_t bar = line.find('|');
    const std::string head(strip(line.substr(4, bar - 4)));
    all.push_back({head.substr(0, head.find(' ')), std::string(strip(head.substr(head.find(' ')))),
                   std::string(strip(line.substr(bar + 1))), ""});
  }
  return all;
}

std::string meaning_name(JobMeaning wanted) {
  for (const auto& [name, meaning] : job_meanings())
    if (meaning == wanted) return std::string(name);
  return {};
}

// "12: running, 13: ended", "none", "unreadable".
std::string reading(const SchedulerTable& table, const TableQuestion& question,
                    const std::string& answer) {
  std::vector<JobFields> jobs;
  if (!read_answer(question.answer, answer, &jobs)) return "unreadable";
  std::string text;
  for (const JobFields& job : jobs) {
    text += (text.empty() ? "" : ", ") + job.at("id") + ": " + meaning_name(meaning_of(table, job));
    // Unknown is never success.
    bool known = false;
    const JobReport report = report_of(table, question.answer, job, &known);
    CHECK((report.state == JobState::ok) == (meaning_of(table, job) == JobMeaning::ended));
  }
  return text.empty() ? "none" : text;
}

// What follows from the words of a command that failed.
std::string failing(const SchedulerTable& table, const Recorded& one) {
  if (one.question == "refused") {
    const auto refusal = refusal_by_words(table, one.answer);
    if (!refusal) return "rejected";
    return *refusal == Refusal::full ? "full" : "away";
  }
  const bool account = one.question == "account-failed";
  return says_unknown_alone(table, account ? table.account : table.query, one.answer) ? "none"
                                                                                      : "unheard";
}

void check(const std::string& name, size_t least) {
  const auto table = shipped(name);
  const std::vector<Recorded> answers = recorded(name);
  CHECK(answers.size() >= least);
  for (const Recorded& one : answers) {
    CAPTURE(one.source);
    CAPTURE(one.answer);
    if (one.question == "submit") {
      CHECK(submitted_id(*table, one.answer) == (one.expected == "none" ? "" : one.expected));
    } else if (one.question == "refused" || one.question.ends_with("failed")) {
      CHECK(failing(*table, one) == one.expected);
    } else {
      CHECK(reading(*table, one.question == "account" ? table->account : table->query,
                    one.answer) == one.expected);
    }
  }
}

}  // namespace

TEST_CASE("answers of Grid Engine") {
  check("sge", 20);
}
TEST_CASE("answers of PBS") {
  check("pbs", 40);
}
TEST_CASE("answers of LSF") {
  check("lsf", 40);
}
TEST_CASE("answers of Flux") {
  check("flux", 40);
}

TEST_CASE("what a job used") {
  const JobUse use = use_of({{"elapsed", "4s"}, {"max_rss", "2048KB"}, {"nodes", "n1"}});
  CHECK(use.seconds == 4);
  CHECK(use.max_rss == 2);
  CHECK(use.nodes == "n1");
  CHECK(use_of({{"elapsed", "00:01:04"}, {"max_rss", "3145728kb"}}).seconds == 64);
  CHECK(use_of({{"elapsed", "00:01:04"}, {"max_rss", "3145728kb"}}).max_rss == 3072);
  CHECK_FALSE(use_of({}).seconds.has_value());
  CHECK_FALSE(use_of({{"max_rss", "-"}}).max_rss.has_value());
}

TEST_CASE("what a job asks for, in a scheduler's directives") {
  const auto pbs = shipped("pbs");
  const auto lsf = shipped("lsf");
  std::map<std::string, std::string> values = {
      {"nodes", "2"}, {"tasks_per_node", "4"}, {"cpus_per_node", "8"}, {"cpus_per_task", "2"}};
  const auto select = [&](const NamedValues& options) {
    return directive_lines(*pbs, values, options);
  };
  CHECK(select({}) == "#PBS -l select=2:ncpus=8:mpiprocs=4:ompthreads=2\n#PBS -r n");
  values["gpus"] = "4";
  values["memory"] = memory_word(*pbs, "64G");
  CHECK(select({{"r", "y"}}) ==
        "#PBS -l select=2:ncpus=8:mpiprocs=4:ompthreads=2:ngpus=4:mem=64gb");
  for (const auto& [given, word] : {std::pair{"64G", "64gb"},
                                    {"64gb", "64gb"},
                                    {"500MiB", "500mb"},
                                    {"4096", "4096mb"},
                                    {"4.5G", ""},
                                    {"much", ""},
                                    {"64 G", ""}})
    CHECK(memory_word(*pbs, given) == word);
  CHECK(job_name_word(*pbs, "13b train") == "t13b_train");
  CHECK(job_name_word(*lsf, "13b train") == "13b_train");
  CHECK(directive_word(*pbs, "two words") == "\"two words\"");
  CHECK(directive_word(*pbs, "a\"b c") == "'a\"b c'");
  CHECK(directive_word(*lsf, "rusage[mem=4]") == "\"rusage[mem=4]\"");
  CHECK(directive_fault(*pbs, "it's \"x\"").find("both kinds") != std::string::npos);
  CHECK(directive_fault(*lsf, "a\\b").find("a backslash, which LSF cannot") != std::string::npos);
  CHECK(job_name_word(*pbs, "my bench.s") == "my_bench.s");
  CHECK(job_name_word(*lsf, "a[1-3].s") == "a_1-3_.s");
}

TEST_CASE("options that a scheduler's command takes") {
  struct Row {
    const char* scheduler;
    const char* name;
    const char* value;
    const char* words;  // of the fault; empty: none
  };
  const JobRequests gpus{true, false};
  for (const Row& row : {Row{"pbs", "l", "walltime=10:00:00", "'time'"},
                         Row{"pbs", "l", "place=excl,select=2:ncpus=4", "'nodes'"},
                         Row{"pbs", "l", "ngpus=2", "'gpus_per_node'"},
                         Row{"pbs", "l", "pmem=2gb", ""},
                         Row{"pbs", "q", "x", "'partition'"},
                         Row{"pbs", "A", "x", "'account'"},
                         Row{"pbs", "N", "x", "name"},
                         Row{"pbs", "o", "x", "stdout"},
                         Row{"pbs", "J", "1-3", "submits"},
                         Row{"pbs", "W", "block=true", "option 'W'"},
                         Row{"pbs", "time", "5", "'time'"},
                         Row{"pbs", "M", "it's \"x\"", "both kinds"},
                         Row{"pbs", "l", "place=excl", ""},
                         Row{"pbs", "W", "umask=022", ""},
                         Row{"pbs", "V", "true", ""},
                         Row{"pbs", "V", "5", "takes no value"},
                         Row{"pbs", "r", "n", ""},
                         Row{"pbs", "walltime", "5", "qsub has no option '-walltime': use 'time'"},
                         Row{"pbs", "place", "excl", "its options: a, c"},
                         Row{"lsf", "W", "10", "'time'"},
                         Row{"lsf", "n", "4", "'tasks_per_node'"},
                         Row{"lsf", "nnodes", "4", "'nodes'"},
                         Row{"lsf", "M", "4GB", "'memory'"},
                         Row{"lsf", "q", "x", "'partition'"},
                         Row{"lsf", "P", "x", "'account'"},
                         Row{"lsf", "J", "x[1-3]", "name"},
                         Row{"lsf", "oo", "x", "stdout"},
                         Row{"lsf", "wt", "3", "'signal'"},
                         Row{"lsf", "R", "span[hosts=1]", "'tasks_per_node'"},
                         Row{"lsf", "gpu", "num=2", "'gpus_per_node'"},
                         Row{"lsf", "R", "rusage[mem=4]", ""},
                         Row{"lsf", "x", "true", ""},
                         Row{"lsf", "sla", "fast", ""},
                         Row{"sge", "l", "h_rt=10", "'time'"},
                         Row{"sge", "pe", "mpi 4", ""},
                         Row{"sge", "t", "1-3", "for each workpackage"},
                         Row{"sge", "notifi", "true", "did you mean 'notify'?"}}) {
    const auto fault = option_fault(*shipped(row.scheduler), row.name, row.value, gpus);
    const std::string text = fault ? fault->message + ": " + fault->hint : std::string();
    CAPTURE(std::string(row.scheduler) + " " + row.name + " " + row.value + ": " + text);
    CHECK((*row.words == '\0' ? text.empty() : text.find(row.words) != std::string::npos));
  }
}
