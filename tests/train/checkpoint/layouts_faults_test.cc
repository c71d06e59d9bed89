// Checkpoints written by several processes: damage, ranks that cannot write, a kill at any instant.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "src/checkpoint/save_folder.h"
#include "tests/train/checkpoint/layouts.h"
#include "tests/train/data/temp_dir.h"

using namespace layouts;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

// The process kills itself at this call that changes a file; 0: never.
std::atomic<int> deadly_call{0};
void count_call() {
  if (deadly_call > 0 && --deadly_call == 0) kill(getpid(), SIGKILL);
}

}  // namespace

// In place of the C library's.
extern "C" {
int fsync(int fd) {
  count_call();
  return static_cast<int>(syscall(SYS_fsync, fd));
}
int rename(const char* from, const char* to) {
  count_call();
  return static_cast<int>(syscall(SYS_rename, from, to));
}
ssize_t write(int fd, const void* data, size_t bytes) {
  count_call();
  return syscall(SYS_write, fd, data, bytes);
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  count_call();
  return syscall(SYS_pwrite64, fd, data, bytes, at);
}
}

namespace {

constexpr uint64_t good = 7, next = 8;
const Layout layout{2, 2, 2, Zero::buckets, 14};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void save_good(const std::string& root, int64_t iteration = 5) {
  Ranks ranks(layout, DType::bf16, good);
  for (const std::string& error : ranks.save(root, state_of(iteration))) REQUIRE(error == "");
}

// Whether the last good checkpoint is whole, and of which training it is.
uint64_t loaded(const std::string& root) {
  Part part({1, 1, 1, Zero::none, 11}, 0, DType::bf16);
  REQUIRE(load_checkpoint(root, part.config, part.state(), *part.stream).has_value());
  for (const uint64_t training : {good, next})
    if (part.actual() == part.expected(training, 14)) return training;
  return 0;
}

// What the check before a run and loading say; loading changes nothing.
struct Faults {
  std::string check, load;
};
Faults faults_of(const std::string& root) {
  Part part({1, 1, 1, Zero::none, 11}, 0, DType::bf16);
  part.set(part.expected(3));
  Faults faults;
  const std::vector<Parameter>& all = part.table.all();
  faults.check = error_of([&] {
    check_checkpoint(root + "/iter_0000005", part.config, all, DType::f32, OptimizerKind::adam);
  });
  faults.load = error_of([&] { load_checkpoint(root, part.config, part.state(), *part.stream); });
  if (!faults.load.empty()) CHECK((part.actual() == part.expected(3)));
  return faults;
}

// A disk that becomes full at the n-th copy.
class FullDisk : public Stream {
 public:
  explicit FullDisk(int copies) : left_(copies) {}
  Device device() const override { return {}; }
  void* native() const override { return nullptr; }
  void synchronize() override {}
  void copy(void* to, const void* from, size_t bytes) override {
    if (--left_ == 0) throw std::runtime_error("'part' cannot be written: No space left on device");
    std::memcpy(to, from, bytes);
  }
  void fill_zero(void* data, size_t bytes) override { std::memset(data, 0, bytes); }
  void* allocate(size_t, const char*) override { return nullptr; }
  void release(void*) override {}
  int64_t allocations() const override { return 0; }
  size_t bytes_allocated() const override { return 0; }
  size_t bytes_peak() const override { return 0; }

 private:
  int left_;
};

}  // namespace

TEST_CASE("parts that are missing or damaged are found and named, and nothing is changed") {
  const TempDir dir;
  save_good(dir / "c");
  CHECK(faults_of(dir / "c").check.empty());
  CHECK(loaded(dir / "c") == good);
  const std::string name = "c/iter_0000005/optimizer-00003-of-00008.safetensors";
  const std::string part = dir.read(name);
  fs::remove(dir / name);
  Faults faults = faults_of(dir / "c");
  CHECK(contains(faults.check, "'" + dir / name + "' cannot be read: No such file or directory"));
  CHECK(contains(faults.load, "'" + dir / name + "' cannot be read"));

  dir.write(name, part.substr(0, part.size() - 4));
  faults = faults_of(dir / "c");
  CHECK(contains(faults.check, "'" + dir / name + "' has "));
  CHECK(contains(faults.check, " were saved: the file is cut short or damaged"));
  CHECK(contains(faults.load, "'" + dir / name + "' is not a valid safetensors file"));

  std::string other = part;
  other.replace(other.find("exp_avg_sq."), 11, "exp_avg_xx.");
  dir.write(name, other);
  faults = faults_of(dir / "c");
  CHECK(contains(faults.load, "'" + dir / name + "' does not fit this run: 'exp_avg_sq."));
  CHECK(contains(faults.load, "' is missing"));

  dir.write(name, part);
  CHECK(faults_of(dir / "c").load.empty());
}

