// Settings of what is read and written.
#include "src/config/flags.h"
#include "src/config/resolve_parts.h"
#include "src/config/settings.h"

namespace tally::train {
namespace {

void add_paths(SettingTable& t, Flags& f) {
  DataConfig& d = f.config.data;
  // The data is compared by its content once it has been read.
  const auto blend = [&](Setting& paths, const std::string& part, const Blend& b) {
    paths.record("data." + part + "paths", b.paths).agree(Agreement::none);
    t.follows("data." + part + "weights", b.weights,
              "the weights of " + std::string(part.empty()       ? "--data-path"
                                              : part == "valid_" ? "--valid-data-path"
                                                                 : "--test-data-path"));
  };
  blend(t.list("--data-path", &d.paths, "PREFIX",
               "Dataset made by 'tally-train prepare' or Megatron-LM: PREFIX.bin and PREFIX.idx; "
               "several are blended when each has its weight before it: 0.7 A 0.3 B; of encoders: "
               "HDF5 files or folders of them (pretrain), a table of texts (classify), SQuAD's "
               "JSON (squad)"),
        "", d);
  t.list("--train-data-path", &f.train_paths, "PREFIX",
         "Dataset to train on, all of it, instead of --data-path and --split");
  blend(t.list("--valid-data-path", &f.valid_paths, "PREFIX",
               "Dataset to evaluate on, all of it, with --train-data-path"),
        "valid_", d.validation);
  blend(t.list("--test-data-path", &f.test_paths, "PREFIX",
               "Dataset to evaluate on at the end of training, all of it, with --train-data-path"),
        "test_", d.test);
}

void add_document_settings(SettingTable& t, Config& c) {
  DataConfig& d = c.data;
  t.turns_on(
       "--eod-mask-loss", &d.eod_mask_loss,
       "The token after the end of a document does not count for the loss; each micro batch's loss "
       "is the mean over the tokens that count, as in Megatron-LM")
      .record("data.eod_mask_loss");
  t.turns_on(
       "--calculate-per-token-loss", &c.per_token_loss,
       "With --eod-mask-loss, a step's loss is the mean over the tokens that count in its global "
       "batch, whatever --micro-batch-size and the number of processes; other runs do so anyway")
      .record("training.calculate_per_token_loss");
  t.turns_on("--reset-position-ids", &d.reset_position_ids,
             "Positions start again at 0 after the end of a document")
      .record("data.reset_position_ids");
  t.turns_on("--reset-attention-mask", &d.reset_attention_mask,
             "Tokens attend to their own document only")
      .record("data.reset_attention_mask");
}

}  // namespace

void add_data_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  DataConfig& d = f.config.data;
  t.group("Data");
  add_paths(t, f);
  add_document_settings(t, f.config);
  t.turns_on("--mock-data", &d.mock, "Random tokens instead of a dataset, for measuring")
      .record("data.mock");
  t.text("--split", &d.split, "A,B,C",
         "Weights of training, validation and test documents; evaluate reads them all", check_split)
      .record("data.split", text_or_null(d.separate ? "" : d.split));
  t.text("--tokenizer-type", &f.tokenizer, "NAME",
         "GPT2BPETokenizer (default), HuggingFaceTokenizer or bytes, of encoders "
         "BertWordPieceLowerCase (default) or "
         "BertWordPieceCase; decides the vocabulary's size. NullTokenizer: none, with --vocab-size")
      .offers({"GPT2BPETokenizer", "HuggingFaceTokenizer", "bytes", "BertWordPieceLowerCase",
               "BertWordPieceCase", "NullTokenizer"})
      .record("data.tokenizer", d.tokenizer);
  t.text("--vocab-file", &d.vocab_file, "FILE",
         "vocab.json of GPT2BPETokenizer, or a tokenizer.json alone, the one of "
         "HuggingFaceTokenizer; training only copies it "
         "next to what it saves. Of encoders: the vocab.txt that texts are tokenized with");
  t.text("--merge-file", &d.merge_file, "FILE", "merges.txt of GPT2BPETokenizer, likewise");
}

