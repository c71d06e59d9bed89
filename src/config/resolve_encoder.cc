// The encoder of a Config: task, sizes that differ from GPT's, what it does not support.
#include <algorithm>

#include "src/config/resolve_parts.h"
#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {
namespace {

constexpr int64_t uncased_tokens = 30522, cased_tokens = 28996;  // the published BERT models'

int64_t encoder_vocabulary(const Flags& f, std::string* tokenizer) {
  const std::string kind = lower(f.tokenizer.value_or("BertWordPieceLowerCase"));
  if (kind == "bertwordpiecelowercase" || kind == "bertwordpiececase") {
    const bool cased = kind == "bertwordpiececase";
    *tokenizer = cased ? "BertWordPieceCase" : "BertWordPieceLowerCase";
    return f.vocabulary.value_or(cased ? cased_tokens : uncased_tokens);
  }
  if (kind == "nulltokenizer") {
    *tokenizer = "NullTokenizer";
    if (!f.vocabulary) fail("--tokenizer-type", "NullTokenizer needs --vocab-size");
    return *f.vocabulary;
  }
  fail("--tokenizer-type",
       "'{}' is not a tokenizer of encoders: BertWordPieceLowerCase, BertWordPieceCase, "
       "NullTokenizer",
       *f.tokenizer);
}

// A flag of encoders. `used`: it is of use with this model, task and data; else `why` tells what it
// goes with.
struct EncoderFlag {
  const char* name;
  bool used = true;
  std::string why = "";
};

std::vector<EncoderFlag> encoder_flags(const ModelConfig& m, const DataConfig& data) {
  const bool pretrains = m.task == Task::pretraining;
  const bool classifies = m.task == Task::classification;
  const bool answers = m.task == Task::question_answering;
  const bool draws = data.mock || data.dynamic_masking;
  const std::string masks =
      pretrains ? "goes with --dynamic-masking; else the HDF5 files say which tokens are masked"
                : "goes with --task pretrain";
  const std::string of_classes = "goes with --task classify";
  const std::string columns =
      classifies ? "is of a table's columns, and --mock-data has none" : of_classes;
  const std::string questions =
      answers ? "is for SQuAD's files, and --mock-data has none" : "goes with --task squad";
  const std::string mock = "goes with --mock-data; files have the samples that they have";
  const std::string pairs = fmt::format("is for the pretraining of BERT; {} has no such head{}",
                                        m.kind(), m.pooler ? " in this task" : "");
  return {{"--task"},
          {"--bert-no-binary-head", m.pooler && pretrains, pairs},
          {"--num-classes", classifies, of_classes},
          {"--classifier-dropout", m.head_dropout().has_value(),
           "goes with --task classify, and of DistilBERT with squad"},
          {"--pad"},
          {"--mock-lengths", data.mock, mock},
          {"--mock-samples", data.mock, mock},
          {"--mask-prob", pretrains && draws, masks},
          {"--max-predictions-per-seq", pretrains && draws, masks},
          {"--dynamic-masking", pretrains && !data.mock,
           pretrains ? "is for files, and --mock-data draws its masks anyway" : masks},
          {"--text-column", classifies && !data.mock, columns},
          {"--pair-column", classifies && !data.mock, columns},
          {"--label-column", classifies && !data.mock, columns},
          {"--doc-stride", answers && !data.mock, questions},
          {"--max-query-length", answers && !data.mock, questions},
          {"--version-2-with-negative", answers && !data.mock, questions}};
}

}  // namespace

void refuse_for_encoders(const Flags& f, const ModelConfig& m) {
  if (m.language_model()) return;
  const std::string& kind = m.kind();
  const auto refuse = [&](const char* flag) {
    if (flag) fail(flag, "is for language models, and this is {}: leave it out", kind);
  };
  refuse(f.first_given({"--plan", "--rehearse"}));
  for (const auto& [flag, size] :
       {std::pair{"--tensor-model-parallel-size", f.config.tensor_parallel},
        std::pair{"--pipeline-model-parallel-size", f.config.pipeline_parallel}})
    if (size > 1) fail(flag, "{}: {} is parallel in data only: take 1", size, kind);
  resolve_rotary_scaling(f);
  refuse(flag_of_llama(f));
  if (f.positions == Positions::rotary) refuse("--position-embedding-type");
  refuse(f.first_given({"--untie-embeddings-and-output-weights", "--normalization",
                        "--use-rotary-position-embeddings", "--text", "--eod-mask-loss",
                        "--reset-position-ids", "--reset-attention-mask"}));
}

void encoder_of_flags(const Flags& f, Config* c) {
  ModelConfig& m = c->model;
  m.task = f.task.value_or(Task::pretraining);
  c->sequence = f.sequence.value_or(m.task == Task::question_answering ? 384 : 128);
  m.max_positions = f.max_positions.value_or(std::max<int64_t>(512, c->sequence));
  m.layernorm_epsilon = f.layernorm_epsilon.value_or(1e-12);
  m.hidden_dropout = f.hidden_dropout.value_or(0.1);
  m.attention_dropout = f.attention_dropout.value_or(0.1);
  m.vocabulary = encoder_vocabulary(f, &c->data.tokenizer);
}

void encoder_of_folder(const Flags& f, const StoredModels& stored, const std::string& folder,
                       Config* c) {
  ModelConfig& m = c->model;
  c->sequence = f.sequence.value_or(
      std::min<int64_t>(m.task == Task::question_answering ? 384 : 128, m.max_positions));
  m.hidden_dropout = f.hidden_dropout.value_or(m.hidden_dropout);
  m.attention_dropout = f.attention_dropout.value_or(m.attention_dropout);
  Flags vocabulary = f;
  vocabulary.vocabulary = m.vocabulary;
  const std::optional<bool> lower_case = stored.lower_case(folder);
  if (lower_case && !f.tokenizer)
    vocabulary.tokenizer = *lower_case ? "BertWordPieceLowerCase" : "BertWordPieceCase";
  encoder_vocabulary(vocabulary, &c->data.tokenizer);
  if (lower_case && is_wordpiece(c->data.tokenizer) &&
      *lower_case != (c->data.tokenizer == "BertWordPieceLowerCase"))
    fail("--tokenizer-type", "{} contradicts the tokenizer of {}, which {}: leave it out",
         c->data.tokenizer, folder, *lower_case ? "lower-cases" : "keeps upper case");
}

void resolve_encoder(const Flags& f, Config* c) {
  ModelConfig& m = c->model;
  if (m.language_model()) {
    for (const EncoderFlag& flag : encoder_flags(m, c->data))
      if (f.given.count(flag.name) > 0)
        fail(flag.name, "is for encoders, and this is {}: give --model bert-base, for example",
             m.kind());
    return;
  }
  for (const EncoderFlag& flag : encoder_flags(m, c->data))
    if (f.given.count(flag.name) > 0 && !flag.used) fail(flag.name, "{}: leave it out", flag.why);
  if (c->data.split != DataConfig().split)
    fail("--split",
         "divides the datasets of language models; an encoder's files are taken whole, and "
         "--valid-data-path names those of validation: leave it out");
  if (f.no_binary_head) m.next_sentence = false;
  if (f.classes) m.classes = *f.classes;
  if (f.classifier_dropout) m.classifier_dropout = f.classifier_dropout;
  c->data.mock_samples = f.mock_samples.value_or(DataConfig().mock_samples);
  c->data.max_predictions =
      f.max_predictions.value_or(std::max<int64_t>(1, 20 * c->sequence / 128));
  if (c->data.mask_probability == 0) fail("--mask-prob", "must be greater than 0");
}

}  // namespace tally::train
