#include "src/train/run/failure_record.h"

#include "src/measure/system_info.h"
#include "src/train/run/failures.h"
#include "src/train/run/output.h"

namespace tally::train {
namespace {

template <typename T>
void add_new(const std::vector<T>& all, std::vector<T>* known) {
  known->insert(known->end(), all.begin() + static_cast<std::ptrdiff_t>(known->size()), all.end());
}

void write(const Failure& failure, Record* record) {
  const Ending ending = describe_failure(failure);
  record->outcome = ending.outcome;
  record->message = ending.message;
  record->ended = utc_now();
  try {
    write_record(*record, record->config.record_path);
  } catch (const std::exception& e) {
    print_error(e.what());
  }
}

}  // namespace

FailureRecord::FailureRecord(World& world, const Record& record) : world_(world) {
  if (world.size() == 1 || !world.is_primary() || record.config.record_path.empty()) return;
  known_ = std::make_shared<Record>(record);
  world.set_on_failure([known = known_](const Failure& f) { write(f, known.get()); });
}

void FailureRecord::update(const Record& record) {
  if (!known_) return;
  // The thread that ends the process reads it.
  world_.write_unless_ending([&] {
    static_cast<RunFacts&>(*known_) = record;
    add_new(record.steps, &known_->steps);
    add_new(record.phases, &known_->phases);
    add_new(record.intervals, &known_->intervals);
    add_new(record.evaluations, &known_->evaluations);
    add_new(record.epochs, &known_->epochs);
    known_->tokens_per_sample = record.tokens_per_sample;
  });
}

}  // namespace tally::train
