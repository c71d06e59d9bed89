// The encoder of a Config: task, sizes that differ from GPT's, what it does not support.
#include <algorithm>

#include "src/config/resolve_parts.h"
#include "src/data/tokenizer.h"

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

// The first of the flags of encoders that was given; null: none.
const char* encoder_flag(const Flags& f) {
  const DataConfig none;
  const DataConfig& d = f.data;
  for (const auto& [name, given] :
       {std::pair{"--task", f.task.has_value()},
        std::pair{"--bert-no-binary-head", f.no_binary_head},
        std::pair{"--num-classes", f.classes.has_value()},
        std::pair{"--classifier-dropout", f.classifier_dropout.has_value()},
        std::pair{"--pad", d.pad}, std::pair{"--mock-lengths", !d.mock_lengths.empty()},
        std::pair{"--mock-samples", f.mock_samples.has_value()},
        std::pair{"--mask-prob", d.mask_probability != none.mask_probability},
        std::pair{"--max-predictions-per-seq", f.max_predictions.has_value()},
        std::pair{"--dynamic-masking", d.dynamic_masking},
        std::pair{"--text-column", d.text_column != none.text_column},
        std::pair{"--pair-column", !d.pair_column.empty()},
        std::pair{"--label-column", d.label_column != none.label_column},
        std::pair{"--doc-stride", d.document_stride != none.document_stride},
        std::pair{"--max-query-length", d.question_tokens != none.question_tokens},
        std::pair{"--version-2-with-negative", d.squad_2}})
    if (given) return name;
  return nullptr;
}

// Flags that would have no effect on an encoder with this task and data.
void refuse_without_effect(const Flags& f, const ModelConfig& m, const DataConfig& data) {
  if (f.classes && m.task != Task::classification)
    fail("--num-classes", "goes with --task classify: leave it out");
  if (f.no_binary_head && !(m.kind == "bert" && m.task == Task::pretraining))
    fail("--bert-no-binary-head",
         "is for the pretraining of BERT; {} has no such head{}: leave it out", m.kind,
         m.kind == "bert" ? " in this task" : "");
  if (f.max_predictions && m.task != Task::pretraining)
    fail("--max-predictions-per-seq", "goes with --task pretrain: leave it out");
  if (f.max_predictions && !data.mock && !data.dynamic_masking)
    fail("--max-predictions-per-seq",
         "goes with --dynamic-masking; else the HDF5 files say which tokens are masked: leave it "
         "out");
  if (f.mock_samples && !data.mock)
    fail("--mock-samples",
         "goes with --mock-data; files have the samples that they have: leave it out");
  if (data.split != DataConfig().split)
    fail("--split",
         "divides the datasets of language models; an encoder's files are taken whole, and "
         "--valid-data-path names those of validation: leave it out");
}

}  // namespace

void refuse_for_encoders(const Flags& f, const ModelConfig& m) {
  if (!m.encoder()) return;
  const std::string& kind = m.kind;
  for (const auto& [flag, given] :
       {std::pair{"--plan", f.plan}, std::pair{"--rehearse", !f.rehearse.empty()}})
    if (given) fail(flag, "is for language models, and this is {}: leave it out", kind);
  for (const auto& [flag, size] :
       {std::pair{"--tensor-model-parallel-size", f.tensor_parallel},
        std::pair{"--pipeline-model-parallel-size", f.pipeline_parallel}})
    if (size > 1) fail(flag, "{}: {} is parallel in data only: take 1", size, kind);
  for (const auto& [flag, given] :
       {std::pair{"--untie-embeddings-and-output-weights", f.untied},
        std::pair{"--swiglu", f.swiglu}, std::pair{"--normalization", f.normalization.has_value()},
        std::pair{"--disable-bias-linear", f.disable_bias_linear},
        std::pair{"--group-query-attention", f.grouped_queries},
        std::pair{"--num-query-groups", f.query_groups.has_value()},
        std::pair{"--kv-channels", f.kv_channels.has_value()},
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
  m.token_types = m.kind == "bert" ? 2 : 0;
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
  if (!m.encoder()) {
    if (const char* flag = encoder_flag(f))
      fail(flag, "is for encoders, and this is {}: give --model bert-base, for example", m.kind);
    return;
  }
  refuse_without_effect(f, m, c->data);
  if (f.no_binary_head) m.next_sentence = false;
  if (f.classes) m.classes = *f.classes;
  if (f.classifier_dropout) m.classifier_dropout = f.classifier_dropout;
  c->data.mock_samples = f.mock_samples.value_or(DataConfig().mock_samples);
  c->data.max_predictions =
      f.max_predictions.value_or(std::max<int64_t>(1, 20 * c->sequence / 128));
  if (c->data.mask_probability == 0) fail("--mask-prob", "must be greater than 0");
}

}  // namespace tally::train
