#include "src/train/score/encoder_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "src/checkpoint/model_weights.h"
#include "src/device/arena.h"
#include "src/train/feed/encoder_feed.h"
#include "src/train/run/device.h"
#include "src/train/run/failures.h"
#include "src/train/run/folders.h"
#include "src/train/run/stop_request.h"
#include "src/train/score/class_counts.h"

namespace tally::train {
namespace {

using Clock = std::chrono::steady_clock;
using Sums = EvaluationSums;

// Adds the time of `work` to *seconds.
template <typename Work>
void timed(double* seconds, const Work& work) {
  const auto begin = Clock::now();
  work();
  *seconds += std::chrono::duration<double>(Clock::now() - begin).count();
}

class Examination {
 public:
  Examination(const Config& c, const EncoderExam& exam, Stream& stream, const Mesh& mesh,
              const EvaluateBatch& evaluate, const std::function<Tensor()>& logits)
      : c_(c),
        exam_(exam),
        stream_(stream),
        evaluate_(evaluate),
        logits_(logits),
        mesh_(mesh),
        data_(mesh.samples()),
        gathers_(c.eval_mode == EvalMode::gather && data_.size() > 1),
        range_(range_of(data_.rank())),
        scores_(c, exam, gathers_ ? SampleRange{0, exam.source->samples_per_epoch()} : range_),
        arena_(stream),
        options_(feed_options(c, stream)),
        upload_(c, stream, 1) {
    state_ = static_cast<StepState*>(
        arena_.make(DType::u8, {sizeof(StepState)}, "result of an evaluation").data);
    sums_ = arena_.make(DType::f64, {Sums::fields}, "sums of an evaluation");
    if (gathers_) reserve_gather();
  }

  EncoderEvaluation run() {
    EncoderEvaluation result;
    const auto begin = Clock::now();
    stream_.fill_zero(state_, sizeof(StepState));
    Sums sums;
    counted_ = {};
    for (int64_t round = 0; round < rounds(); ++round) {
      timed(&result.phases.evaluation, [&] { evaluate(round, &sums); });
      if (gathers_) timed(&result.phases.gather, [&] { gather(round); });
    }
    const bool scores = !gathers_ || data_.rank() == 0;
    timed(&result.phases.evaluation, [&] {
      stream_.synchronize();
      data_.barrier(stream_);
    });
    timed(&result.phases.metric, [&] {
      if (scores && scored()) scores_.score(&sums);
    });
    EvaluatedLosses losses;
    timed(&result.phases.exchange, [&] {
      losses = evaluated_losses(stream_, state_, counted_, mesh_);
      exchange(&sums);
    });
    result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    report(losses, sums, &result);
    if (!c_.predictions_path.empty() && scores) result.predictions = scores_.predictions();
    return result;
  }

  // The first pass over a size loads kernels and tunes GEMMs, and the first message connects
  // processes. To be called before run() where its times count. Collective.
  void warm_up() {
    const int64_t last = (range_.end - 1) / c_.micro_batch - range_.begin / c_.micro_batch;
    for (const int64_t round : {int64_t{0}, std::max<int64_t>(last, 0)}) {
      const SampleRange at = micro_batch(range_, round);
      if (at.count() == 0) continue;
      EncoderArrays arrays;
      Batch batch;
      load(at, &arrays, &batch);
      evaluate_(batch, {1, {}, state_});
      if (logits_().defined()) fetch_f32(logits_(), stream_);
      stream_.synchronize();
    }
    if (gathers_ && mine_.defined()) data_.all_gather(stream_, mine_, all_);
    Sums nothing;
    exchange(&nothing);
    stream_.synchronize();
    data_.barrier(stream_);
  }

 private:
  // Questions whose windows do not lead back to answers give a loss alone.
  bool scored() const { return c_.model.task != Task::question_answering || exam_.features; }
  SampleRange range_of(int rank) const {
    const bool questions = c_.model.task == Task::question_answering && !gathers_ && scored();
    return samples_of_rank(exam_, c_.micro_batch, rank, data_.size(), questions);
  }
  // Micro batch `round` of a range, of which only the samples of the range count.
  SampleRange micro_batch(const SampleRange& range, int64_t round) const {
    const int64_t first = (range.begin / c_.micro_batch + round) * c_.micro_batch;
    if (range.count() == 0 || first >= range.end) return {0, 0};
    return {first, std::min(first + c_.micro_batch, exam_.source->samples_per_epoch())};
  }
  // All processes do as many, because gather() is collective.
  int64_t rounds() const {
    int64_t most = 0;
    for (int rank = 0; rank < data_.size(); ++rank) {
      const SampleRange r = range_of(rank);
      const int64_t last = (r.end + c_.micro_batch - 1) / c_.micro_batch;
      if (r.count() > 0) most = std::max(most, last - r.begin / c_.micro_batch);
    }
    return most;
  }