namespace {

void add_checkpoint_settings(SettingTable& t, Config& c) {
  t.text("--save", &c.save_dir, "DIR",
         "Write checkpoints to DIR: at the end, when asked to stop, and every --save-interval; a "
         "DIR that holds checkpoints is refused unless --load resumes from them")
      .record("save")
      .agree(Agreement::given);
  t.number("--save-interval,--persistent-save-interval", &c.save_interval, 1,
           "Steps between checkpoints")
      .record("save_interval");
  t.text("--load", &c.load_dir, "DIR",
         "Resume from the newest checkpoint in DIR, or from DIR where it is an iter_ folder; an "
         "empty DIR starts from scratch")
      .record("load")
      .agree(Agreement::given);
  t.text("--load-hf", &c.load_hf_dir, "DIR",
         "Start from a GPT-2, Llama, BERT or DistilBERT of Hugging Face: model.safetensors (or its "
         "shards) and config.json, which sets the model's sizes; vocab.json and merges.txt, or "
         "tokenizer.json, where DIR has them (docs/real-weights.md)")
      .record("load_hf")
      .agree(Agreement::given);
  t.text("--save-hf", &c.save_hf_dir, "DIR",
         "Write the trained model to DIR as transformers reads it, at the end and when asked to "
         "stop: model.safetensors in the run's precision, config.json, and the tokenizer's files "
         "where they are known; a DIR that holds a model is refused unless --load resumes its "
         "training")
      .record("save_hf")
      .agree(Agreement::given);
  t.turns_on("--finetune", &c.finetune,
             "Start at iteration 0 with the weights of --load's checkpoint, without its counters "
             "and its optimizer's state")
      .record("finetune");
  t.turns_off("--no-load-optim", &c.load_optimizer,
              "Resume from --load's weights and counters without its optimizer's state: moments, "
              "bias correction and loss scale start anew; the learning rate follows the samples")
      .record("load_optimizer")
      .called("load_optimizer (--no-load-optim turns it off)");
  t.turns_off("--no-save-optim", &c.save_optimizer,
              "Leave the optimizer's state out of checkpoints: a third of the size or less; only "
              "--no-load-optim, --finetune and evaluate read them")
      .record("save_optimizer")
      .called("save_optimizer (--no-save-optim turns it off)");
  t.turns_on("--exit-on-missing-checkpoint", &c.exit_on_missing_checkpoint,
             "With --load: a DIR without a checkpoint is an error")
      .record("exit_on_missing_checkpoint");
}

void add_mllog_settings(SettingTable& t, Config& c) {
  t.text("--mllog", &c.mllog_path, "FILE",
         "Write MLPerf's log of the training, which its compliance checker reads; replaces the "
         "file (docs/evidence.md)");
  t.list("--mllog-set", "KEY=VALUE", "Values of that log, in place of this program's",
         [&c](const std::vector<std::string>& words) {
           c.mllog_values.clear();
           for (const std::string& word : words) {
             const size_t equals = word.find('=');
             if (equals == std::string::npos || equals == 0)
               refuse_value("--mllog-set", "'" + word + "' is not of the form KEY=VALUE");
             c.mllog_values.emplace_back(word.substr(0, equals), word.substr(equals + 1));
           }
         });
}

void add_evaluate_settings(SettingTable& t, Flags& f) {
  Config& c = f.config;
  t.group("tally-train evaluate");
  t.text("--text", &c.text, "FILE",
         "Evaluate on this plain text, gzip'd or not, as one document, instead of --data-path")
      .record("text")
      .agree(Agreement::given);
  t.number("--stride", &f.stride, 1,
           "Tokens from the start of one block of --seq-length to the next one's; every token but "
           "the text's first is scored once, in the first block that reaches it, so that a smaller "
           "stride gives more context (default: --seq-length)")
      .record("stride", c.stride);
  t.choice("--eval-mode", &f.eval_mode, "NAME",
           {{"reduce", EvalMode::reduce}, {"gather", EvalMode::gather}},
           "The way in which several processes come to one metric: reduce (each scores its own "
           "samples, and the "
           "counts are added; default) or gather (rank 0 scores the predictions of all, and the "
           "metric is broadcast)")
      .record("eval_mode", eval_mode_name(c.eval_mode));
  t.text("--predictions", &c.predictions_path, "FILE",
         "Write the predictions of --task classify (a JSON object a line) or squad (one JSON "
         "object of answers, as SQuAD's evaluation scripts read it)")
      .record("predictions")
      .agree(Agreement::given);
}

}  // namespace

void add_output_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  Config& c = f.config;
  t.group("Output, checkpoints, evaluation");
  t.number("--log-interval", &c.log_interval, 1, "Steps between log lines").record("log_interval");
  t.choice("--log-format", &c.log_format, "NAME",
           {{"jupiter", LogFormat::jupiter}, {"megatron", LogFormat::megatron}},
           "jupiter: the log line of the JUPITER benchmark's Megatron-LM, in seconds; megatron: "
           "that of today's Megatron-LM, in milliseconds (docs/record.md)");
  t.turns_on("--log-throughput", &c.log_throughput,
             "With --log-format megatron: TFLOP/s/GPU in the log line; the other format always has "
             "its TFLOPs");
  t.text("--record", &c.record_path, "FILE",
         "Write a JSON record of the run (docs/record.md); replaces no file but an older record");
  add_checkpoint_settings(t, c);
  t.number("--eval-interval", &f.eval_interval, 1,
           "Steps between evaluations on the validation split (default: none, or 1000 with "
           "--eval-iters)")
      .record("training.eval_interval", c.eval_interval);
  t.number("--eval-interval-samples", &c.eval_interval_samples, 1,
           "Samples between evaluations, instead of --eval-interval: after the step that completes "
           "them, each time on the same validation samples")
      .record("training.eval_interval_samples");
  t.number("--target-loss", &c.target_loss, 1e-9,
           "End the training after the evaluation whose loss is at most this")
      .record("training.target_loss");
  add_mllog_settings(t, c);
  t.number("--eval-iters", &f.eval_iterations, 0,
           "Global batches of an evaluation (default: 100 with --eval-interval, "
           "--eval-interval-samples or --skip-train)")
      .record("training.eval_iters", c.eval_iterations);
  t.turns_on("--skip-train", &c.skip_train,
             "Evaluate --eval-iters global batches of the validation data and of --test-data-path, "
             "and end; nothing is trained or saved")
      .record("skip_train");
  add_evaluate_settings(t, f);
}

}  // namespace tally::train
