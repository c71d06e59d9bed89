// The indexed dataset: golden bytes written by hand from the format, faults, long datasets.
#include <doctest/doctest.h>

#include <numeric>

#include "src/data/tokens/dataset.h"
#include "src/data/tokens/indexed_writer.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;
using Tokens = std::vector<int32_t>;

namespace {

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); ++i) {
    if (hex[i] == ' ') continue;
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    ++i;
  }
  return bytes;
}

void write_documents(const std::string& prefix, DType dtype, const std::vector<Tokens>& documents) {
  IndexedDatasetWriter writer(prefix, dtype);
  for (const Tokens& tokens : documents) {
    writer.append(tokens.data(), static_cast<int64_t>(tokens.size()));
    writer.end_document();
  }
  writer.finish();
}

// Two documents, [1, 2, 3] and [50256], as u16.
const char* kIndex =
    "4d 4d 49 44 49 44 58 00 00"                        // MMIDIDX\0\0
    "01 00 00 00 00 00 00 00  08"                       // version 1, u16
    "02 00 00 00 00 00 00 00"                           // two sequences
    "03 00 00 00 00 00 00 00"                           // three entries of the document index
    "03 00 00 00  01 00 00 00"                          // lengths
    "00 00 00 00 00 00 00 00  06 00 00 00 00 00 00 00"  // byte offsets
    "00 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00";
const char* kTokens = "01 00 02 00 03 00 50 c4";

std::string squeezed(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

}  // namespace

TEST_CASE("the files are Megatron's byte for byte") {
  const TempDir dir;
  write_documents(dir / "a", DType::u16, {{1, 2, 3}, {}, {50256}});
  CHECK(dir.read("a.idx") == bytes_of_hex(squeezed(kIndex)));
  CHECK(dir.read("a.bin") == bytes_of_hex(squeezed(kTokens)));
  CHECK(dir.names() == "a.bin a.idx ");
  write_documents(dir / "b", DType::i32, {{70000}});
  CHECK(dir.read("b.bin") == bytes_of_hex("70110100"));
  CHECK(dir.read("b.idx")[17] == 4);
}

TEST_CASE("what was written is read, whatever the size") {
  const TempDir dir;
  std::vector<Tokens> documents;
  for (int32_t i = 0; i < 70000; ++i)
    documents.push_back(Tokens(static_cast<size_t>(i % 3 + 1), i % 60000));
  documents.emplace_back(300000);
  std::iota(documents.back().begin(), documents.back().end(), 0);
  for (int32_t& token : documents.back()) token %= 65536;
  write_documents(dir / "sub/deep/a", DType::u16, documents);
  const IndexedDataset dataset(dir / "sub/deep/a");
  CHECK(dataset.sequences() == 70001);
  CHECK(dataset.documents() == 70001);
  for (int64_t i : {0, 1, 2, 32767, 32768, 69999, 70000}) {
    Tokens got(static_cast<size_t>(dataset.length(i)));
    dataset.read(i, 0, dataset.length(i), got.data());
    CHECK(got == documents[static_cast<size_t>(i)]);
  }
  int32_t two[2];
  dataset.read(70000, 65534, 2, two);
  CHECK(two[0] == 65534);
  CHECK(two[1] == 65535);
  CHECK_THROWS_AS(dataset.read(70000, 299999, 2, two), std::out_of_range);
  CHECK_THROWS_AS(dataset.length(70001), std::out_of_range);
}

TEST_CASE("types: u16 below 65500 tokens; what does not fit is refused") {
  CHECK(token_type(65499) == DType::u16);
  CHECK(token_type(65500) == DType::i32);
  const TempDir dir;
  CHECK_THROWS_AS(write_documents(dir / "a", DType::u16, {{65536}}), std::invalid_argument);
  CHECK_THROWS_AS(write_documents(dir / "a", DType::u16, {{-1}}), std::invalid_argument);
  CHECK(dir.names().empty());  // nothing is left of a writer that failed
}

TEST_CASE("other integer types and the modes of multimodal datasets are read") {
  const TempDir dir;
  std::string index = bytes_of_hex(squeezed(kIndex));
  index[17] = 1;  // u8
  index[50] = 3;  // the second sequence lies at byte 3
  dir.write("a.idx", index + std::string(2, '\0'));
  dir.write("a.bin", std::string("\x01\xFF\x03\x04", 4));
  const IndexedDataset dataset(dir / "a");
  int32_t out[3];
  dataset.read(0, 0, 3, out);
  CHECK(out[1] == 255);
  dataset.read(1, 0, 1, out);
  CHECK(out[0] == 4);
}

TEST_CASE("faults: one sentence that names the file") {
  const TempDir dir;
  const std::string index = bytes_of_hex(squeezed(kIndex));
  const std::string tokens = bytes_of_hex(squeezed(kTokens));
  const auto fault = [&](const std::string& idx, const std::string& bin) {
    dir.write("f.idx", idx);
    dir.write("f.bin", bin);
    return error_of([&] { const IndexedDataset dataset(dir / "f"); });
  };
  const auto says = [](const std::string& error, const std::string& part) {
    return error.find(part) != std::string::npos;
  };
  CHECK(fault(index, tokens).empty());
  for (size_t cut = 0; cut < index.size(); ++cut)
    CHECK(!fault(index.substr(0, cut), tokens).empty());
  for (size_t cut = 0; cut < tokens.size(); ++cut) {
    CHECK(says(fault(index, tokens.substr(0, cut)), "f.bin' is cut short"));
  }
  CHECK(says(fault("PK\3\4" + index, tokens), "does not begin with MMIDIDX"));
  std::string changed = index;
  changed[9] = 2;
  CHECK(says(fault(changed, tokens), "has version 2 of the format, and only 1 is known"));
  changed = index;
  changed[17] = 7;
  CHECK(says(fault(changed, tokens), "type 7 (f32)"));
  changed[17] = 99;
  CHECK(says(fault(changed, tokens), "type 99 (unknown)"));
  changed = index;
  changed[25] = '\x7f';  // the number of sequences becomes huge
  CHECK(says(fault(changed, tokens), "is not the size of an index"));
  changed = index;
  changed[37] = '\xff';  // a negative length
  CHECK(says(fault(changed, tokens), "is damaged: sequence 0"));
  changed = index;
  changed[index.size() - 8] = 9;
  CHECK(says(fault(changed, tokens), "is damaged: entry 2 of its document index is 9"));
  CHECK(says(error_of([&] { const IndexedDataset dataset(dir / "none"); }),
             "tally-train prepare makes one"));
}

TEST_CASE("a dataset that another process is writing is left alone") {
  const TempDir dir;
  IndexedDatasetWriter first(dir / "a", DType::u16);
  CHECK(error_of([&] {
          IndexedDatasetWriter second(dir / "a", DType::u16);
        }).find("is being written by another process") != std::string::npos);
  const int32_t token = 5;
  first.append(&token, 1);
  first.finish();
  CHECK(IndexedDataset(dir / "a").tokens() == 1);
}
