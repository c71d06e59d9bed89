// The command line of `tally-train prepare`.
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>

#include "src/data/commands/bert_prepare.h"
#include "src/data/commands/data_command.h"
#include "src/data/commands/prepare.h"
#include "src/data/commands/progress.h"
#include "src/data/text/text_input.h"
#include "src/data/tokens/indexed_writer.h"

namespace tally::train {
namespace {

struct PrepareArguments {
  PrepareOptions options;
  std::string output, output_prefix;
  TokenizerFlags tokenizer;
  std::string dtype = "auto";
  std::string task = "gpt";
  BertPrepareOptions bert;
  int64_t max_predictions = 0;  // 0: by the length of sequences
  bool split_sentences = false;
};

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

void declare_prepare(CLI::App* app, PrepareArguments* a) {
  app->add_option(
         "--input", a->options.inputs,
         "Text or JSON lines (by name: .jsonl, .ndjson, .json), gzip'd or not; - is standard input")
      ->required()
      ->expected(1, std::numeric_limits<int>::max() / 2);
  auto* output =
      app->add_option("--output", a->output,
                      "Writes OUTPUT.bin and OUTPUT.idx; --task bert: the folder in which "
                      "a folder of shards is made");
  app->add_option("--output-prefix", a->output_prefix,
                  "Prefix as Megatron-LM names it: PREFIX_KEY_document.bin and .idx")
      ->excludes(output);
  declare_tokenizer_flags(app, &a->tokenizer);
  app->add_option("--json-keys", a->options.keys,
                  "Keys of the text in JSON lines; each makes a dataset")
      ->expected(1, std::numeric_limits<int>::max() / 2)
      ->capture_default_str();
  app->add_option("--format", a->options.format, "auto, text or jsonl")
      ->check(CLI::IsMember({"auto", "text", "jsonl"}))
      ->capture_default_str();
  app->add_flag("--split-documents-on-blank-lines", a->options.split_on_blank_lines,
                "Blank lines separate the documents of a plain text (else a file is one document)");
  app->add_flag("--append-eod", a->options.append_eod,
                "End every document with the end-of-document token");
  app->add_option("--workers", a->options.workers, "Threads that tokenize")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--dtype", a->dtype,
                  "Type of the tokens: auto (u16 below 65500 tokens), u16 or i32")
      ->check(CLI::IsMember({"auto", "u16", "i32"}))
      ->capture_default_str();
}

void declare_bert(CLI::App* app, PrepareArguments* a) {
  app->add_option(
         "--task", a->task,
         "gpt: an indexed dataset; bert: pairs of sentences with masked tokens, as HDF5 files")
      ->check(CLI::IsMember({"gpt", "bert"}))
      ->capture_default_str();
  const std::string group = "With --task bert";
  app->add_flag("--split-sentences", a->split_sentences,
                "Find the sentences of a document (else every line is one)")
      ->group(group);
  app->add_option("--seq-length", a->bert.sequence,
                  "Tokens of a sample: 128 in phase 1, 512 in phase 2")
      ->check(CLI::Range(8, 65536))
      ->capture_default_str()
      ->group(group);
  app->add_option(
         "--max-predictions-per-seq", a->max_predictions,
         "Most masked tokens of a sample (default: 20 for each 128 tokens of --seq-length)")
      ->check(CLI::Range(1, 65536))
      ->group(group);
  app->add_option("--masked-lm-prob", a->bert.masked_probability, "Share of the tokens to mask")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  app->add_option("--short-seq-prob", a->bert.short_sequence_probability,
                  "Probability of a sample that is to be shorter")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  app->add_option("--dupe-factor", a->bert.dupe_factor,
                  "Times that the text is gone through, with other pairs and masks")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->group(group);
  app->add_option("--seed", a->bert.seed, "Seed of pairs, masks and order")
      ->capture_default_str()
      ->group(group);
  app->add_option("--shards", a->bert.shards, "Files to write")
      ->check(CLI::Range(int64_t{1}, kMostShards))
      ->capture_default_str()
      ->group(group);
}

// Flags that do nothing for the task are mistakes.
void check_task(const CLI::App& app, const std::string& task) {
  const bool bert = task == "bert";
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool of_gpt = name == "--output-prefix" || name == "--append-eod" || name == "--dtype" ||
                        name == "--split-documents-on-blank-lines";
    const bool of_bert = option->get_group() == "With --task bert";
    if (option->count() > 0 && (bert ? of_gpt : of_bert))
      throw BadInput(fmt::format("{} has no effect with --task {}: leave it out", name, task));
  }
}

// Resolves flags that depend on each other.
void complete(PrepareArguments* a, const Tokenizer& tokenizer) {
  if (a->output.empty() == a->output_prefix.empty()) {
    throw BadInput("--output PREFIX is required: PREFIX.bin and PREFIX.idx are written");
  }
  const bool several = a->options.keys.size() > 1;
  for (const std::string& key : a->options.keys) {
    const bool plain = !a->output.empty() && !several;
    a->options.prefixes.push_back(plain ? a->output
                                        : (a->output.empty() ? a->output_prefix : a->output) + "_" +
                                              key + "_document");
  }
  a->options.dtype = a->dtype == "auto"  ? token_type(tokenizer.vocabulary())
                     : a->dtype == "u16" ? DType::u16
                                         : DType::i32;
  if (a->options.dtype == DType::u16 && tokenizer.vocabulary() > 65536) {
    throw BadInput(fmt::format("--dtype u16 cannot hold this vocabulary of {} tokens: use i32",
                               tokenizer.vocabulary()));
  }
}

