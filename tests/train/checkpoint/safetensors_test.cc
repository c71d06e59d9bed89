// The safetensors format: golden bytes, and every fault that the format forbids.
#include "src/checkpoint/safetensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

TensorSource source(const std::string& name, DType dtype, std::vector<int64_t> shape,
                    const std::string& bytes) {
  return {name, dtype, std::move(shape),
          [bytes](char* out) { std::copy(bytes.begin(), bytes.end(), out); }};
}

std::string file_of(const std::string& header, const std::string& buffer) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + buffer;
}

}  // namespace

TEST_CASE(
    "a file is laid out as the reference does it: wide types first, then names, padded to 8") {
  const TempDir dir;
  write_safetensors(dir / "a",
                    {source("b", DType::u8, {3}, "abc"), source("z", DType::f32, {1}, "zzzz"),
                     source("a", DType::f32, {0, 2}, ""), source("h", DType::bf16, {1, 1}, "hh")});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[0,2],"data_offsets":[0,0]},)"
      R"("z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("h":{"dtype":"BF16","shape":[1,1],"data_offsets":[4,6]},)"
      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[6,9]}})";
  std::string padded = header;
  padded.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(dir.read("a") == file_of(padded, "zzzzhhabc"));

  const SafetensorsFile file(dir / "a");
  CHECK(file.metadata().at("format") == "pt");
  REQUIRE(file.tensors().size() == 4);
  const StoredTensor& b = file.tensors().at("b");
  CHECK(b.dtype == "U8");
  CHECK(b.shape == std::vector<int64_t>{3});
  CHECK(std::string(b.data, b.bytes) == "abc");
}

TEST_CASE("a writer that fails leaves nothing") {
  const TempDir dir;
  TensorSource bad = source("a", DType::f32, {1}, "");
  bad.fill = [](char*) { throw std::runtime_error("the device is gone"); };
  CHECK(error_of([&] { write_safetensors(dir / "a", {bad}); }) == "the device is gone");
  CHECK(dir.names().empty());
  CHECK(error_of([&] { write_safetensors(dir / "no/such", {}); }).find("No such file") !=
        std::string::npos);
}

TEST_CASE("what the format forbids is refused with one sentence that names the file") {
  const TempDir dir;
  const auto fault = [&](const std::string& bytes) {
    dir.write("f", bytes);
    return error_of([&] { const SafetensorsFile file(dir / "f"); });
  };
  const auto says = [&](const std::string& header, const std::string& buffer,
                        const std::string& part) {
    const std::string error = fault(file_of(header, buffer));
    CHECK_MESSAGE(error.find(part) != std::string::npos, error);
    CHECK(error.find("/f' is not a valid safetensors file: ") != std::string::npos);
  };
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(fault(file_of(good, "12345678")).empty());
  CHECK(fault(file_of(good + "   ", "12345678")).empty());
  CHECK(fault(file_of("{}", "")).empty());
  const std::string whole = file_of(good, "12345678");
  for (size_t cut = 0; cut < whole.size(); ++cut) CHECK(!fault(whole.substr(0, cut)).empty());

  says(good, "123456789", "bytes at its end that belong to no tensor");
  says(" " + good, "12345678", "does not begin with {");
  says("{\"a\":", "", "its header is not valid JSON");
  says("{\"\xFF\":1}", "", "its header is not valid JSON");
  says(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      "12345678", "\"a\" appears twice");
  says(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234",
       "\"dtype\" appears twice");
  says(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234",
       "it has 4 bytes, and its shape and type need 8");
  says(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "1234",
       "it lies at bytes 4 to 0 of 4");
  says(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234",
       "the file is cut short");
  says(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", "1234",
       "larger than any memory");
  says(R"({"a":{"dtype":"F32","shape":[9223372036854775809],"data_offsets":[0,4]}})", "1234",
       "larger than any memory");
  says(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234", "not a whole number");
  says(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", "1234",
       "its type F99 is not known");
  says(R"({"a":{"dtype":"F32","shape":[1]}})", "1234", "needs dtype, shape and two data_offsets");
  says(R"({"a":7})", "", "needs dtype, shape and two data_offsets");
  says(R"({"__metadata__":{"a":1}})", "", "__metadata__ holds more than texts");
  const char* two =
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[%d,%d]}})";
  char header[200];
  std::snprintf(header, sizeof header, two, 1, 3);
  says(header, "123", "overlap or leave gaps");
  std::snprintf(header, sizeof header, two, 3, 5);
  says(header, "12345", "overlap or leave gaps");
  std::string long_header = whole;
  const uint64_t length = 100'000'001;
  std::memcpy(long_header.data(), &length, 8);
  CHECK(fault(long_header).find("100000001 bytes, and 100000000 are allowed") != std::string::npos);
}

TEST_CASE("shards: the index says where each tensor lies") {
  const TempDir dir;
  write_safetensors(dir / "m-1.safetensors", {source("a", DType::u8, {1}, "a")});
  write_safetensors(dir / "m-2.safetensors",
                    {source("b", DType::u8, {1}, "b"), source("c", DType::u8, {1}, "c")});
  const std::string index = "model.safetensors.index.json";
  dir.write(
      index,
      R"({"metadata":{"total_size":3},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors","c":"m-2.safetensors"}})");
  for (const std::string& path : {dir / "", dir / index}) {
    const WeightFiles files(path);
    REQUIRE(files.tensors().size() == 3);
    CHECK(*files.tensors().at("c")->data == 'c');
  }
  const auto fault = [&](const std::string& text) {
    dir.write(index, text);
    return error_of([&] { const WeightFiles files(dir / ""); });
  };
  CHECK(fault(R"({"weight_map":{"a":"m-2.safetensors"}})")
            .find("m-2.safetensors' holds 'a', and it does not") != std::string::npos);
  CHECK(fault(R"({"weight_map":{"a":"../x"}})").find("a file in the same folder is expected") !=
        std::string::npos);
  CHECK(
      fault(R"({"weight_map":{"a":"m-3.safetensors"}})").find("m-3.safetensors' cannot be read") !=
      std::string::npos);
  CHECK(fault("{}").find("is not an index of safetensors shards") != std::string::npos);
  const TempDir empty;
  CHECK(error_of([&] {
          const WeightFiles files(empty / "");
        }).find("has neither model.safetensors nor") != std::string::npos);
  empty.write("pytorch_model.bin", "");
  CHECK(error_of([&] { const WeightFiles files(empty / ""); }).find("only pytorch_model.bin") !=
        std::string::npos);
  CHECK(error_of([&] {
          const WeightFiles files(empty / "none");
        }).find("' does not exist, and weights are") != std::string::npos);
}