TEST_CASE("a manifest that does not have everything is refused, and names itself") {
  const TempDir dir;
  save_good(dir / "c");
  const std::string name = "c/iter_0000005/manifest.json", text = dir.read(name);
  const std::string ours = "'" + dir / name + "' ";
  const std::string state = "c/iter_0000005/state.json";
  Json counters = Json::parse(dir.read(state));
  counters.erase("checksums");
  dir.write(state, counters.dump());
  // As version 0.2.0 wrote it, without a checksum of its own.
  const auto fault = [&](const std::function<void(Json*)>& change) {
    Json json = Json::parse(text);
    json["format"] = 1;
    json.erase("checksum");
    change(&json);
    dir.write(name, json.dump());
    const Faults faults = faults_of(dir / "c");
    CHECK(faults.check == faults.load);
    CHECK(contains(faults.check, ours));
    return faults.check;
  };
  const char* rows = "h.1.attn.c_attn.weight";
  const auto of = [](Json* j, const char* parameter) -> Json& {
    return (*j)["parameters"][parameter];
  };
  CHECK(contains(fault([&](Json* j) { of(j, rows)["pieces"].erase(0); }),
                 "of 2 of 'h.1.attn.c_attn.weight' is missing from element"));
  CHECK(contains(fault([&](Json* j) {
                   Json& pieces = of(j, rows)["pieces"];
                   pieces.push_back(pieces[0]);
                 }),
                 "is stored twice from element"));
  CHECK(contains(fault([&](Json* j) { of(j, "ln_f.bias")["pieces"][0][3] = 7; }),
                 "the state of 'ln_f.bias' is missing from element 7 on"));
  CHECK(contains(fault([&](Json* j) { (*j)["parameters"].erase("ln_f.bias"); }),
                 "'master.ln_f.bias' is missing"));
  CHECK(contains(fault([&](Json* j) { of(j, "x") = of(j, "ln_f.bias"); }),
                 "it holds 29 parameters, and 28 are needed"));
  CHECK(contains(fault([&](Json* j) {
                   of(j, "wpe.weight")["shape"] = {8, 6};
                 }),
                 "'master.wpe.weight' is F32 [8, 6], and F32 [6, 8] is needed"));
  // The vocabulary's rows may be more or fewer, but not fewer than there are words.
  CHECK(contains(fault([&](Json* j) {
                   Json& words = of(j, "wte.weight");
                   words["shape"] = {10, 8};
                   for (Json& piece : words["pieces"]) piece[3] = std::min(piece[3].get<int>(), 40);
                 }),
                 "'master.wte.weight' is F32 [10, 8], and F32 [11, 8] is needed"));
  CHECK(contains(fault([&](Json* j) { (*j)["dtype"] = "F64"; }), "is F64 ["));
  for (const auto& entry : {std::pair<std::string, Json>{"dimension", 2},
                            {"shards", 0},
                            {"shards", 5},
                            {"sections", {8, 8, 7}},
                            {"sections", {30, -6}},
                            {"shape", {24, 0}},
                            {"shape", Json()},
                            {"pieces", {{99, 0, 0, 1}}},
                            {"pieces", {{0, 2, 0, 1}}},
                            {"pieces", {{0, 0, 5, 5}}},
                            {"pieces", {{0, 0, 0, 1000}}},
                            {"pieces", {{0, 0, 0}}}}) {
    CAPTURE(entry.first);
    CHECK(contains(fault([&](Json* j) { of(j, rows)[entry.first] = entry.second; }),
                   ours + "is damaged: "));
  }
  CHECK(contains(fault([&](Json* j) { (*j)["files"][0]["name"] = "../x"; }),
                 "is damaged: it names the file '../x'"));
  CHECK(contains(fault([&](Json* j) { (*j)["format"] = 3; }), "has format 3 of another version"));
  CHECK(contains(fault([&](Json* j) { (*j)["format"] = 2; }), "its checksum is missing"));
  dir.write(name, text.substr(0, text.size() / 2));
  CHECK(contains(faults_of(dir / "c").check, ours + "is damaged: "));
  dir.write(name, "");
  CHECK(contains(faults_of(dir / "c").check, ours + "is damaged: "));
}

