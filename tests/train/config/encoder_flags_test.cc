// Flags of BERT and DistilBERT.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "src/checkpoint/model_config_file.h"
#include "src/model/architecture.h"
#include "tests/train/config/parse.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;

TEST_CASE("the published encoders by name, with their sizes") {
  // Devlin et al. 2018, section 3; Sanh et al. 2019, section 3; transformers' parameter counts with
  // the vocabulary of 30,522: BertForPreTraining and DistilBertForMaskedLM.
  const std::string whole = base + "--make-vocab-size-divisible-by 1 ";
  const Config b = parse(whole + "--model bert-base");
  CHECK(b.model.kind() == "bert");
  CHECK(b.model.task == Task::pretraining);
  CHECK(b.model.predicts_next_sentence());
  CHECK(b.model.layernorm_epsilon == 1e-12);
  CHECK(b.model.vocabulary == 30522);
  CHECK(b.model.max_positions == 512);
  CHECK(parameter_count(b.model) == 110106428);
  CHECK(b.sequence == 128);
  CHECK(b.data.max_predictions == 20);
  CHECK(b.data.tokenizer == "BertWordPieceLowerCase");
  CHECK(parameter_count(parse(whole + "--model 340M").model) == 336226108);
  const Config d = parse(whole + "--model distilbert");
  CHECK_FALSE(d.model.predicts_next_sentence());
  CHECK(parameter_count(d.model) == 66985530);
}

TEST_CASE("an encoder's task") {
  const Config c = parse(base + "--model distilbert --task classify --num-classes 5");
  CHECK(c.model.task == Task::classification);
  CHECK(c.model.classes == 5);
  CHECK(c.model.head_dropout() == 0.2);
  const Config s = parse(base + "--model bert-large --task squad --hidden-dropout 0.3");
  CHECK(s.sequence == 384);
  CHECK_FALSE(s.model.head_dropout().has_value());
  CHECK_FALSE(
      parse(base + "--model bert-base --bert-no-binary-head").model.predicts_next_sentence());
  CHECK(parse(base + "--model bert-base --seq-length 512").data.max_predictions == 80);
}

TEST_CASE("what does not go with encoders is one clear error") {
  const auto fault = [](const std::string& flags, int world = 1) {
    return error_of(base + "--model bert-base " + flags, world);
  };
  CHECK(fault("--tensor-model-parallel-size 2", 2) ==
        "--tensor-model-parallel-size: 2: bert is parallel in data only: take 1");
  CHECK(fault("--pipeline-model-parallel-size 2", 2).find("parallel in data only") !=
        std::string::npos);
  CHECK(fault("--tensor-model-parallel-size 2") ==
        "--tensor-model-parallel-size: 2: bert is parallel in data only: take 1");
  for (const std::string layout : {"1x1x2", "2x1x1"})
    CHECK(fault("--rehearse " + layout) ==
          "--rehearse: is for language models, and this is bert: leave it out");
  CHECK(fault("--task pretraining") ==
        "--task: 'pretraining' is not known: pretrain, classify, squad");
  CHECK(fault("--tokenizer-type GPT2BPETokenizer").find("is not a tokenizer of encoders") !=
        std::string::npos);
  CHECK(fault("--use-rotary-position-embeddings") ==
        "--use-rotary-position-embeddings: is for language models, and this is bert: leave it out");
  for (const std::string flag :
       {"--swiglu", "--add-qkv-bias", "--qk-layernorm", "--use-rope-scaling",
        "--disable-bias-linear", "--group-query-attention"})
    CHECK(fault(flag) == flag + ": is for language models, and this is bert: leave it out");
  CHECK(fault("--rope-scaling-factor 4") == "--rope-scaling-factor: goes with --use-rope-scaling");
  CHECK(fault("--merge-file m").find("is not read for BERT's tokenizers") != std::string::npos);
  CHECK(error_of("--train-iters 10 --model bert-base --data-path d --dynamic-masking") ==
        "--dynamic-masking: needs --vocab-file: the [MASK] of the data's vocabulary");
  CHECK(fault("--mask-prob 0") == "--mask-prob: must be greater than 0");
  CHECK(error_of(base + "--pad") ==
        "--pad: is for encoders, and this is gpt: give --model bert-base, for example");
  CHECK(error_of(base + "--task classify").find("--task: is for encoders") == 0);
}

