// A scheduler that its table describes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <map>
#include <set>

#include "engine/base/accounts.h"
#include "engine/base/text.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/execute/jobs/table_answers.h"
#include "engine/workspace/environment.h"
#include "engine/workspace/external_command.h"

namespace tally {
namespace {

using NamedTexts = std::map<std::string, std::string>;

// A command with its values. $ids stands for as many words.
std::vector<std::string> words_with(const std::vector<std::string>& command,
                                    const NamedTexts& values, const std::vector<std::string>& ids) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    if (word == "$ids") {
      words.insert(words.end(), ids.begin(), ids.end());
      continue;
    }
    std::string text = word;
    // A shell's own variables are in words with blanks.
    if (word.find_first_of(" \n") == std::string::npos) {
      for (const auto& [name, value] : values) replace_all(text, "$" + name, value);
    }
    words.push_back(std::move(text));
  }
  return words;
}

std::vector<std::string> answers_environment() {
  Environment environment = current_environment();
  environment["LC_ALL"] = "C";
  return entries(environment);
}

class TableScheduler final : public Scheduler {
 public:
  explicit TableScheduler(std::shared_ptr<const SchedulerTable> table) : table_(std::move(table)) {}

  Status submit(const JobRequest& request, std::string* id, Refusal* refusal) override {
    ExternalCommand spec;
    spec.words =
        words_with(table_->submit, {{"name", request.name}, {"script", request.script}}, {});
    spec.directory = request.directory;
    spec.environment = request.environment;
    const CommandResult result = run_external(spec);
    *refusal = Refusal::none;
    *id = submitted_id(*table_, result.out);
    if (result.status == 0 && !id->empty()) return Status::ok();
    if (result.status == 0) {
      // The job may have been accepted. It is looked for by its name before another attempt.
      *refusal = Refusal::transient;
      return Status::error(table_->title + " gave no job id: " + one_line(result.out + result.err));
    }
    const std::string said = error_text(result, table_->title);
    *refusal = refusal_by_words(*table_, said).value_or(refusal_of_end(result, !id->empty()));
    return Status::error(said);
  }

  Status find(const std::vector<std::string>& names, long long since, NamedTexts* ids) override {
    std::vector<JobFields> jobs;
    TRY(ask_for_all(since, &jobs));
    std::vector<JobFields> ended;
    if (table_->account.given()) {
      TRY(ask(table_->account, table_->account.command, {}, since, &ended));
    }
    jobs.insert(jobs.begin(), ended.begin(), ended.end());
    for (const JobFields& job : jobs) {
      const auto name = job.find("name");
      if (name != job.end() && contains(names, name->second)) (*ids)[name->second] = job.at("id");
    }
    return Status::ok();
  }

  // The queue knows which jobs wait or run, and an account how the others ended. Where one of the
  // two gives no answer, jobs that it may know count as unheard.
  Status query(const std::vector<std::string>& ids, long long since,
               std::map<std::string, JobReport>* reports) override {
    for (size_t at = 0; at < ids.size(); at += batch) {
      const auto end = static_cast<std::ptrdiff_t>(std::min(at + batch, ids.size()));
      const std::vector<std::string> some(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                          ids.begin() + end);
      const Status asked = take(table_->query, some, since, reports);
      if (!asked && !table_->account.given()) return asked;
      std::vector<std::string> open;
      for (const std::string& id : some) {
        if (!reports->contains(id)) open.push_back(id);
      }
      if (open.empty() || !table_->account.given()) continue;
      const Status accounted = take(table_->account, open, since, reports);
      if (!asked && !accounted) return asked;
      if (asked && accounted) continue;
      for (const std::string& id : open) reports->try_emplace(id);
    }
    return Status::ok();
  }

  Status usage(const std::vector<NamedJob>& jobs, long long since,
               std::map<std::string, JobUse>* uses) override {
    const TableQuestion& question = table_->account.given() ? table_->account : table_->query;
    std::vector<std::string> ids;
    for (const NamedJob& job : jobs) ids.push_back(job.id);
    std::vector<JobFields> answered;
    TRY(ask(question, question.command, ids, since, &answered));
    for (const JobFields& fields : answered) {
      bool known = false;
      const JobReport report = report_of(*table_, question.answer, fields, &known);
      for (const NamedJob& job : jobs) {
        if (job.id != fields.at("id") || (!report.name.empty() && report.name != job.name))
          continue;
        if (!is_active(report.state)) (*uses)[job.id] = use_of(fields);
      }
    }
    return Status::ok();
  }

