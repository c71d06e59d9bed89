// A byte that changes in a checkpoint: none is loaded.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "src/checkpoint/safetensors.h"
#include "tests/train/checkpoint/layouts.h"
#include "tests/train/data/temp_dir.h"

using namespace layouts;
namespace fs = std::filesystem;

namespace {

// A run of `layout` that resumes, or that reads the weights alone, as `evaluate` does.
enum class Reader { resume, evaluate };

// What the command's processes say, one after the other: the first fault, and the numbers of all of
// them where there is none.
struct Loaded {
  std::string fault;
  std::vector<Part::Numbers> numbers;
};

Loaded read_by(const std::string& root, const Layout& layout, Reader reader) {
  Loaded loaded;
  const bool resumes = reader == Reader::resume;
  loaded.fault = error_of([&] {
    const std::optional<std::string> folder = latest_checkpoint(root);
    if (!folder) throw std::runtime_error("no checkpoint");
    for (int rank = 0; rank < layout.shape().size(); ++rank) {
      Part part(layout, rank, DType::bf16, resumes);
      if (resumes && rank == 0)
        check_checkpoint(*folder, part.config, *part.state().model, DType::f32,
                         OptimizerKind::adam);
      load_checkpoint(root, part.config, part.state(), *part.stream);
      loaded.numbers.push_back(part.actual());
    }
  });
  return loaded;
}

std::string fault_of(const std::string& root, const Layout& layout) {
  return read_by(root, layout, Reader::resume).fault;
}

std::vector<fs::path> files_below(const std::string& root) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Whether the command takes numbers from a file that is as it was saved. Both read all files but those
// of tensors; a part in which no element lies is read by none.
bool takes(Reader reader, const fs::path& file) {
  if (file.extension() != ".safetensors") return true;
  if (file.filename() == "model.safetensors") return reader == Reader::evaluate;
  return reader == Reader::resume && !SafetensorsFile(file).tensors().empty();
}

// Changes `count` bytes of the checkpoint, one at a time. Returns the changes that a command which
// reads the file did not notice, and those with which a command had other numbers.
std::vector<std::string> unnoticed(const std::string& root, const Layout& layout, int count) {
  std::mt19937 random(20261127);
  std::vector<std::string> passed;
  const std::vector<fs::path> files = files_below(root);
  const Loaded good[] = {read_by(root, layout, Reader::resume),
                         read_by(root, layout, Reader::evaluate)};
  for (int i = 0; i < count; ++i) {
    const fs::path& path = files[static_cast<size_t>(i) % files.size()];
    const std::string saved = TempDir::read_path(path);
    const bool taken[] = {takes(Reader::resume, path), takes(Reader::evaluate, path)};
    std::string bad = saved;
    const size_t at = random() % bad.size();
    const char before = bad[at];
    while (bad[at] == before) bad[at] = static_cast<char>(random());
    std::ofstream(path, std::ios::binary) << bad;
    for (const Reader reader : {Reader::resume, Reader::evaluate}) {
      const size_t which = reader == Reader::resume ? 0 : 1;
      const Loaded loaded = read_by(root, layout, reader);
      if (!loaded.fault.empty()) continue;
      if (!taken[which] && loaded.numbers == good[which].numbers) continue;
      passed.push_back((which == 0 ? "resume: " : "evaluate: ") + path.filename().string() +
                       " byte " + std::to_string(at) + " " + std::to_string(before) + " to " +
                       std::to_string(bad[at]));
    }
    std::ofstream(path, std::ios::binary) << saved;
  }
  return passed;
}

}  // namespace

TEST_CASE("no single byte changes unnoticed, in checkpoints of one, two and four parts") {
  const Layout one{1, 1, 1, Zero::none, 11}, two{2, 1, 1, Zero::none, 14},
      four{2, 1, 2, Zero::ranges, 14};
  SideFiles side;
  side.files = {{"vocab.json", "{\"a\": 0}\n"}, {"merges.txt", "#version: 0.2\n"}};
  for (const Layout& layout : {one, two, four}) {
    CAPTURE(name_of(layout));
    const TempDir dir;
    Ranks ranks(layout, DType::bf16, 7);
    for (const std::string& error : ranks.together([&](int, Part&part, const SaveGroup&group) {
           save_checkpoint(dir / "c", state_of(5), part.config, part.state(), *part.stream, side,
                           group);
         }))
      REQUIRE(error == "");
    for (const Reader reader : {Reader::resume, Reader::evaluate})
      REQUIRE(read_by(dir / "c", layout, reader).fault == "");
    // A line's end is no number.
    fs::resize_file(dir / "c/latest_checkpointed_iteration.txt", 1);
    for (const std::string& change : unnoticed(dir / "c", layout, 700)) CHECK(change == "");
    CHECK(fault_of(dir / "c", layout) == "");
    CHECK(fault_of(dir / "c", one) == "");
  }
}

TEST_CASE("a file that is missing, and a folder with another checkpoint's name") {
  const TempDir dir;
  const Layout layout{2, 1, 2, Zero::ranges, 14};
  Ranks ranks(layout, DType::bf16, 7);
  for (const std::string& error : ranks.save(dir / "c", state_of(5))) REQUIRE(error == "");
  for (const fs::path& file : files_below(dir / "c/iter_0000005")) {
    if (file.filename() == "manifest.json") continue;  // as version 0.2.0 saved, and noted
    CAPTURE(file.string());
    fs::rename(file, dir / "away");
    CHECK(fault_of(dir / "c", layout).find("'" + file.string() + "'") != std::string::npos);
    fs::rename(dir / "away", file);
  }
  fs::rename(dir / "c/iter_0000005", dir / "c/iter_0000007");
  dir.write("c/latest_checkpointed_iteration.txt", "7\n");
  CHECK(fault_of(dir / "c", layout)
            .find("state.json' is of iteration 5, and its folder's name is of iteration 7") !=
        std::string::npos);
  // Under a name of its own it is what it was.
  fs::rename(dir / "c/iter_0000007", dir / "good");
  CHECK(fault_of(dir / "good", layout) == "");
}
