#include "src/data/commands/sentence_dataset.h"

#include <fmt/format.h>

#include <filesystem>

#include "src/data/commands/ordered_pool.h"
#include "src/data/commands/progress.h"
#include "src/data/text/document_splitter.h"
#include "src/data/text/json_lines.h"
#include "src/data/text/text_input.h"
#include "src/data/text/utf8.h"
#include "src/data/tokens/indexed_writer.h"

namespace tally::train {
namespace {

constexpr size_t kWriteBlock = size_t{1} << 18;

// The tokens of a chunk, and where its sentences and documents end.
struct Encoded {
  std::vector<int32_t> tokens;
  std::vector<size_t> sentence_ends;
  std::vector<size_t> document_ends;  // numbers of sentences
};

class SentenceEncoder {
 public:
  SentenceEncoder(const WordPieceTokenizer& tokenizer, const BertPrepareOptions& options)
      : encoder_(tokenizer.make_encoder()), splitter_(options.sentences), key_(options.key) {}

  Encoded operator()(const Chunk& chunk) {
    Encoded out;
    for (size_t i = 0; i < chunk.pieces.size(); ++i) {
      const Piece& piece = chunk.pieces[i];
      const std::string_view text =
          std::string_view(chunk.text).substr(piece.begin, piece.end - piece.begin);
      if (!chunk.json) {
        encode(text, &out);
      } else if (text.find_first_not_of(" \t\r") != std::string_view::npos) {
        const std::string location =
            fmt::format("{}:{}", chunk.source, chunk.first_line + static_cast<int64_t>(i));
        const nlohmann::json object = parse_json_line(text, location);
        encode(text_of_key(object, key_, location, "--json-keys"), &out);
      }
      if (piece.ends_document) out.document_ends.push_back(out.sentence_ends.size());
    }
    return out;
  }

 private:
  void encode(std::string_view text, Encoded* out) {
    splitter_.start(text);
    for (;;) {
      const std::string_view sentence = splitter_.next();
      if (sentence.empty()) return;
      const size_t before = out->tokens.size();
      encoder_->encode(sentence, &out->tokens);
      if (out->tokens.size() > before) out->sentence_ends.push_back(out->tokens.size());
    }
  }

  std::unique_ptr<Tokenizer::Encoder> encoder_;
  SentenceSplitter splitter_;
  const std::string& key_;
};

void write(const Encoded& encoded, IndexedDatasetWriter* writer, int64_t* sentences) {
  size_t begin = 0, done = 0;
  const auto write_until = [&](size_t sentence) {
    for (; done < sentence; ++done) {
      const size_t end = encoded.sentence_ends[done];
      writer->append(encoded.tokens.data() + begin, static_cast<int64_t>(end - begin));
      writer->end_sentence();
      ++*sentences;
      begin = end;
    }
  };
  for (const size_t end : encoded.document_ends) {
    write_until(end);
    writer->end_document();
  }
  write_until(encoded.sentence_ends.size());
}

// Lines are whole where a document is cut.
size_t line_cut(std::string_view text) {
  const size_t end = text.rfind('\n');
  return end == std::string_view::npos ? 0 : end;
}

}  // namespace

void write_sentences(const WordPieceTokenizer& tokenizer, const BertPrepareOptions& options,
                     const std::string& prefix, BertPrepareSummary* summary) {
  int64_t total = 0, done = 0;
  for (const std::string& input : options.inputs) {
    if (input != "-" && !std::filesystem::is_fifo(input)) const TextInput probe(input);
    total += input_size(input);
  }
  ProgressBar bar(total);
  IndexedDatasetWriter writer(prefix, token_type(tokenizer.vocabulary()));
  OrderedPool<Chunk, Encoded> pool(
      options.workers,
      [&] {
        auto encoder = std::make_shared<SentenceEncoder>(tokenizer, options);
        return [encoder](Chunk&& chunk) { return (*encoder)(chunk); };
      },
      [&](Encoded&& encoded) { write(encoded, &writer, &summary->sentences); });
  DocumentSplitter splitter(line_cut, [&](Chunk&& chunk) { pool.push(std::move(chunk)); });
  for (const std::string& path : options.inputs) {
    TextInput input(path);
    const bool json = options.format == "jsonl" || (options.format == "auto" && is_json_name(path));
    splitter.start(input.name(), json ? DocumentRule::json_lines : DocumentRule::blank_lines);
    Utf8Cleaner cleaner;
    std::string block, text;
    while (input.read(kWriteBlock, &block)) {
      summary->input_bytes += static_cast<int64_t>(block.size());
      text.clear();
      cleaner.append(block, &text);
      splitter.append(text);
      bar.update(done + input.position(), writer.documents(), writer.tokens());
    }
    text.clear();
    cleaner.finish(&text);
    splitter.append(text);
    splitter.finish();
    done += input.position();
    summary->replaced += cleaner.replacements();
  }
  pool.drain();
  summary->documents = writer.documents();
  summary->tokens = writer.tokens();
  if (summary->tokens == 0)
    throw BadInput("the input holds no text at all, so no dataset was written");
  writer.finish();
}

void DatasetSentences::append(int64_t document, int64_t sentence, std::vector<int32_t>* out) const {
  const int64_t sequence = dataset_->document_begin(document) + sentence;
  const int64_t length = dataset_->length(sequence);
  const size_t before = out->size();
  out->resize(before + static_cast<size_t>(length));
  dataset_->read(sequence, 0, length, out->data() + before);
}

}  // namespace tally::train