TEST_CASE("a rank that cannot write makes the save fail on all ranks with one sentence") {
  const TempDir dir;
  save_good(dir / "c");
  Ranks ranks(layout, DType::bf16, next);
  const int size = layout.shape().size();
  for (int bad = 0; bad < size; ++bad) {
    CAPTURE(bad);
    const auto errors = ranks.together([&](int rank, Part& part, const SaveGroup& group) {
      FullDisk full(rank == bad ? 1 : 0);
      save_checkpoint(dir / "c", state_of(6), part.config, part.state(), full, {}, group);
    });
    for (const std::string& error : errors)
      CHECK(error ==
            "rank " + std::to_string(bad) + ": 'part' cannot be written: No space left on device");
    CHECK(TempDir::read_path(dir / "c/latest_checkpointed_iteration.txt") == "5\n");
    int entries = 0;
    for (const auto& entry : fs::directory_iterator(dir / "c")) entries += entry.exists();
    CHECK(entries == 2);
  }
  CHECK(loaded(dir / "c") == good);
  // Rank 0 after all have written.
  SideFiles side;
  side.files["none/x"] = "";
  for (const std::string& error : ranks.together([&](int, Part&part, const SaveGroup&group) {
         save_checkpoint(dir / "c", state_of(6), part.config, part.state(), *part.stream, side,
                         group);
       })) {
    CHECK(contains(error, "rank 0: '"));
    CHECK(contains(error, "/none/x' cannot be written: No such file or directory"));
  }
  CHECK(loaded(dir / "c") == good);
  // The next save succeeds.
  for (const std::string& error : ranks.save(dir / "c", state_of(6))) CHECK(error == "");
  CHECK(loaded(dir / "c") == next);
}

TEST_CASE("hosts that do not share the folder, and a part that is lost before the checkpoint is") {
  const TempDir dir;
  Ranks ranks(layout, DType::bf16, next);
  const auto unshared = ranks.together([&](int rank, Part& part, const SaveGroup& group) {
    save_checkpoint(rank == 3 ? dir / "elsewhere" : dir / "c", state_of(6), part.config,
                    part.state(), *part.stream, {}, group);
  });
  for (const std::string& error : unshared) {
    CHECK(contains(error, "rank 3: '" + dir / "elsewhere/.iter_0000006."));
    CHECK(contains(error,
                   "', which rank 0 has made, does not exist here: give --save a folder "
                   "that all hosts share"));
  }
  const auto lost = ranks.together([&](int rank, Part& part, SaveGroup group) {
    int calls = 0;
    const auto exchange = group.exchange;
    group.exchange = [&, exchange](const std::string& mine) {
      const auto all = exchange(mine);
      if (rank == 0 && ++calls == 2)
        for (const auto& folder : fs::directory_iterator(dir / "c"))
          fs::remove(folder.path() / "optimizer-00002-of-00008.safetensors");
      return all;
    };
    save_checkpoint(dir / "c", state_of(6), part.config, part.state(), *part.stream, {}, group);
  });
  for (const std::string& error : lost)
    CHECK(contains(error,
                   "optimizer-00002-of-00008.safetensors' is missing: give --save a folder "
                   "that all hosts share"));
  CHECK(fs::is_empty(dir / "c"));
}

// Saves in a process that kills itself at a call; whether it was done before that.
bool saved(Ranks* ranks, const std::string& root, int64_t iteration, int call) {
  const pid_t child = fork();
  if (child == 0) {
    deadly_call = call;
    const auto errors = ranks->save(root, state_of(iteration));
    deadly_call = 0;
    _exit(errors.front().empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) CHECK(WEXITSTATUS(status) == 0);
  return WIFEXITED(status);
}

int entries_of(const std::string& folder) {
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(folder)) entries += entry.exists();
  return entries;
}

TEST_CASE("a save of several ranks that is killed at any instant leaves the last good one") {
  const TempDir dir;
  save_good(dir / "c");
  Ranks ranks(layout, DType::bf16, next);
  int call = 1, killed = 0;
  for (bool done = false; !done; ++killed, call += call < 8 ? 1 : 11) {
    CAPTURE(call);
    done = saved(&ranks, dir / "c", 6, call);
    const std::string newest = dir.read("c/latest_checkpointed_iteration.txt");
    CHECK((newest == "6\n" || (newest == "5\n" && !done)));
    CHECK(loaded(dir / "c") == (newest == "6\n" ? next : good));
  }
  CHECK(killed > 20);
  { const SaveFolder folder(dir / "c"); }
  CHECK(entries_of(dir / "c") == 3);

  // Over a checkpoint of the same iteration: the last calls, which give the files their names.
  for (int last = call - 40; last < call; ++last) {
    CAPTURE(last);
    const TempDir same;
    save_good(same / "c");
    const bool done = saved(&ranks, same / "c", 5, last);
    const uint64_t training = loaded(same / "c");
    CHECK((training == next || (training == good && !done)));
    { const SaveFolder folder(same / "c"); }
    CHECK(entries_of(same / "c") >= 2);
  }
}