  // Copies samples to the device.
  void load(const SampleRange& at, EncoderArrays* arrays, Batch* batch) {
    EncoderBatch host;
    fill_batch(*exam_.source, at.begin, at.count(), c_.sequence, 0, &host);
    lay_out(host, c_.model, options_, arrays);
    upload_.put(*arrays, batch);
  }

  void evaluate(int64_t round, Sums* sums) {
    const SampleRange at = micro_batch(range_, round);
    if (at.count() == 0) return;
    EncoderArrays arrays;
    Batch batch;
    load(at, &arrays, &batch);
    evaluate_(batch, {1, {}, state_});
    for (const size_t head : {0UL, 1UL}) counted_[head] += batch.counted[head];
    for (int64_t n = at.begin; n < at.end; ++n) {
      if (n < range_.begin || n >= range_.end) continue;
      (*sums)[Sums::samples] += 1;
      (*sums)[Sums::tokens] += arrays.lengths[static_cast<size_t>(n - at.begin)];
    }
    take(at, arrays);
    stream_.synchronize();
  }

  // The answers of this process's micro batch: to be scored here, or to be gathered.
  void take(const SampleRange& at, const EncoderArrays& arrays) {
    if (!scored() || !logits_().defined()) return;
    const std::vector<float> logits = fetch_f32(logits_(), stream_);
    if (c_.model.task == Task::classification) {
      const std::vector<int32_t> classes = greatest_of_rows(logits, c_.model.classes);
      std::vector<float> scores;
      if (wants_scores()) scores = softmax_of_rows(logits, c_.model.classes);
      if (!gathers_)
        return take_classes(at, classes.data(), arrays.labels[0].data(), scores.data());
      std::copy(classes.begin(), classes.end(), classes_.begin());
      std::copy(arrays.labels[0].begin(), arrays.labels[0].end(),
                classes_.begin() + c_.micro_batch);
      std::memcpy(classes_.data() + 2 * c_.micro_batch, scores.data(),
                  scores.size() * sizeof(float));
    } else if (gathers_) {
      const auto half = static_cast<std::ptrdiff_t>(logits.size() / 2);
      std::copy(logits.begin(), logits.begin() + half, spans_.begin());
      std::copy(logits.begin() + half, logits.end(), spans_.begin() + c_.micro_batch * c_.sequence);
    } else {
      take_spans(at, logits.data(), logits.data() + logits.size() / 2);
    }
  }
  bool wants_scores() const { return !c_.predictions_path.empty(); }
  // Takes the class of each sample; `scores` [samples, classes], where they are wanted.
  void take_classes(const SampleRange& at, const int32_t* classes, const int32_t* labels,
                    const float* scores) {
    for (int64_t n = at.begin; n < at.end; ++n) {
      const int64_t row = n - at.begin;
      scores_.take_class(n, classes[row], labels[row],
                         wants_scores() ? scores + row * c_.model.classes : nullptr);
    }
  }
  void take_spans(const SampleRange& at, const float* start, const float* end) {
    const SampleRange wanted = gathers_ ? SampleRange{0, at.end} : range_;
    for (int64_t n = std::max(at.begin, wanted.begin); n < std::min(at.end, wanted.end); ++n) {
      const int64_t row = (n - at.begin) * c_.sequence;
      scores_.take_span(n, start + row, end + row);
    }
  }

  void reserve_gather() {
    const int64_t ranks = data_.size();
    if (c_.model.task == Task::classification) {
      const int64_t numbers = (2 + (wants_scores() ? c_.model.classes : 0)) * c_.micro_batch;
      classes_.resize(static_cast<size_t>(numbers), -1);
      mine_ = arena_.make(DType::i32, {numbers}, "predictions");
    } else if (c_.model.task == Task::question_answering) {
      spans_.resize(static_cast<size_t>(2 * c_.micro_batch * c_.sequence));
      mine_ = arena_.make(DType::f32, {2 * c_.micro_batch * c_.sequence}, "predictions");
    }
    if (mine_.defined())
      all_ = arena_.make(mine_.dtype, {ranks * mine_.numel()}, "predictions of all processes");
  }
  // The answers of a round of all processes go to rank 0. As in Accelerate's gather_for_metrics(),
  // every process gets them.
  void gather(int64_t round) {
    if (!mine_.defined()) return;
    const bool classes = c_.model.task == Task::classification;
    const void* data = classes ? static_cast<const void*>(classes_.data()) : spans_.data();
    stream_.copy(mine_.data, data, mine_.bytes());
    data_.all_gather(stream_, mine_, all_);
    if (data_.rank() != 0) return stream_.synchronize();
    std::vector<char> host(all_.bytes());
    stream_.copy(host.data(), all_.data, host.size());
    stream_.synchronize();
    for (int rank = 0; rank < data_.size(); ++rank) {
      const SampleRange at = micro_batch(range_of(rank), round);
      const char* part = host.data() + static_cast<size_t>(rank) * mine_.bytes();
      if (classes) {
        const auto* numbers = reinterpret_cast<const int32_t*>(part);
        take_classes(at, numbers, numbers + c_.micro_batch,
                     reinterpret_cast<const float*>(part) + 2 * c_.micro_batch);
      } else {
        const auto* numbers = reinterpret_cast<const float*>(part);
        take_spans(at, numbers, numbers + c_.micro_batch * c_.sequence);
      }
    }
  }

