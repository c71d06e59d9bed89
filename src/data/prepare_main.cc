// The command line of `tally-train prepare`.
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>

#include "src/data/help_formatter.h"
#include "src/data/indexed_writer.h"
#include "src/data/prepare.h"
#include "src/data/progress.h"
#include "src/data/text_input.h"

namespace tally::train {
namespace {

struct Arguments {
  PrepareOptions options;
  std::string output, output_prefix, tokenizer = "GPT2BPETokenizer", vocab_file, merge_file;
  std::string dtype = "auto";
};

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

void declare(CLI::App* app, Arguments* a) {
  app->add_option(
         "--input", a->options.inputs,
         "Text or JSON lines (by name: .jsonl, .ndjson, .json), gzip'd or not; - is standard input")
      ->required()
      ->expected(1, std::numeric_limits<int>::max() / 2);
  auto* output = app->add_option("--output", a->output, "Writes OUTPUT.bin and OUTPUT.idx");
  app->add_option("--output-prefix", a->output_prefix,
                  "As Megatron-LM names them: PREFIX_KEY_document.bin and .idx")
      ->excludes(output);
  app->add_option("--tokenizer-type", a->tokenizer,
                  "GPT2BPETokenizer, BertWordPieceLowerCase, BertWordPieceCase or bytes")
      ->capture_default_str();
  app->add_option(
      "--vocab-file", a->vocab_file,
      "vocab.json of GPT2BPETokenizer, vocab.txt of BERT's tokenizers, or a tokenizer.json "
      "alone");
  app->add_option("--merge-file", a->merge_file, "merges.txt (GPT2BPETokenizer)");
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

// "--worker is not a flag; did you mean '--workers'?", or nothing when every flag is known.
std::string unknown_flag(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    word = word.substr(0, word.find('='));
    if (word.size() < 3 || word.compare(0, 2, "--") != 0) continue;
    if (app.get_option_no_throw(word) != nullptr) continue;
    std::string sentence = fmt::format("{}: unknown flag", word);
    for (const CLI::Option* option : app.get_options()) {
      const std::string name = option->get_name();
      if (name.compare(0, word.size(), word) == 0 || word.compare(0, name.size(), name) == 0) {
        return fmt::format("{}; did you mean '{}'?", sentence, name);
      }
    }
    return sentence;
  }
  return {};
}

std::unique_ptr<Tokenizer> tokenizer_of(const Arguments& a) {
  try {
    return make_tokenizer(a.tokenizer, a.vocab_file, a.merge_file);
  } catch (const std::runtime_error& error) {
    throw BadInput(error.what());
  }
}

// A missing input is a mistake in the command, so it is found before anything is written.
void check_inputs(const std::vector<std::string>& inputs) {
  for (const std::string& path : inputs) {
    if (path == "-") continue;
    struct stat info {};
    int error = ::stat(path.c_str(), &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
    if (error == 0 && ::access(path.c_str(), R_OK) != 0) error = errno;
    if (error != 0) {
      throw BadInput(fmt::format("--input '{}' cannot be read: {}", path, std::strerror(error)));
    }
  }
}

// Resolves flags that depend on each other.
void complete(Arguments* a, const Tokenizer& tokenizer) {
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

void print_summary(const PrepareOptions& options, const PrepareSummary& s) {
  std::string names;
  for (const std::string& prefix : options.prefixes) names += (names.empty() ? "" : ", ") + prefix;
  const double rate = static_cast<double>(s.input_bytes) / std::max(s.seconds, 1e-6);
  fmt::print("{}: {} document{}, {} tokens from {} in {:.1f} s ({}/s), {} written\n", names,
             s.documents, s.documents == 1 ? "" : "s", s.tokens, bytes_text(s.input_bytes),
             s.seconds, bytes_text(static_cast<int64_t>(rate)), bytes_text(s.output_bytes));
  if (s.replaced > 0) {
    fmt::print(
        stderr,
        "warning: {} invalid UTF-8 sequence{} in the input became U+FFFD: is the text in another "
        "encoding?\n",
        s.replaced, s.replaced == 1 ? "" : "s");
  }
}

}  // namespace

int prepare_main(int argc, char** argv) {
  Arguments arguments;
  arguments.options.workers = usable_cores();
  CLI::App app("Makes an indexed dataset (Megatron-LM's .bin and .idx) from text.",
               "tally-train prepare");
  app.formatter(std::make_shared<HelpFormatter>());
  declare(&app, &arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string unknown = unknown_flag(app, argc, argv);
    fmt::print(stderr, "tally-train prepare: error: {} (--help lists the flags)\n",
               unknown.empty() ? error.what() : unknown);
    return 2;
  }
  try {
    check_inputs(arguments.options.inputs);
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(arguments);
    complete(&arguments, *tokenizer);
    check_outputs(arguments.options);
    print_summary(arguments.options, prepare(*tokenizer, arguments.options));
    return 0;
  } catch (const BadInput& error) {
    fmt::print(stderr, "tally-train prepare: error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tally-train prepare: error: {}\n", error.what());
    return 1;
  }
}

}  // namespace tally::train