  Status describe(std::vector<std::pair<std::string, std::string>>* facts) override {
    facts->clear();
    facts->emplace_back("Scheduler", table_->title);
    std::vector<JobFields> jobs;
    TRY(ask_for_all(std::time(nullptr), &jobs));
    SiteFacts found;
    TRY(site(&found));
    for (const QueueFacts& queue : found.queues) facts->emplace_back("Queue", queue_text(queue));
    return Status::ok();
  }

  Status site(SiteFacts* facts) override {
    *facts = {};
    facts->version = table_->title;
    if (!table_->queues.empty()) {
      const CommandResult result = run(table_->queues);
      if (result.status != 0) return Status::error(error_text(result, table_->title));
      facts->queues = queues_of_lines(result.out);
    }
    if (table_->accounts.empty()) return Status::ok();
    const CommandResult result =
        run(words_with(table_->accounts, {{"user", effective_user()}}, {}));
    for (const std::string& account : split_strip(result.status == 0 ? result.out : "", "\n"))
      if (!account.empty()) facts->accounts.push_back(account);
    return Status::ok();
  }

  Status cancel(const std::vector<NamedJob>& jobs, std::vector<std::string>* cancelled) override {
    cancelled->clear();
    std::vector<JobFields> there;
    TRY(ask_for_all(std::time(nullptr), &there));
    for (const JobFields& fields : there) {
      bool known = false;
      const JobReport report = report_of(*table_, table_->query.answer, fields, &known);
      const bool wanted = std::ranges::any_of(jobs, [&](const NamedJob& job) {
        return job.name == report.name && (job.id.empty() || job.id == fields.at("id"));
      });
      if (wanted && is_active(report.state)) cancelled->push_back(fields.at("id"));
    }
    if (cancelled->empty()) return Status::ok();
    const CommandResult result = run(words_with(table_->cancel, {}, *cancelled));
    if (result.status == 0 || says_unknown(table_->query, result)) return Status::ok();
    return Status::error(error_text(result, table_->title));
  }

  std::chrono::milliseconds pause() const override {
    constexpr double ms = 1000;
    return std::chrono::milliseconds(static_cast<long long>(table_->pause * ms));
  }

  void abandon_query() override { given_up_ = true; }

 private:
  // Ids per command: a command line has a maximum length.
  static constexpr size_t batch = 500;

  CommandResult run(std::vector<std::string> words) {
    return ask_scheduler(std::move(words), environment_, &given_up_);
  }

  std::string moment(long long since) const {
    if (table_->since.empty()) return std::to_string(since);
    std::array<char, 64> text{};
    const auto seconds = static_cast<std::time_t>(since);
    std::tm local{};
    localtime_r(&seconds, &local);
    return {text.data(), std::strftime(text.data(), text.size(), table_->since.c_str(), &local)};
  }

  Status ask(const TableQuestion& question, const std::vector<std::string>& command,
             const std::vector<std::string>& ids, long long since, std::vector<JobFields>* jobs) {
    const CommandResult result =
        run(words_with(command, {{"user", effective_user()}, {"since", moment(since)}}, ids));
    // A command that knows none of the jobs, or not all of them, may call that an error.
    if (result.status != 0 && !says_unknown(question, result))
      return Status::error(error_text(result, table_->title));
    const bool nothing = result.status != 0 && (strip(result.out).empty() ||
                                                says_unknown_alone(*table_, question, result.out));
    if (!nothing) return read_answer(question.answer, result.out, jobs);
    jobs->clear();
    return Status::ok();
  }

  bool says_unknown(const TableQuestion& question, const CommandResult& result) const {
    return says_unknown_alone(*table_, question, result.err + result.out);
  }

  // The user's jobs, or all.
  Status ask_for_all(long long since, std::vector<JobFields>* jobs) {
    return ask(table_->query, table_->find.empty() ? table_->query.command : table_->find, {},
               since, jobs);
  }

  Status take(const TableQuestion& question, const std::vector<std::string>& ids, long long since,
              std::map<std::string, JobReport>* reports) {
    std::vector<JobFields> jobs;
    TRY(ask(question, question.command, ids, since, &jobs));
    const std::set<std::string> wanted(ids.begin(), ids.end());
    for (const JobFields& fields : jobs) {
      const std::string& id = fields.at("id");
      if (wanted.count(id) == 0) continue;
      bool known = false;
      JobReport report = report_of(*table_, question.answer, fields, &known);
      // The account of a job that was started again has its earlier starts, too: the last counts.
      if (known) (*reports)[id] = std::move(report);
    }
    return Status::ok();
  }

  const std::shared_ptr<const SchedulerTable> table_;
  const std::vector<std::string> environment_ = answers_environment();
  std::atomic<bool> given_up_ = false;
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(std::shared_ptr<const SchedulerTable> table) {
  return std::make_unique<TableScheduler>(std::move(table));
}

}  // namespace tally