  void all_reduce(Sums* sums) {
    if (data_.size() == 1) return;
    stream_.copy(sums_.data, sums->values.data(), sums_.bytes());
    data_.all_reduce(stream_, sums_);
    stream_.copy(sums->values.data(), sums_.data, sums_.bytes());
    stream_.synchronize();
  }
  // Sums of all processes on all processes. Where rank 0 has scored for all, its scores are
  // broadcast.
  void exchange(Sums* sums) {
    if (gathers_) {
      Sums counts;
      for (const Sums::Field field : {Sums::samples, Sums::tokens}) counts[field] = (*sums)[field];
      all_reduce(&counts);
      for (const Sums::Field field : {Sums::samples, Sums::tokens}) (*sums)[field] = counts[field];
      stream_.copy(sums_.data, sums->values.data(), sums_.bytes());
      data_.broadcast(stream_, sums_, 0);
      stream_.copy(sums->values.data(), sums_.data, sums_.bytes());
      stream_.synchronize();
    } else {
      all_reduce(sums);
    }
  }

  void report(const EvaluatedLosses& losses, const Sums& sums, EncoderEvaluation* result) const {
    if (c_.model.task == Task::pretraining && losses.counted[0] == 0)
      throw CheckFailed("no token of the data is masked, so that there is no loss");
    result->loss = losses.mean;
    result->samples = std::llround(sums[Sums::samples]);
    result->tokens = std::llround(sums[Sums::tokens]);
    result->metrics = metrics_of(sums, c_.model.task);
    if (c_.model.task != Task::pretraining && scored() && result->metrics.empty())
      throw CheckFailed(fmt::format(
          "{}: none of the {} samples has a label that counts, so that there is no metric",
          exam_.name, result->samples));
  }

  const Config& c_;
  const EncoderExam& exam_;
  Stream& stream_;
  const EvaluateBatch& evaluate_;
  const std::function<Tensor()>& logits_;
  const Mesh& mesh_;
  Communicator& data_;
  const bool gathers_;
  const SampleRange range_;
  EncoderScores scores_;
  Arena arena_;
  const FeedOptions options_;
  EncoderUpload upload_;
  StepState* state_ = nullptr;
  Tensor sums_, mine_, all_;
  // The values to gather: predictions and labels [2, micro batch], then the bits of the scores
  // [micro batch, classes] where they are wanted.
  std::vector<int32_t> classes_;
  std::vector<float> spans_;  // [2, micro batch, sequence]: start and end logits to gather
  LabelCounts counted_{};     // this process's
};

}  // namespace

EncoderEvaluation evaluate_encoder(const Config& c, const EncoderExam& exam, Stream& stream,
                                   const Mesh& mesh, const EvaluateBatch& evaluate,
                                   const std::function<Tensor()>& logits) {
  return Examination(c, exam, stream, mesh, evaluate, logits).run();
}

EncoderEvaluation evaluate_encoder(const Config& c, const EncoderExam& exam, Stream& stream,
                                   const Mesh& mesh, World& world) {
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(stream, c.compute_type());
  check_flag(evaluated_flag(c),
             [&] { load_model_weights(c.model_dir, c.model, ParameterState(table), stream); });
  const std::unique_ptr<Stage> model =
      c.reference ? make_reference(c, table, stream) : make_model(c, table, stream);
  const std::unique_ptr<ActivationSet> set = model->make_activations();
  const EvaluateBatch evaluate = [&](const Batch& batch, const Pass& pass) {
    throw_if_signalled();
    model->evaluate(batch, pass, *set);
  };
  const std::function<Tensor()> logits = [&] { return model->logits(); };
  Examination examination(c, exam, stream, mesh, evaluate, logits);
  examination.warm_up();
  EncoderEvaluation result = examination.run();
  EvaluationPhases& sum = result.phases;
  result.measured = repeat_until_steady(result.seconds, world, [&] {
    const EncoderEvaluation again = Examination(c, exam, stream, mesh, evaluate, logits).run();
    sum.evaluation += again.phases.evaluation;
    sum.gather += again.phases.gather;
    sum.metric += again.phases.metric;
    sum.exchange += again.phases.exchange;
    return again.seconds;
  });
  const auto passes = static_cast<double>(result.measured.passes);
  result.seconds = result.measured.seconds / passes;
  for (double* seconds : {&sum.evaluation, &sum.gather, &sum.metric, &sum.exchange})
    *seconds /= passes;
  if (!c.predictions_path.empty())
    result.predictions =
        joined_predictions(world.meeting().exchange(result.predictions), c.model.task);
  return result;
}

}  // namespace tally::train
