#include "engine/run/run.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/check/elements.h"
#include "engine/run/run_directory.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

// The run has not begun, so that it is to be started again. Messages about a journal advise to
// continue it.
Status start_again(const Status& why) {
  std::string message = why.message();
  for (const auto& [advice, instead] :
       {std::pair{std::string(": nothing that finished is lost"), ""},
        std::pair{std::string("continue the run"), "start the run again"},
        std::pair{std::string("try again"), "start the run again"}}) {
    if (const size_t at = message.find(advice); at != std::string::npos)
      message.replace(at, advice.size(), instead);
  }
  return Status::error(message);
}

// A benchmark has one comment, the first, in one line, as in JUBE.
void fold_comments(Document* document) {
  for (Element& element : document->root.children) {
    std::vector<Element> kept;
    bool has_comment = false;
    for (Element& child : element.children) {
      const bool comment = child.name == "comment";
      if (comment) child.text.value = one_line(child.text.value);
      if (comment && (has_comment || child.text.value.empty())) continue;
      has_comment = has_comment || comment;
      kept.push_back(std::move(child));
    }
    element.children = std::move(kept);
  }
}

std::string configuration_of(const Input& input, const Benchmark& benchmark, const NewRun& what) {
  Document shown = input.document;
  Diagnostics told;  // they were reported when the file was read
  if (benchmark.rules.plain_values_as_written)
    use_core_values(shown, PlainText::as_written, &shown.root, told);
  fold_comments(&shown);
  if (what.comment_of_command) set_comment(benchmark.name.value, what.comment, &shown);
  return document_to_xml(shown);
}

}  // namespace

Run::Run(std::shared_ptr<Input> input, const Benchmark& benchmark, RunInfo info,
         std::shared_ptr<Evaluator> evaluator)
    : input_(std::move(input)),
      benchmark_(&benchmark),
      definitions_(&benchmark),
      evaluator_(std::move(evaluator)) {
  expand_for(std::move(info));
}

void Run::expand_for(RunInfo info) {
  info_ = std::move(info);
  first_.clear();
  expander_.reset();
  texts_ = std::make_unique<TextPool>();
}

void Run::expand_as(RunInfo info, size_t most) {
  info.most_points = most;
  expand_for(std::move(info));
}

Expander& Run::expander() {
  if (!expander_) {
    expander_ =
        std::make_unique<Expander>(*benchmark_, info_, *evaluator_, *texts_, input_->tags());
  }
  return *expander_;
}

Status Run::make_folder(const NewRun& what, const RunGroup& group) {
  bool outpath_is_there = false;
  TRY(path_exists(what.outpath, &outpath_is_there));
  Status made = what.id < 0 ? create_run_directory(what.outpath, &directory_)
                            : create_run_directory(what.outpath, what.id, &directory_);
  if (made && !outpath_is_there) made = group.give(what.outpath, false);
  if (made) made = group.give(directory_.path, true);
  return made;
}

Status Run::make_files(const NewRun& what) {
  RunRecord record;
  record.id = directory_.id;
  record.benchmark = benchmark_->name.value;
  record.comment = what.comment;
  record.tags = input_->workflow->tags;
  record.input_file = input_->path;
  record.start = info_.start;
  record.change = record.start;
  record.version = what.version;
  record.home = info_.home;
  record.set = input_->set;
  note_include_path(what.include_path, &record);
  note_directory(directory_.path, &record);
  Status made = write_run_files(directory_.path, configuration_of(*input_, *benchmark_, what));
  if (made) made = Journal::create(directory_.path, record, input_->sources, &journal_);
  return made;
}

Status Run::create(const NewRun& what) {
  RunGroup group;
  Status made = RunGroup::from_environment(&group);
  if (made) made = make_folder(what, group);
  if (!made) {
    directory_ = {};
    return made;
  }
  if (directory_.id != info_.id || directory_.path != info_.rundir || what.start != info_.start)
    expand_as(run_info(*benchmark_, directory_.id, directory_.path, what.start), info_.most_points);
  made = make_files(what);
  for (const char* part : {"/journal.sqlite", "/journal.sqlite-wal"})
    group.open_to(directory_.path + part);
  if (!made) {
    journal_.reset();
    std::unique_ptr<Journal> complete;
    if (Journal::open_read_only(directory_.path, &complete)) return made;
    std::error_code ignored;
    std::filesystem::remove_all(directory_.path, ignored);
    return start_again(made);
  }
  writable_ = true;
  journal_->name_places(&input_->sources);
  return Status::ok();
}

