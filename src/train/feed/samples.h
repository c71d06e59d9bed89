// The sources of a run's samples: blocks of tokens for a language model, or sequences for an
// encoder. Empty: none.
#pragma once

#include <concepts>
#include <memory>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/tokens/dataset.h"

namespace tally::train {

struct EncoderExam;

struct Samples {
  std::shared_ptr<const SampleSource> tokens;
  std::shared_ptr<const EncoderSource> sequences;
  // The held-out questions with all their answers, of SQuAD with --epochs.
  std::shared_ptr<const EncoderExam> questions;

  Samples() = default;
  Samples(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <typename Source>
  requires std::derived_from<std::remove_const_t<Source>, SampleSource> Samples(
      std::shared_ptr<Source> source)  // NOLINT(google-explicit-constructor)
      : tokens(std::move(source)) {}
  template <typename Source>
  requires std::derived_from<std::remove_const_t<Source>, EncoderSource> Samples(
      std::shared_ptr<Source> source)  // NOLINT(google-explicit-constructor)
      : sequences(std::move(source)) {}

  Samples(std::unique_ptr<SampleSource> source)  // NOLINT(google-explicit-constructor)
      : tokens(std::move(source)) {}

  explicit operator bool() const { return tokens || sequences; }
};

}  // namespace tally::train
