#include "src/data/commands/data_command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>

#include "src/data/commands/help_formatter.h"
#include "src/data/text/exit_codes.h"
#include "src/data/text/text_input.h"

namespace tally::train {
namespace {

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

// fmt::print() would throw where standard error is full.
void print_error(const CLI::App& app, const std::string& why) {
  std::fputs(fmt::format("{}: error: {}\n", app.get_name(), why).c_str(), stderr);
}

}  // namespace

void declare_tokenizer_flags(CLI::App* app, TokenizerFlags* flags) {
  app->add_option("--tokenizer-type", flags->type,
                  "GPT2BPETokenizer, HuggingFaceTokenizer, BertWordPieceLowerCase, "
                  "BertWordPieceCase or bytes")
      ->capture_default_str();
  app->add_option("--vocab-file", flags->vocab_file,
                  "vocab.json of GPT2BPETokenizer, vocab.txt of BERT's tokenizers, or a "
                  "tokenizer.json alone, the one of HuggingFaceTokenizer");
  app->add_option("--merge-file", flags->merge_file, "merges.txt (GPT2BPETokenizer)");
}

std::unique_ptr<Tokenizer> tokenizer_of(const TokenizerFlags& flags) {
  try {
    return make_tokenizer(flags.type, flags.vocab_file, flags.merge_file);
  } catch (const std::runtime_error& error) {
    throw BadInput(error.what());
  }
}

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

int run_data_command(CLI::App* app, int argc, char** argv, const std::function<void()>& work) {
  app->formatter(std::make_shared<HelpFormatter>());
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app->exit(error);
    const std::string unknown = unknown_flag(*app, argc, argv);
    print_error(*app, (unknown.empty() ? error.what() : unknown) + " (--help lists the flags)");
    return exit_bad_input;
  }
  try {
    work();
    return exit_completed;
  } catch (const BadInput& error) {
    print_error(*app, error.what());
    return exit_bad_input;
  } catch (const std::filesystem::filesystem_error& error) {
    print_error(*app, fmt::format("'{}': {}", error.path1().string(), error.code().message()));
    return exit_error;
  } catch (const std::exception& error) {
    print_error(*app, error.what());
    return exit_error;
  }
}

}  // namespace tally::train
