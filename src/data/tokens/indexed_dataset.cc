// Reads Megatron's indexed dataset (layout: indexed_writer.h).
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "src/data/text/mapped_file.h"
#include "src/data/tokens/dataset.h"

namespace tally::train {
namespace {

constexpr size_t kHeader = 9 + 8 + 1 + 8 + 8;

template <typename T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void widen(const char* from, int64_t count, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    // Type 2 of the format is a signed byte.
    const T value = load<T>(from + static_cast<size_t>(i) * sizeof(T));
    out[i] = static_cast<int32_t>(value);  // NOLINT(bugprone-signed-char-misuse)
  }
}

}  // namespace

struct IndexedDataset::Impl {
  struct TokenType {
    uint8_t code;
    size_t bytes;
    const char* name;
  };
  static constexpr TokenType kTypes[] = {{1, 1, "u8"},  {2, 1, "i8"},  {3, 2, "i16"},
                                         {4, 4, "i32"}, {5, 8, "i64"}, {6, 8, "f64"},
                                         {7, 4, "f32"}, {8, 2, "u16"}};

  explicit Impl(const std::string& prefix);
  [[noreturn]] void bad_index(const std::string& why) const {
    throw std::runtime_error(fmt::format(
        "'{}' {}: make the dataset again with tally-train prepare, or copy both files again",
        idx.path(), why));
  }
  void check_header();
  void check_sequences();
  int32_t length(int64_t sequence) const {
    return load<int32_t>(lengths + static_cast<size_t>(sequence) * sizeof(int32_t));
  }
  int64_t offset(int64_t sequence) const {
    return load<int64_t>(offsets + static_cast<size_t>(sequence) * sizeof(int64_t));
  }

  const char* address(int64_t sequence, int64_t first, int64_t count) const;
  void copy(const char* from, int64_t count, int32_t* out) const;

  MappedFile idx, bin;
  TokenType type{};
  int64_t sequences = 0, document_entries = 0, tokens = 0;
  const char* lengths = nullptr;
  const char* offsets = nullptr;
};

static std::string existing(const std::string& prefix, const char* suffix) {
  std::string path = prefix + suffix;
  if (!std::filesystem::exists(path)) {
    const std::filesystem::path named(prefix);
    const std::string ending = named.extension().string();
    if ((ending == ".bin" || ending == ".idx") && std::filesystem::exists(prefix)) {
      throw std::runtime_error(
          fmt::format("'{}' is one file of a dataset, which is named by their prefix: '{}'", prefix,
                      prefix.substr(0, prefix.size() - ending.size())));
    }
    throw std::runtime_error(fmt::format(
        "'{}' does not exist: a dataset is named by the prefix of its .bin and .idx files, and "
        "tally-train prepare makes one from text",
        path));
  }
  return path;
}

IndexedDataset::Impl::Impl(const std::string& prefix)
    : idx(existing(prefix, ".idx")), bin(existing(prefix, ".bin")) {
  idx.watch();
  bin.watch();
  check_header();
  check_sequences();
  idx.check();
}

void IndexedDataset::Impl::check_header() {
  const char* at = idx.data();
  if (idx.size() < 9 || std::memcmp(at, "MMIDIDX\0\0", 9) != 0) {
    bad_index("is not the index of a Megatron dataset (it does not begin with MMIDIDX)");
  }
  if (idx.size() < kHeader) {
    bad_index(
        fmt::format("is cut short: {} bytes, and the header alone has {}", idx.size(), kHeader));
  }
  const auto version = load<uint64_t>(at + 9);
  if (version != 1)
    bad_index(fmt::format("has version {} of the format, and only 1 is known", version));
  const auto code = load<uint8_t>(at + 17);
  for (const TokenType& known : kTypes) {
    if (known.code == code) type = known;
  }
  if (type.bytes == 0 || code == 6 || code == 7) {
    bad_index(
        fmt::format("says that its tokens have the type {} ({}), which is not an integer type",
                    code, type.bytes == 0 ? "unknown" : type.name));
  }
  const auto count = load<uint64_t>(at + 18);
  const auto entries = load<uint64_t>(at + 26);
  const uint64_t room = (idx.size() - kHeader) / 4;
  const bool fits = count <= room && entries <= room;
  const uint64_t needed = fits ? kHeader + count * 12 + entries * 8 : 0;
  // Multimodal datasets carry one more byte per sequence (its mode), which text does not need.
  if (!fits || (idx.size() != needed && idx.size() != needed + count)) {
    bad_index(
        fmt::format("has {} bytes, which is not the size of an index of {} sequences and {} "
                    "document entries",
                    idx.size(), count, entries));
  }
  sequences = static_cast<int64_t>(count);
  document_entries = static_cast<int64_t>(entries);
  lengths = at + kHeader;
  offsets = lengths + count * 4;
}

