#include "src/data/commands/prepare.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/commands/ordered_pool.h"
#include "src/data/commands/progress.h"
#include "src/data/text/json_lines.h"
#include "src/data/text/text_input.h"
#include "src/data/text/utf8.h"
#include "src/data/tokens/indexed_writer.h"

namespace tally::train {
namespace {

constexpr size_t kBlock = size_t{1} << 18;

// The tokens of a chunk for one key: pieces one after the other.
struct Tokens {
  struct End {
    size_t at;
    bool ends_document;
  };
  std::vector<int32_t> tokens;
  std::vector<End> ends;
};
using EncodedChunk = std::vector<Tokens>;  // one per key

// Tokenizes chunks; one per worker.
class ChunkEncoder {
 public:
  ChunkEncoder(const Tokenizer& tokenizer, const std::vector<std::string>& keys)
      : encoder_(tokenizer.make_encoder()), keys_(keys) {}

  EncodedChunk operator()(const Chunk& chunk) {
    EncodedChunk out(keys_.size());
    for (size_t i = 0; i < chunk.pieces.size(); ++i) {
      const Piece& piece = chunk.pieces[i];
      const std::string_view text =
          std::string_view(chunk.text).substr(piece.begin, piece.end - piece.begin);
      if (chunk.json) {
        encode_line(chunk, chunk.first_line + static_cast<int64_t>(i), text, &out);
      } else {
        encoder_->encode(text, &out[0].tokens);
        out[0].ends.push_back({out[0].tokens.size(), piece.ends_document});
      }
    }
    return out;
  }

 private:
  void encode_line(const Chunk& chunk, int64_t line, std::string_view text, EncodedChunk* out) {
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const std::string location = fmt::format("{}:{}", chunk.source, line);
    const nlohmann::json object = parse_json_line(text, location);
    for (size_t k = 0; k < keys_.size(); ++k) {
      const std::string& value = text_of_key(object, keys_[k], location, "--json-keys");
      Tokens& tokens = (*out)[k];
      encoder_->encode(value, &tokens.tokens);
      tokens.ends.push_back({tokens.tokens.size(), true});
    }
  }

  std::unique_ptr<Tokenizer::Encoder> encoder_;
  const std::vector<std::string>& keys_;
};

// The tokens around each document.
struct Around {
  Around(const Tokenizer& tokenizer, bool append_eod)
      : before(tokenizer.before_text()), after(tokenizer.after_text()) {
    if (!append_eod) return;
    const int32_t eod = tokenizer.eod();
    if (after.empty() || after.back() != eod) after.push_back(eod);
  }
  std::vector<int32_t> before, after;
};

// A dataset being written for one key, and whether its open document has tokens.
struct Output {
  Output(const std::string& prefix, DType dtype) : writer(prefix, dtype) {}
  IndexedDatasetWriter writer;
  bool open = false;

  void write(const Tokens& tokens, const Around& around) {
    size_t begin = 0;
    for (const Tokens::End& end : tokens.ends) {
      if (!open && end.at > begin) append(around.before);
      writer.append(tokens.tokens.data() + begin, static_cast<int64_t>(end.at - begin));
      open = open || end.at > begin;
      begin = end.at;
      if (!end.ends_document) continue;
      if (open) append(around.after);
      writer.end_document();
      open = false;
    }
  }
  void append(const std::vector<int32_t>& tokens) {
    writer.append(tokens.data(), static_cast<int64_t>(tokens.size()));
  }
};

bool is_json(const PrepareOptions& options, const std::string& path) {
  return options.format == "jsonl" || (options.format == "auto" && is_json_name(path));
}

DocumentRule rule_of(const PrepareOptions& options, const std::string& path) {
  if (is_json(options, path)) return DocumentRule::json_lines;
  return options.split_on_blank_lines ? DocumentRule::blank_lines : DocumentRule::whole_file;
}

class Preparation {
 public:
  Preparation(const Tokenizer& tokenizer, const PrepareOptions& options)
      : tokenizer_(tokenizer),
        options_(options),
        around_(tokenizer, options.append_eod),
        total_(total_size()),
        bar_(total_) {
    for (const std::string& input : options.inputs) {
      if (options.keys.size() > 1 && !is_json(options, input)) {
        throw BadInput(
            fmt::format("--json-keys names {} keys, and '{}' is read as plain text, which has "
                        "none: --format jsonl "
                        "reads it as JSON lines",
                        options.keys.size(), input));
      }
      // Opens every file before any work is done. A pipe must be opened only once.
      if (input != "-" && !std::filesystem::is_fifo(input)) const TextInput probe(input);
    }
    for (const std::string& prefix : options.prefixes) {
      outputs_.push_back(std::make_unique<Output>(prefix, options.dtype));
    }
  }

