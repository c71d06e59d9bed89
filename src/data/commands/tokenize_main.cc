// The command line of `tally-train tokenize`.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "src/data/commands/data_command.h"
#include "src/data/commands/tokenize.h"
#include "src/data/text/text_input.h"
#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {
namespace {

// A token as a line shows it: a vocabulary's own writing where it has one.
std::string piece_of(const Tokenizer& tokenizer, int32_t token) {
  const auto* wordpiece = dynamic_cast<const WordPieceTokenizer*>(&tokenizer);
  return wordpiece != nullptr ? wordpiece->piece(token) : tokenizer.decode({token});
}

class LinePrinter {
 public:
  LinePrinter(const Tokenizer& tokenizer, bool pieces)
      : tokenizer_(tokenizer), encoder_(tokenizer.make_encoder()), pieces_(pieces) {}

  void print(const std::string& line) {
    tokens_.clear();
    encoder_->encode(line, &tokens_);
    std::string out;
    for (const int32_t token : tokens_) {
      if (!out.empty()) out += ' ';
      out += pieces_ ? piece_of(tokenizer_, token) : std::to_string(token);
    }
    out += '\n';
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size()) fail();
  }
  void finish() const {
    if (std::fflush(stdout) != 0) fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw std::runtime_error(
        fmt::format("standard output cannot be written: {}", std::strerror(errno)));
  }

  const Tokenizer& tokenizer_;
  std::unique_ptr<Tokenizer::Encoder> encoder_;
  bool pieces_;
  std::vector<int32_t> tokens_;
};

void print_tokens(const std::string& path, LinePrinter* printer) {
  TextInput input(path);
  std::string block, rest;
  while (input.read(size_t{1} << 18, &block)) {
    rest += block;
    size_t begin = 0;
    for (size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      printer->print(rest.substr(begin, end - begin));
    rest.erase(0, begin);
  }
  if (!rest.empty()) printer->print(rest);
}

constexpr const char* kTokenizeWhat = "Prints the tokens of each line of a text.";

struct TokenizeArguments {
  TokenizerFlags tokenizer;
  std::string input = "-";
  bool pieces = false;
};

void declare_tokenize(CLI::App* app, TokenizeArguments* a) {
  app->add_option("--input", a->input, "Text, gzip'd or not; - is standard input")
      ->capture_default_str();
  declare_tokenizer_flags(app, &a->tokenizer);
  app->add_flag("--pieces", a->pieces, "Print pieces of text instead of numbers");
}

}  // namespace

CommandSpec tokenize_spec(const KnownValues& known) {
  TokenizeArguments arguments;
  CLI::App app(kTokenizeWhat);
  declare_tokenize(&app, &arguments);
  return command_spec(app, {"tokenize"}, known);
}

int tokenize_main(int argc, char** argv) {
  CLI::App app(kTokenizeWhat, "tally-train tokenize");
  TokenizeArguments arguments;
  declare_tokenize(&app, &arguments);
  return run_data_command(&app, argc, argv, [&] {
    check_inputs({arguments.input});
    const auto tokenizer = tokenizer_of(arguments.tokenizer);
    LinePrinter printer(*tokenizer, arguments.pieces);
    print_tokens(arguments.input, &printer);
    printer.finish();
  });
}

}  // namespace tally::train
