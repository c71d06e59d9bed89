// The encoder of a Config: task, sizes that differ from GPT's, what it does not support.
#include <algorithm>

#include "src/config/resolve_parts.h"
#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {
namespace {

constexpr int64_t uncased_tokens = 30522, cased_tokens = 28996;  // of the published BERT models

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

// A flag of encoders. It is of use with this model, task and data; else `why` tells what it goes with.
struct EncoderFlag {
  const char* name;
  bool given;
  bool used = true;
  std::string why = "";
};

std::vector<EncoderFlag> encoder_flags(const Flags& f, const ModelConfig& m,
                                       const DataConfig& data) {
  const DataConfig none;
  const DataConfig& d = f.data;
  const bool pretrains = m.task == Task::pretraining;
  const bool classifies = m.task == Task::classification;
  const bool answers = m.task == Task::question_answering;
  const bool draws = data.mock || d.dynamic_masking;
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
  return {
      {"--task", f.task.has_value()},
      {"--bert-no-binary-head", f.no_binary_head, m.pooler && pretrains, pairs},
      {"--num-classes", f.classes.has_value(), classifies, of_classes},
      {"--classifier-dropout", f.classifier_dropout.has_value(), m.head_dropout().has_value(),
       "goes with --task classify, and of DistilBERT with squad"},
      {"--pad", d.pad},
      {"--mock-lengths", !d.mock_lengths.empty(), data.mock, mock},
      {"--mock-samples", f.mock_samples.has_value(), data.mock, mock},
      {"--mask-prob", d.mask_probability != none.mask_probability, pretrains && draws, masks},
      {"--max-predictions-per-seq", f.max_predictions.has_value(), pretrains && draws, masks},
      {"--dynamic-masking", d.dynamic_masking, pretrains && !data.mock,
       pretrains ? "is for files, and --mock-data draws its masks anyway" : masks},
      {"--text-column", d.text_column != none.text_column, classifies && !data.mock, columns},
      {"--pair-column", !d.pair_column.empty(), classifies && !data.mock, columns},
      {"--label-column", d.label_column != none.label_column, classifies && !data.mock, columns},
      {"--doc-stride", d.document_stride != none.document_stride, answers && !data.mock, questions},
      {"--max-query-length", d.question_tokens != none.question_tokens, answers && !data.mock,
       questions},
      {"--version-2-with-negative", d.squad_2, answers && !data.mock, questions}};
}

}  // namespace

void refuse_for_encoders(const Flags& f, const ModelConfig& m) {
  if (m.language_model()) return;
  const std::string& kind = m.kind();
  for (const auto& [flag, given] :
       {std::pair{"--plan", f.plan}, std::pair{"--rehearse", !f.rehearse.empty()}})
    if (given) fail(flag, "is for language models, and this is {}: leave it out", kind);
  for (const auto& [flag, size] :
       {std::pair{"--tensor-model-parallel-size", f.tensor_parallel},
        std::pair{"--pipeline-model-parallel-size", f.pipeline_parallel}})
    if (size > 1) fail(flag, "{}: {} is parallel in data only: take 1", size, kind);
  resolve_rotary_scaling(f);
  const char* of_llama = flag_of_llama(f);
  for (const auto& [flag, given] :
       {std::pair{of_llama, of_llama != nullptr},
        std::pair{"--untie-embeddings-and-output-weights", f.untied},
        std::pair{"--normalization", f.normalization.has_value()},
        std::pair{"--use-rotary-position-embeddings", f.rotary},
        std::pair{"--position-embedding-type",
                  f.positions && *f.positions != "learned_absolute" && *f.positions != "learned"},
        std::pair{"--text", !f.text.empty()}, std::pair{"--eod-mask-loss", f.data.eod_mask_loss},
        std::pair{"--reset-position-ids", f.data.reset_position_ids},
        std::pair{"--reset-attention-mask", f.data.reset_attention_mask}})
    if (given) fail(flag, "is for language models, and this is {}: leave it out", kind);
}

Task resolve_task(const Flags& f) {
  if (!f.task) return Task::language_model;
  const std::string name = lower(*f.task);
  if (name == "pretrain") return Task::pretraining;
  if (name == "classify") return Task::classification;
  if (name == "squad") return Task::question_answering;
  fail("--task", "'{}' is not known: pretrain, classify, squad", *f.task);
}

void encoder_of_flags(const Flags& f, Config* c) {
  ModelConfig& m = c->model;
  m.task = f.task ? resolve_task(f) : Task::pretraining;
  c->sequence = f.sequence.value_or(m.task == Task::question_answering ? 384 : 128);
  m.max_positions = f.max_positions.value_or(std::max<int64_t>(512, c->sequence));
  m.layernorm_epsilon = f.layernorm_epsilon.value_or(1e-12);
  m.init_std = f.init_std;
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
    for (const EncoderFlag& flag : encoder_flags(f, m, c->data))
      if (flag.given)
        fail(flag.name, "is for encoders, and this is {}: give --model bert-base, for example",
             m.kind());
    return;
  }
  for (const EncoderFlag& flag : encoder_flags(f, m, c->data))
    if (flag.given && !flag.used) fail(flag.name, "{}: leave it out", flag.why);
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
