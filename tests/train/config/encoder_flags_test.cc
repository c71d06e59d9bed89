// Flags of BERT and DistilBERT.
#include <doctest/doctest.h>

#include "src/checkpoint/model_config_file.h"
#include "tests/train/config/parse.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;

TEST_CASE("the published encoders by name, with their sizes") {
  // Devlin et al. 2018, section 3; Sanh et al. 2019, section 3; transformers' parameter counts with
  // the vocabulary of 30,522: BertForPreTraining and DistilBertForMaskedLM.
  const std::string whole = base + "--make-vocab-size-divisible-by 1 ";
  const Config b = parse(whole + "--model bert-base");
  CHECK(b.model.kind == "bert");
  CHECK(b.model.task == Task::pretraining);
  CHECK(b.model.predicts_next_sentence());
  CHECK(b.model.layernorm_epsilon == 1e-12);
  CHECK(b.model.vocabulary == 30522);
  CHECK(b.model.max_positions == 512);
  CHECK(b.model.parameters() == 110106428);
  CHECK(b.sequence == 128);
  CHECK(b.data.max_predictions == 20);
  CHECK(b.data.tokenizer == "BertWordPieceLowerCase");
  CHECK(parse(whole + "--model 340M").model.parameters() == 336226108);
  const Config d = parse(whole + "--model distilbert");
  CHECK_FALSE(d.model.predicts_next_sentence());
  CHECK(d.model.parameters() == 66985530);
}

TEST_CASE("an encoder's task") {
  const Config c = parse(base + "--model distilbert --task classify --num-classes 5");
  CHECK(c.model.task == Task::classification);
  CHECK(c.model.classes == 5);
  CHECK(c.model.classifier_dropout == 0.2);
  const Config s = parse(base + "--model bert-large --task squad --hidden-dropout 0.3");
  CHECK(s.sequence == 384);
  CHECK(s.model.classifier_dropout == 0.3);
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
  m.kind = "bert", m.task = Task::classification;
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
  m.kind = "bert", m.task = Task::classification;
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

TEST_CASE("the note on --openai-gelu is true of every model") {
  const Config c = parse(base + "--model bert-base --openai-gelu");
  CHECK(c.notices.back().find("an encoder's is exact") != std::string::npos);
}