Status Run::open(const RunDirectory& directory, Access access, const Settings& settings,
                 std::unique_ptr<Run>* out) {
  std::unique_ptr<Journal> journal;
  TRY(access == Access::write ? Journal::open(directory.path, &journal)
                              : Journal::open_read_only(directory.path, &journal));
  std::unique_ptr<Run> run(new Run());
  run->input_ = std::make_shared<Input>();
  Input& input = *run->input_;
  TRY(read_stored_input(settings, *journal, directory.path, &input));
  const RunRecord& record = journal->run();
  if (input.workflow) {
    run->benchmark_ = input.find(record.benchmark);
    run->definitions_ = run->benchmark_;
    run->evaluator_ = make_run_evaluator(settings, *input.workflow);
    // It has begun, so that its workpackages were not too many.
    run->expand_as(run_info(*run->benchmark_, record.id, directory.path, record.start),
                   most_countable);
  }
  run->take(directory, std::move(journal), access);
  *out = std::move(run);
  return Status::ok();
}

void Run::take(RunDirectory directory, std::unique_ptr<Journal> journal, Access access) {
  directory_ = std::move(directory);
  journal_ = std::move(journal);
  writable_ = access == Access::write;
  if (writable_) journal_->name_places(&input_->sources);
}

Status Run::read_definitions(const Settings& settings) {
  Journal::Update update;
  TRY(journal_->update(&update));
  if (update.file.empty()) return Status::ok();
  auto updated = std::make_unique<Input>(*input_);
  read_kept_update(settings, journal_->run(), update, directory_.path, updated.get());
  take_definitions(std::move(updated));
  return Status::ok();
}

void Run::take_definitions(std::unique_ptr<Input> updated) {
  updated_ = std::move(updated);
  definitions_ = updated_->find(journal_->run().benchmark);
}

Status Run::update_definitions(const Settings& settings, const std::string& file,
                               const InputArgs& args) {
  auto updated = std::make_unique<Input>(*input_);
  TRY(read_update(settings, *journal_, file, args, updated.get()));
  take_definitions(std::move(updated));
  return Status::ok();
}

Status Run::keep_definitions(const std::string& file, const InputArgs& args) {
  Journal::Update update{file, updated_->update_tags, {}};
  for (uint32_t i = updated_->update_file; i < updated_->sources.size(); ++i)
    update.texts.emplace_back(updated_->sources.name(i), updated_->sources.text(i));
  TRY(become_writable());
  RunRecord record = journal_->run();
  note_include_path(args.include_path, &record);
  TRY(journal_->set_run(record));
  return journal_->set_update(update);
}

Status Run::set_comment(const std::string& comment) {
  RunRecord record = journal_->run();
  record.comment = comment;
  TRY(journal_->set_run(record));
  Document shown = input_->document;
  fold_comments(&shown);
  tally::set_comment(record.benchmark, comment, &shown);
  return write_file(directory_.path + "/configuration.xml", document_to_xml(shown));
}

Status Run::keep_samples(const std::vector<Sample>& samples) {
  if (samples.empty()) return Status::ok();
  TRY(become_writable());
  return journal_->set_samples(samples);
}

// A reader has a copy or a snapshot, which stays as it is until the run is open for writing.
Status Run::become_writable() {
  if (writable_) return Status::ok();
  std::unique_ptr<Journal> writable;
  TRY(Journal::open(directory_.path, &writable));
  journal_ = std::move(writable);
  writable_ = true;
  return Status::ok();
}

std::unique_ptr<Evaluator> make_run_evaluator(const Settings& settings, const Workflow& workflow) {
  if (settings.no_exec) return make_refusing_evaluator();
  const bool own = std::ranges::any_of(workflow.benchmarks, [](const Benchmark& benchmark) {
    return std::ranges::any_of(benchmark.steps,
                               [](const Step& step) { return step.kind != StepKind::plain; });
  });
  return make_evaluator(".", settings.shell, own ? settings.programs : "");
}

}  // namespace tally
