#include "engine/execute/jobs/table_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>

#include "engine/base/duration.h"
#include "engine/base/text.h"

namespace tally {
namespace {

bool has_words(const std::string& text, const std::vector<std::string>& signs) {
  return std::ranges::any_of(
      signs, [&](const std::string& sign) { return text.find(sign) != std::string::npos; });
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

Status unreadable(const std::string& line) {
  constexpr size_t most = 80;
  return Status::error(
      fmt::format("the scheduler's answer cannot be read: '{}'", one_line(line.substr(0, most))));
}

Status read_columns(const AnswerForm& form, const std::string& line, JobFields* job) {
  size_t at = 0;
  for (size_t i = 0; i < form.fields.size(); ++i) {
    const bool last = i + 1 == form.fields.size();
    const size_t end = last ? line.size() : line.find(form.separator, at);
    if (end == std::string::npos) return unreadable(line);
    (*job)[form.fields[i]] = strip(line.substr(at, end - at));
    at = std::min(end + form.separator.size(), line.size());
  }
  return Status::ok();
}

std::string without_references(std::string text) {
  for (const auto& [reference, character] :
       {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}})
    replace_all(text, reference, character);
  return text;
}

// <FIELD attributes>value</FIELD>. Other lines have no field.
void read_xml(std::string_view line, JobFields* job) {
  line = strip(line);
  const size_t end = line.find('>');
  const size_t close = line.rfind("</");
  if (line.empty() || line[0] != '<' || end == std::string_view::npos ||
      close == std::string_view::npos || close < end)
    return;
  const std::string_view tag = line.substr(1, end - 1);
  (*job)[std::string(tag.substr(0, tag.find(' ')))] =
      without_references(std::string(line.substr(end + 1, close - end - 1)));
}

void read_equals(const std::string& line, JobFields* job, std::string* last) {
  // A value that does not fit into a line goes on in the next one, behind a tab.
  if (!line.empty() && line[0] == '\t' && !last->empty()) {
    (*job)[*last] += strip(line);
    return;
  }
  const size_t sign = line.find(" = ");
  if (sign == std::string::npos) return;
  *last = strip(line.substr(0, sign));
  (*job)[*last] = strip(line.substr(sign + 3));
}

void read_blanks(std::string_view line, JobFields* job) {
  line = strip(line);
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  if (end > 0) (*job)[std::string(line.substr(0, end))] = strip(line.substr(end));
}

Status read_records(const AnswerForm& form, const std::string& text, std::vector<JobFields>* jobs) {
  std::string last;
  for (const std::string& line : lines_of(text)) {
    const std::string_view words = strip(line);
    if (!form.end.empty() && starts_with(words, form.end)) break;
    if (starts_with(words, form.begin)) {
      jobs->emplace_back()["begin"] = strip(words.substr(form.begin.size()));
      last.clear();
    } else if (jobs->empty()) {
      // XML has a head. No other answer begins with something else than a job.
      if (form.kind != AnswerForm::Kind::xml && !words.empty()) return unreadable(line);
    } else if (form.kind == AnswerForm::Kind::xml) {
      read_xml(line, &jobs->back());
    } else if (form.kind == AnswerForm::Kind::equals) {
      read_equals(line, &jobs->back(), &last);
    } else {
      read_blanks(line, &jobs->back());
    }
  }
  return Status::ok();
}

std::string field(const JobFields& fields, const char* name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

long long moment_of(const AnswerForm& form, const std::string& text) {
  if (text.empty()) return 0;
  if (const auto seconds = whole_number(text.substr(0, text.find('.')))) return *seconds;
  std::tm local{};
  if (form.time.empty() || strptime(text.c_str(), form.time.c_str(), &local) == nullptr) return 0;
  local.tm_isdst = -1;
  return std::max<long long>(0, std::mktime(&local));
}

// Decisions rest on these words (jobs.h). The scheduler's own word is the reason.
const std::map<JobMeaning, std::pair<JobState, const char*>>& states() {
  static const std::map<JobMeaning, std::pair<JobState, const char*>> all = {
      {JobMeaning::unknown, {JobState::unheard, ""}},
      {JobMeaning::queued, {JobState::queued, "PENDING"}},
      {JobMeaning::stuck, {JobState::queued, "PENDING"}},
      {JobMeaning::running, {JobState::running, "RUNNING"}},
      {JobMeaning::ending, {JobState::running, "COMPLETING"}},
      {JobMeaning::ended, {JobState::ok, "COMPLETED"}},
      {JobMeaning::failed, {JobState::failed, "FAILED"}},
      {JobMeaning::cancelled, {JobState::failed, "CANCELLED"}},
      {JobMeaning::timeout, {JobState::failed, "TIMEOUT"}},
      {JobMeaning::memory, {JobState::failed, "OUT_OF_MEMORY"}},
      {JobMeaning::node, {JobState::retryable, "NODE_FAIL"}},
      {JobMeaning::preempted, {JobState::retryable, "PREEMPTED"}},
      {JobMeaning::lost, {JobState::unheard, ""}}};
  return all;
}

// "4s", "3.5", "01:02:03".
std::optional<double> seconds_of(const std::string& text) {
  return text.empty() ? std::nullopt : parse_duration(text);
}

// "4.816KB", "100mb", "4096": bytes.
std::optional<double> mebibytes_in(const std::string& text) {
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  constexpr double step = 1024;
  constexpr std::string_view units = "kmgt";
  const size_t unit = units.find(static_cast<char>(std::tolower(static_cast<unsigned char>(*end))));
  const size_t power = *end == '\0' || unit == std::string_view::npos ? 0 : unit + 1;
  for (size_t i = 0; i < power; ++i) number *= step;
  return number / (step * step);
}

}  // namespace

Status read_answer(const AnswerForm& form, const std::string& text, std::vector<JobFields>* jobs) {
  jobs->clear();
  if (!form.complete.empty() && text.find(form.complete) == std::string::npos)
    return unreadable(text);
  if (form.kind == AnswerForm::Kind::columns) {
    for (const std::string& line : lines_of(text)) {
      if (strip(line).empty()) continue;
      TRY(read_columns(form, line, &jobs->emplace_back()));
    }
  } else {
    TRY(read_records(form, text, jobs));
  }
  for (JobFields& job : *jobs) {
    for (const auto& [ours, theirs] : form.values) {
      if (const auto value = job.find(theirs); value != job.end()) job[ours] = value->second;
    }
    if (field(job, "id").empty()) return unreadable(text);
  }
  return Status::ok();
}

JobReport report_of(const SchedulerTable& table, const AnswerForm& form, const JobFields& fields,
                    bool* known) {
  JobReport report;
  const JobMeaning meaning = meaning_of(table, fields);
  *known = meaning != JobMeaning::lost;
  const auto& [state, word] = states().at(meaning);
  report.state = state;
  report.word = word;
  report.stuck = meaning == JobMeaning::stuck;
  report.reason = field(fields, "reason");
  if (report.reason.empty()) report.reason = field(fields, "state");
  report.name = field(fields, "name");
  report.nodes = field(fields, "nodes");
  report.submitted = moment_of(form, field(fields, "submitted"));
  report.started = moment_of(form, field(fields, "started"));
  return report;
}

std::string submitted_id(const SchedulerTable& table, const std::string& printed) {
  const size_t at = table.id.find("$id");
  const std::string before = table.id.substr(0, at), after = table.id.substr(at + 3);
  std::string id;
  for (const std::string& line : lines_of(printed)) {
    const std::string_view text = strip(line);
    const size_t begin = text.find(before);
    if (begin == std::string_view::npos || (before.empty() && begin != 0)) continue;
    size_t end = begin + before.size();
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                                 is_one_of("._-[]@", text[end])))
      ++end;
    const std::string word(text.substr(begin + before.size(), end - begin - before.size()));
    const bool whole = after.empty() ? end == text.size() : starts_with(text.substr(end), after);
    // A wrapper's other words have no number, or more than one word.
    if (whole && word.find_first_of("0123456789") != std::string::npos) id = word;
  }
  return id;
}

std::optional<Refusal> refusal_by_words(const SchedulerTable& table, const std::string& said) {
  if (has_words(said, table.full)) return Refusal::full;
  if (has_words(said, table.away)) return Refusal::transient;
  return std::nullopt;
}

bool says_unknown_alone(const SchedulerTable& table, const TableQuestion& question,
                        const std::string& said) {
  return has_words(said, question.unknown_job) && !has_words(said, table.away);
}

JobUse use_of(const JobFields& fields) {
  JobUse use;
  use.nodes = field(fields, "nodes");
  use.seconds = seconds_of(field(fields, "elapsed"));
  use.max_rss = mebibytes_in(field(fields, "max_rss"));
  return use;
}

}  // namespace tally