void IndexedDataset::Impl::check_sequences() {
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t first = offset(i);
    const int64_t bytes = length(i) * static_cast<int64_t>(type.bytes);
    if (length(i) < 0 || first < 0) {
      bad_index(
          fmt::format("is damaged: sequence {} has length {} at byte {}", i, length(i), first));
    }
    if (static_cast<uint64_t>(first) > bin.size() ||
        static_cast<uint64_t>(bytes) > bin.size() - static_cast<uint64_t>(first)) {
      throw std::runtime_error(
          fmt::format("'{}' is cut short: it has {} bytes, and sequence {} of its index ends at "
                      "byte {}: copy it "
                      "again, or make the dataset again with tally-train prepare",
                      bin.path(), bin.size(), i, first + bytes));
    }
    tokens += length(i);
  }
  const char* documents = offsets + static_cast<size_t>(sequences) * 8;
  int64_t last = 0;
  for (int64_t i = 0; i < document_entries; ++i) {
    const auto entry = load<int64_t>(documents + static_cast<size_t>(i) * 8);
    if (entry < last || entry > sequences || (i == 0 && entry != 0)) {
      bad_index(fmt::format("is damaged: entry {} of its document index is {}", i, entry));
    }
    last = entry;
  }
}

// The address of tokens of a sequence. The index was valid when it was opened, but the file may
// have been written to since.
const char* IndexedDataset::Impl::address(int64_t sequence, int64_t first, int64_t count) const {
  const auto bytes = static_cast<int64_t>(type.bytes);
  const int64_t begin = offset(sequence), size = static_cast<int64_t>(bin.size());
  if (begin < 0 || begin > size || (first + count) * bytes > size - begin)
    bad_index("was changed while it was read");
  return bin.data() + begin + first * bytes;
}

void IndexedDataset::Impl::copy(const char* from, int64_t count, int32_t* out) const {
  switch (type.code) {
    case 1:
      return widen<uint8_t>(from, count, out);
    case 2:
      return widen<int8_t>(from, count, out);
    case 3:
      return widen<int16_t>(from, count, out);
    case 4:
      return widen<int32_t>(from, count, out);
    case 5:
      return widen<int64_t>(from, count, out);
    default:
      return widen<uint16_t>(from, count, out);
  }
}

IndexedDataset::IndexedDataset(const std::string& prefix) : impl_(std::make_unique<Impl>(prefix)) {}
IndexedDataset::~IndexedDataset() = default;
int64_t IndexedDataset::sequences() const {
  return impl_->sequences;
}
int64_t IndexedDataset::documents() const {
  return impl_->document_entries > 0 ? impl_->document_entries - 1 : 0;
}
int64_t IndexedDataset::tokens() const {
  return impl_->tokens;
}

int64_t IndexedDataset::document_begin(int64_t document) const {
  if (document < 0 || document >= impl_->document_entries)
    throw std::out_of_range(
        fmt::format("document {} of a dataset of {} documents", document, documents()));
  const char* entries = impl_->offsets + static_cast<size_t>(impl_->sequences) * 8;
  return load<int64_t>(entries + static_cast<size_t>(document) * 8);
}

int64_t IndexedDataset::length(int64_t sequence) const {
  if (sequence < 0 || sequence >= impl_->sequences) {
    throw std::out_of_range(
        fmt::format("sequence {} of a dataset of {} sequences", sequence, impl_->sequences));
  }
  return impl_->length(sequence);
}

void IndexedDataset::read(int64_t sequence, int64_t offset, int64_t count, int32_t* out) const {
  const int64_t size = length(sequence);
  impl_->idx.check();  // before a wrong length is taken for a mistake of the caller
  if (offset < 0 || count < 0 || offset > size || count > size - offset) {
    throw std::out_of_range(
        fmt::format("tokens {} to {} of a sequence of {}", offset, offset + count, size));
  }
  impl_->copy(impl_->address(sequence, offset, count), count, out);
  impl_->idx.check();
  impl_->bin.check();
}

}  // namespace tally::train
