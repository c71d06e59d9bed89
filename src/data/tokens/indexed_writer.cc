#include "src/data/tokens/indexed_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <vector>

namespace tally::train {
namespace {

constexpr int64_t kLongest = std::numeric_limits<int32_t>::max();

std::string with_parent(const std::string& prefix) {
  const std::filesystem::path path(prefix);
  if (prefix.empty() || path.filename().empty()) {
    throw std::runtime_error(
        fmt::format("the output '{}' is not a prefix: give DIRECTORY/NAME, and NAME.bin and "
                    "NAME.idx are written",
                    prefix));
  }
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      throw std::runtime_error(fmt::format("the directory '{}' cannot be made: {}",
                                           path.parent_path().string(), error.message()));
    }
  }
  return prefix;
}

// The file that a dataset's file becomes: a link stays.
std::string target_of(const std::string& path) {
  const Destination to = destination_of(path);
  if (to.replaced) return to.path;
  throw std::runtime_error(fmt::format(
      "'{}' is not a file, and a dataset is written to files: choose another output", path));
}

uint8_t type_code(DType dtype) {
  if (dtype == DType::u16) return 8;
  if (dtype == DType::i32) return 4;
  throw std::invalid_argument(fmt::format("an indexed dataset holds u16 or i32 tokens"));
}

}  // namespace

DType token_type(int64_t vocabulary) {
  return vocabulary < 65500 ? DType::u16 : DType::i32;
}

std::vector<std::string> IndexedDatasetWriter::suffixes() {
  return {".bin", ".idx", ".bin.tmp", ".idx.tmp", ".lengths.tmp", ".documents.tmp"};
}

IndexedDatasetWriter::IndexedDatasetWriter(const std::string& prefix, DType dtype)
    : bin_target_(target_of(with_parent(prefix) + ".bin")),
      idx_target_(target_of(prefix + ".idx")),
      dtype_(dtype),
      bin_(bin_target_ + ".tmp", true),
      idx_(idx_target_ + ".tmp", true),
      lengths_(prefix + ".lengths.tmp", true),
      document_ends_(prefix + ".documents.tmp", true) {
  type_code(dtype);
}

void IndexedDatasetWriter::append(const int32_t* tokens, int64_t count) {
  while (count > 0) {
    if (open_tokens_ == kLongest) end_sequence();
    const int64_t part = std::min({count, kLongest - open_tokens_, int64_t{1} << 16});
    if (dtype_ == DType::i32) {
      bin_.append(tokens, static_cast<size_t>(part) * sizeof(int32_t));
    } else {
      uint16_t narrow[1 << 10];
      for (int64_t done = 0; done < part;) {
        const int64_t some = std::min<int64_t>(part - done, 1 << 10);
        int32_t seen = 0;
        for (int64_t i = 0; i < some; ++i) {
          seen |= tokens[done + i];
          narrow[i] = static_cast<uint16_t>(tokens[done + i]);
        }
        if ((seen & ~0xFFFF) != 0) {
          throw std::invalid_argument("a token does not fit in 16 bits: choose --dtype i32");
        }
        bin_.append(narrow, static_cast<size_t>(some) * sizeof(uint16_t));
        done += some;
      }
    }
    open_tokens_ += part;
    tokens_ += part;
    tokens += part;
    count -= part;
  }
}

void IndexedDatasetWriter::end_sequence() {
  lengths_.append_value(static_cast<int32_t>(open_tokens_));
  ++sequences_;
  ++open_sequences_;
  open_tokens_ = 0;
}

void IndexedDatasetWriter::end_sentence() {
  if (open_tokens_ > 0) end_sequence();
}

void IndexedDatasetWriter::end_document() {
  end_sentence();
  if (open_sequences_ == 0) return;
  open_sequences_ = 0;
  document_ends_.append_value(sequences_);
  ++documents_;
}

void IndexedDatasetWriter::write_index() {
  idx_.append("MMIDIDX\0\0", 9);
  idx_.append_value(uint64_t{1});
  idx_.append_value(type_code(dtype_));
  idx_.append_value(static_cast<uint64_t>(sequences_));
  idx_.append_value(static_cast<uint64_t>(documents_ + 1));
  std::vector<int32_t> lengths(1 << 15);
  const auto each_part = [&](const auto& use) {
    lengths_.rewind_for_reading();
    while (const size_t got = lengths_.read(lengths.data(), lengths.size() * sizeof(int32_t))) {
      use(got / sizeof(int32_t));
    }
  };
  each_part([&](size_t count) { idx_.append(lengths.data(), count * sizeof(int32_t)); });
  int64_t offset = 0;
  each_part([&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      idx_.append_value(offset);
      offset += lengths[i] * static_cast<int64_t>(size_of(dtype_));
    }
  });
  idx_.append_value(int64_t{0});
  std::vector<char> block(1 << 17);
  document_ends_.rewind_for_reading();
  while (const size_t got = document_ends_.read(block.data(), block.size())) {
    idx_.append(block.data(), got);
  }
}

void IndexedDatasetWriter::finish() {
  end_document();
  write_index();
  bytes_ = bin_.size() + idx_.size();
  bin_.sync_and_keep();
  idx_.sync_and_keep();
  // A reader needs both files. Without the index there is no dataset, so the old index is removed
  // first and the new one comes last.
  unlink(idx_target_.c_str());
  rename_durably(bin_.path(), bin_target_);
  rename_durably(idx_.path(), idx_target_);
}

}  // namespace tally::train