TEST_CASE("a folder's tokenizer says whether texts are lower-cased") {
  const TempDir dir;
  ModelConfig m;
  m.set_kind("bert"), m.task = Task::classification;
  dir.write("config.json", model_config_json(m, DType::f32));
  const std::string flags = base + "--load-hf " + (dir / "");
  CHECK(parse(flags).data.tokenizer == "BertWordPieceLowerCase");
  dir.write("tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK(parse(flags).data.tokenizer == "BertWordPieceCase");
  CHECK(parse(flags + " --tokenizer-type BertWordPieceCase").data.tokenizer == "BertWordPieceCase");
  CHECK(error_of(flags + " --tokenizer-type BertWordPieceLowerCase")
            .find("--tokenizer-type: BertWordPieceLowerCase contradicts the tokenizer of") == 0);
}

TEST_CASE("a classifier of several labels a text is refused") {
  const TempDir dir;
  ModelConfig m;
  m.set_kind("bert"), m.task = Task::classification;
  const std::string text = model_config_json(m, DType::f32);
  dir.write("config.json",
            text.substr(0, text.rfind('}')) + R"(, "problem_type": "multi_label_classification"})");
  CHECK(error_of(base + "--load-hf " + (dir / "")).find("has the problem_type") !=
        std::string::npos);
}

TEST_CASE("flags that would have no effect on an encoder are refused") {
  const std::string bert = "--train-iters 1 --model bert-base --data-path d ";
  CHECK(error_of(bert + "--max-predictions-per-seq 10") ==
        "--max-predictions-per-seq: goes with --dynamic-masking; else the HDF5 files say which "
        "tokens are masked: leave it out");
  CHECK(parse(bert + "--max-predictions-per-seq 10 --dynamic-masking --vocab-file v")
            .data.max_predictions == 10);
  CHECK(parse(base + "--model bert-base --max-predictions-per-seq 9").data.max_predictions == 9);
  CHECK(error_of(bert + "--task squad --max-predictions-per-seq 10") ==
        "--max-predictions-per-seq: goes with --task pretrain: leave it out");
  CHECK(error_of(bert + "--num-classes 3") ==
        "--num-classes: goes with --task classify: leave it out");
  CHECK(error_of(base + "--model distilbert --bert-no-binary-head") ==
        "--bert-no-binary-head: is for the pretraining of BERT; distilbert has no such head: leave "
        "it out");
  CHECK(
      error_of(bert + "--task classify --bert-no-binary-head") ==
      "--bert-no-binary-head: is for the pretraining of BERT; bert has no such head in this task: "
      "leave it out");
  CHECK(error_of(bert + "--split 1,1").find("--split: divides the datasets of language") == 0);
}

TEST_CASE("every flag of encoders is refused where it would have no effect, and taken elsewhere") {
  const std::string bert = "--train-iters 1 --model bert-base --vocab-file v ";
  const std::string shards = bert + "--data-path d ", mock = bert + "--mock-data ";
  const std::string classes = shards + "--task classify ", answers = shards + "--task squad ";
  const std::string mock_classes = mock + "--task classify ", mock_answers = mock + "--task squad ";
  struct Case {
    const char* flag;
    std::vector<std::string> with, without;  // effect
  };
  const std::vector<Case> cases{
      {"--mask-prob 0.3",
       {mock, shards + "--dynamic-masking "},
       {shards, classes, answers, mock_classes}},
      {"--max-predictions-per-seq 9",
       {mock, shards + "--dynamic-masking "},
       {shards, classes, answers, mock_classes}},
      {"--dynamic-masking", {shards}, {mock, classes, answers, mock_classes}},
      {"--classifier-dropout 0.3", {classes, mock_classes}, {shards, mock, answers}},
      {"--num-classes 3", {classes, mock_classes}, {shards, mock, answers}},
      {"--mock-lengths 9", {mock, mock_classes, mock_answers}, {shards, classes, answers}},
      {"--mock-samples 9", {mock, mock_classes, mock_answers}, {shards, classes, answers}},
      {"--text-column t", {classes}, {shards, mock, answers, mock_classes}},
      {"--pair-column t", {classes}, {shards, mock, answers, mock_classes}},
      {"--label-column t", {classes}, {shards, mock, answers, mock_classes}},
      {"--doc-stride 9", {answers}, {shards, mock, classes, mock_answers}},
      {"--max-query-length 9", {answers}, {shards, mock, classes, mock_answers}},
      {"--version-2-with-negative", {answers}, {shards, mock, classes, mock_answers}}};
  CHECK_NOTHROW(
      parse("--train-iters 1 --model distilbert --vocab-file v --data-path d --task squad "
            "--classifier-dropout 0.3"));
  for (const Case& c : cases) {
    const std::string flag = c.flag, name = flag.substr(0, flag.find(' '));
    for (const std::string& run : c.with) {
      CAPTURE(run + flag);
      CHECK_NOTHROW(parse(run + flag));
    }
    for (const std::string& run : c.without) {
      CAPTURE(run + flag);
      const std::string error = error_of(run + flag);
      CAPTURE(error);
      CHECK(error.starts_with(name + ": "));
      CHECK(error.ends_with(": leave it out"));
    }
  }
}

TEST_CASE("the note on --openai-gelu is true of every model") {
  const Config c = parse(base + "--model bert-base --openai-gelu");
  CHECK(c.notices.back().find("an encoder's is exact") != std::string::npos);
}

namespace {

// A config.json of transformers' sizes, and what becomes of its entry of the head's dropout.
struct HeadDropout {
  const char *type, *architecture, *entries, *flags;
  std::optional<double> used;
  const char *key, *written;
};

}  // namespace

// The defaults are those of transformers 5: BertConfig (classifier_dropout None is
// hidden_dropout_prob), DistilBertConfig (seq_classif_dropout 0.2, qa_dropout 0.1).
TEST_CASE(
    "the dropout of a head is the file's, the flag's or the architecture's, and stays in the "
    "file") {
  const char *c = "ForSequenceClassification", *q = "ForQuestionAnswering", *p = "ForMaskedLM";
  const char *bert = "bert", *distilbert = "distilbert", *of_bert = "classifier_dropout",
             *classes = "seq_classif_dropout", *answers = "qa_dropout";
  const std::vector<HeadDropout> cases = {
      {bert, c, "", "", 0.1, of_bert, "null"},
      {bert, c, "", "--hidden-dropout 0", 0, of_bert, "null"},
      {bert, c, R"("classifier_dropout": null,)", "--hidden-dropout 0", 0, of_bert, "null"},
      {bert, c, R"("hidden_dropout_prob": 0.25,)", "", 0.25, of_bert, "null"},
      {bert, c, R"("hidden_dropout_prob": 0.25,)", "--hidden-dropout 0.5", 0.5, of_bert, "null"},
      {bert, c, R"("classifier_dropout": 0.3,)", "--hidden-dropout 0", 0.3, of_bert, "0.3"},
      {bert, c, R"("classifier_dropout": 0.0,)", "", 0, of_bert, "0.0"},
      {bert, c, R"("classifier_dropout": 0.3,)", "--classifier-dropout 0.5", 0.5, of_bert, "0.5"},
      {bert, q, R"("classifier_dropout": 0.3,)", "", {}, of_bert, "0.3"},
      {bert, p, R"("classifier_dropout": 0.3,)", "", {}, of_bert, "0.3"},
      {bert, p, R"("classifier_dropout": 0.3,)", "--task classify", 0.3, of_bert, "0.3"},
      {distilbert, c, "", "--hidden-dropout 0", 0.2, classes, "0.2"},
      {distilbert, c, R"("seq_classif_dropout": 0.4,)", "", 0.4, classes, "0.4"},
      {distilbert, c, R"("qa_dropout": 0.5,)", "", 0.2, answers, "0.5"},
      {distilbert, q, "", "--hidden-dropout 0", 0.1, answers, "0.1"},
      {distilbert, q, R"("qa_dropout": 0.5,)", "", 0.5, answers, "0.5"},
      {distilbert, q, R"("qa_dropout": 0.0,)", "", 0, answers, "0.0"},
      {distilbert, q, R"("qa_dropout": 0.5,)", "--classifier-dropout 0.25", 0.25, answers, "0.25"},
      {distilbert, q, R"("seq_classif_dropout": 0.4,)", "", 0.1, classes, "0.4"},
      {distilbert, p, R"("qa_dropout": 0.5,)", "", {}, answers, "0.5"}};
  for (const HeadDropout& k : cases) {
    const std::string kind = k.type == std::string("bert") ? "Bert" : "DistilBert";
    CAPTURE(kind + k.architecture + " " + k.entries + " " + k.flags);
    const TempDir dir;
    const std::string text =
        "{" + std::string(k.entries) + R"("model_type": ")" + k.type + R"(", "architectures": [")" +
        kind + k.architecture + R"("], "vocab_size": 60, "max_position_embeddings": 32, )" +
        (kind == "Bert" ? R"("num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2,
                             "intermediate_size": 32})"
                        : R"("n_layers": 1, "dim": 16, "n_heads": 2, "hidden_dim": 32})");
    dir.write("config.json", text);
    const Config config =
        parse("--mock-data --train-iters 1 --seq-length 16 --load-hf " + dir / "" + " " + k.flags);
    CHECK(config.model.head_dropout() == k.used);
    SideFiles side;
    side.config = text;
    const auto written = nlohmann::json::parse(model_config_json(config.model, DType::f32, side));
    CHECK(written.at(k.key).dump() == k.written);
  }
}