// Refuses outputs that would overwrite inputs.
void check_outputs(const PrepareOptions& options) {
  for (const std::string& input : options.inputs) {
    struct stat read {};
    if ((input == "-" ? ::fstat(STDIN_FILENO, &read) : ::stat(input.c_str(), &read)) != 0) continue;
    for (const std::string& prefix : options.prefixes) {
      for (const std::string& suffix : IndexedDatasetWriter::suffixes()) {
        const std::string output = prefix + suffix;
        struct stat written {};
        if (::stat(output.c_str(), &written) != 0 || read.st_dev != written.st_dev ||
            read.st_ino != written.st_ino)
          continue;
        throw BadInput(fmt::format(
            "--input {} is '{}', which would be written: choose another output", input, output));
      }
    }
  }
}

void warn_of_replacements(int64_t replaced) {
  if (replaced == 0) return;
  const std::string warning = fmt::format(
      "warning: {} invalid UTF-8 sequence{} in the input became U+FFFD: is the text in another "
      "encoding?\n",
      replaced, replaced == 1 ? "" : "s");
  std::fputs(warning.c_str(), stderr);  // fmt::print() would throw where standard error is full
}

void print_summary(const PrepareOptions& options, const PrepareSummary& s) {
  std::string names;
  for (const std::string& prefix : options.prefixes) names += (names.empty() ? "" : ", ") + prefix;
  const double rate = static_cast<double>(s.input_bytes) / std::max(s.seconds, 1e-6);
  fmt::print("{}: {} document{}, {} tokens from {} in {:.1f} s ({}/s), {} written\n", names,
             s.documents, s.documents == 1 ? "" : "s", s.tokens, bytes_text(s.input_bytes),
             s.seconds, bytes_text(static_cast<int64_t>(rate)), bytes_text(s.output_bytes));
  warn_of_replacements(s.replaced);
}

void run_bert(PrepareArguments* a, const Tokenizer& tokenizer) {
  const auto& wordpiece = dynamic_cast<const WordPieceTokenizer&>(tokenizer);
  if (a->output.empty())
    throw BadInput("--output DIR is required: a folder of shards is made in it");
  if (a->options.keys.size() != 1) throw BadInput("--task bert takes one of --json-keys");
  BertPrepareOptions& o = a->bert;
  o.inputs = a->options.inputs;
  o.key = a->options.keys[0];
  o.format = a->options.format;
  o.workers = a->options.workers;
  o.output = a->output;
  o.sentences = a->split_sentences ? SentenceRule::unicode : SentenceRule::lines;
  o.lower_case = a->tokenizer.type == "BertWordPieceLowerCase";
  o.max_predictions = a->max_predictions > 0 ? a->max_predictions : (o.sequence * 20 + 127) / 128;
  const BertPrepareSummary s = prepare_bert(wordpiece, o);
  fmt::print(
      "{}: {} samples in {} file{} from {} document{} of {} sentences and {} tokens ({}) in {:.1f} "
      "s, {} written\n",
      s.folder, s.samples, s.shards, s.shards == 1 ? "" : "s", s.documents,
      s.documents == 1 ? "" : "s", s.sentences, s.tokens, bytes_text(s.input_bytes), s.seconds,
      bytes_text(s.output_bytes));
  warn_of_replacements(s.replaced);
}

constexpr const char* kPrepareWhat =
    "Makes an indexed dataset (Megatron-LM's .bin and .idx) or BERT's pre-training data from text.";

}  // namespace

CommandSpec prepare_spec(const KnownValues& known) {
  PrepareArguments arguments;
  CLI::App app(kPrepareWhat);
  declare_prepare(&app, &arguments);
  declare_bert(&app, &arguments);
  return command_spec(app, {"prepare"}, known);
}

int prepare_main(int argc, char** argv) {
  PrepareArguments arguments;
  arguments.options.workers = usable_cores();
  CLI::App app(kPrepareWhat, "tally-train prepare");
  declare_prepare(&app, &arguments);
  declare_bert(&app, &arguments);
  return run_data_command(&app, argc, argv, [&] {
    check_task(app, arguments.task);
    check_inputs(arguments.options.inputs);
    const bool bert = arguments.task == "bert";
    if (bert && !is_wordpiece(arguments.tokenizer.type))
      throw BadInput(
          "--task bert needs --tokenizer-type BertWordPieceLowerCase or BertWordPieceCase");
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(arguments.tokenizer);
    if (bert) return run_bert(&arguments, *tokenizer);
    complete(&arguments, *tokenizer);
    check_outputs(arguments.options);
    print_summary(arguments.options, prepare(*tokenizer, arguments.options));
  });
}

}  // namespace tally::train