  PrepareSummary run() {
    const auto begin = std::chrono::steady_clock::now();
    OrderedPool<Chunk, EncodedChunk> pool(
        options_.workers,
        [this] {
          auto encoder = std::make_shared<ChunkEncoder>(tokenizer_, options_.keys);
          return [encoder](Chunk&& chunk) { return (*encoder)(chunk); };
        },
        [this](EncodedChunk&& encoded) { receive(encoded); });
    DocumentSplitter splitter([this](std::string_view text) { return tokenizer_.safe_cut(text); },
                              [&](Chunk&& chunk) { pool.push(std::move(chunk)); });
    for (const std::string& input : options_.inputs) read_input(input, &splitter);
    pool.drain();
    finish();
    summary_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return summary_;
  }

 private:
  int64_t total_size() const {
    int64_t total = 0;
    for (const std::string& input : options_.inputs) {
      const int64_t size = input_size(input);
      if (size == 0) return 0;
      total += size;
    }
    return total;
  }

  void read_input(const std::string& path, DocumentSplitter* splitter) {
    TextInput input(path);
    const DocumentRule rule = rule_of(options_, path);
    const bool clean = tokenizer_.utf8() || rule == DocumentRule::json_lines;
    splitter->start(input.name(), rule);
    Utf8Cleaner cleaner;
    std::string block;
    std::string text;
    while (input.read(kBlock, &block)) {
      summary_.input_bytes += static_cast<int64_t>(block.size());
      if (clean) {
        text.clear();
        cleaner.append(block, &text);
      }
      splitter->append(clean ? text : block);
      bar_.update(done_ + input.position(), outputs_[0]->writer.documents(),
                  outputs_[0]->writer.tokens());
    }
    text.clear();
    cleaner.finish(&text);
    splitter->append(text);
    splitter->finish();
    done_ += input.position();
    summary_.replaced += cleaner.replacements();
  }

  void receive(const EncodedChunk& encoded) {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      outputs_[k]->write(encoded[k], around_);
    }
  }

  void finish() {
    for (const auto& output : outputs_) {
      summary_.documents += output->writer.documents();
      summary_.tokens += output->writer.tokens();
    }
    if (summary_.tokens == 0) {
      throw BadInput("the input holds no text at all, so no dataset was written");
    }
    for (const auto& output : outputs_) {
      output->writer.finish();
      summary_.output_bytes += output->writer.bytes();
    }
  }

  const Tokenizer& tokenizer_;
  const PrepareOptions& options_;
  const Around around_;
  int64_t total_;
  ProgressBar bar_;
  int64_t done_ = 0;
  std::vector<std::unique_ptr<Output>> outputs_;
  PrepareSummary summary_;
};

}  // namespace

PrepareSummary prepare(const Tokenizer& tokenizer, const PrepareOptions& options) {
  if (options.prefixes.size() != options.keys.size() || options.keys.empty() ||
      options.workers < 1) {
    throw std::invalid_argument("prepare: one prefix per key and at least one worker are needed");
  }
  return Preparation(tokenizer, options).run();
}

}  // namespace tally::train
