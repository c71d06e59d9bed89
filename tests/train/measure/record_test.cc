#include "src/measure/record.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/measure/build_info.h"
#include "src/measure/system_info.h"

using namespace tally::train;
using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

Record sample() {
  Record r;
  r.config.sequence = 1024;
  r.config.global_batch = 8;
  r.config.precision = Precision::bf16;
  r.config.command_line = {"tally-train", "--bf16"};
  r.device = {DeviceKind::cuda, 0};
  r.device_info.name = "NVIDIA H200";
  r.outcome = Outcome::completed;
  r.parameters = 7;
  r.first_iteration = 3;
  for (int i = 0; i < 3; ++i) {
    Step s;
    s.iteration = 4 + i;
    s.seconds = 0.5 - 0.1 * i;
    s.loss = 3 - i;
    r.steps.push_back(s);
  }
  r.intervals = {{5, 2, 0.45}, {6, 1, 0.35}};
  return r;
}

}  // namespace

TEST_CASE("numbers of which nothing was counted are null") {
  for (const bool encoder : {false, true}) {
    Record r = sample();
    r.steps.clear();
    r.intervals.clear();
    r.energy.emplace_back().not_available = "--no-energy";
    r.profile.emplace();
    if (encoder) r.config.model.set_kind("bert"), r.config.model.task = Task::pretraining;
    const json j = to_json(r);
    const json& results = j["results"];
    for (const char* rate :
         {"tokens_per_second", "tokens_per_second_median", "tokens_per_second_steady",
          "seconds_per_iteration", "seconds_per_iteration_median", "seconds_per_iteration_steady",
          "steady_from", "model_tflops_per_second", "model_flops_utilisation",
          "typed_flops_utilisation", "final_loss", "peak_device_bytes"})
      CHECK_MESSAGE(results[rate].is_null(), rate);
    for (const auto& [rate, work] : results["measured"].items()) {
      CHECK_MESSAGE(work["seconds"].is_null(), rate);
      CHECK(work["steps"] == 0);
    }
    if (encoder) CHECK(results["samples_per_second_steady"].is_null());
    CHECK(results["energy"]["gpus"][0]["seconds"].is_null());
    CHECK(results["energy"]["gpus"][0]["mean_watts"].is_null());
    CHECK(results["profile"]["mean_registers"].is_null());
    CHECK(results["profile"]["mean_shared_bytes"].is_null());
    CHECK(j["environment"]["busy_processors"].is_null());
    r.busy_processors = 0;
    CHECK(to_json(r)["environment"]["busy_processors"] == 0);
  }
}

TEST_CASE("a record holds what was measured") {
  const json j = to_json(sample());
  CHECK(j["schema"] == "tally-train-record/1");
  CHECK(j["outcome"] == "completed");
  CHECK(j["exit_code"] == 0);
  CHECK(j["results"]["iterations"] == 6);
  CHECK(j["results"]["tokens_per_second"] == doctest::Approx(8192 / 0.4));
  CHECK(j["results"]["tokens_per_second_median"] == doctest::Approx(8192 / 0.4));
  CHECK(j["results"]["steady_from"] == 5);
  CHECK(j["results"]["seconds_per_iteration_steady"] == doctest::Approx(0.35));
  CHECK(j["results"]["tokens_per_second_steady"] == doctest::Approx(8192 / 0.35));
  // The steps take 0.5, 0.4 and 0.3 s; the log lines have two of 0.45 s and one of 0.35 s.
  const json& measured = j["results"]["measured"];
  CHECK(measured["tokens_per_second"]["seconds"] == doctest::Approx(1.25));
  CHECK(measured["tokens_per_second"]["steps"] == 3);
  CHECK(measured["tokens_per_second_median"]["seconds"] == doctest::Approx(1.2));
  CHECK(measured["tokens_per_second_median"]["steps"] == 3);
  CHECK(measured["tokens_per_second_steady"]["seconds"] == doctest::Approx(0.7));
  CHECK(measured["tokens_per_second_steady"]["steps"] == 2);
  CHECK(j["results"]["final_loss"] == 1);
  CHECK(j["results"]["peak_tflops_per_second"] == 989.5);
  const double flops = j["results"]["model_flops_per_token"];
  CHECK(j["results"]["model_flops_utilisation"] == doctest::Approx(flops * 8192 / 0.4 / 989.5e12));
  CHECK(j["steps"]["loss"].size() == 3);
  CHECK(j["configuration"]["precision"] == "bf16");
  CHECK(j["environment"]["git_commit"] == build_info().commit);
  CHECK(j["command_line"][1] == "--bf16");
  CHECK(j["configuration"]["training"]["lr_warmup_samples"].dump() == "0");
}

TEST_CASE("no number is invented: unknown rates and losses that are not finite are null") {
  Record r = sample();
  r.device_info.name = "NVIDIA Unheard-of";
  r.steps.back().loss = std::nan("");
  const json j = to_json(r);
  CHECK(j["results"]["model_flops_utilisation"].is_null());
  CHECK(j["results"]["final_loss"].is_null());
  CHECK(j["steps"]["loss"][2].is_null());
}

TEST_CASE("outcomes and exit codes") {
  CHECK(exit_code(Outcome::completed) == 0);
  CHECK(exit_code(Outcome::out_of_memory) == 3);
  CHECK(exit_code(Outcome::time_limit) == 4);
  CHECK(exit_code(Outcome::signalled) == 4);
  CHECK(exit_code(Outcome::failed_check) == 5);
  CHECK(exit_code(Outcome::bad_input) == 2);
  CHECK(outcome_name(Outcome::bad_input) == std::string("error"));
  CHECK(exit_code(Outcome::error) == 1);
}

TEST_CASE("writing replaces the old record and leaves no other file") {
  const fs::path dir =
      fs::temp_directory_path() / ("tally_record_test-" + std::to_string(getpid()));
  fs::remove_all(dir);
  const std::string path = (dir / "deep" / "run.json").string();
  Record r = sample();
  r.config.data.paths = {"bytes \xff that are not UTF-8"};
  write_record(r, path);
  r.outcome = Outcome::signalled;
  write_record(r, path);
  std::ifstream in(path);
  CHECK(json::parse(in)["outcome"] == "signalled");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir / "deep")) ++files;
  CHECK(files == 1);
  fs::remove_all(dir);
}

TEST_CASE("a pipe or a device is written to, never replaced by a file") {
  const fs::path pipe = fs::temp_directory_path() / ("record-pipe-" + std::to_string(getpid()));
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int fd = open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  REQUIRE(fd >= 0);
  Record begun = sample();
  begun.outcome = Outcome::running;
  write_record(begun, pipe.string());  // a reader gets one record
  write_record(sample(), pipe.string());
  CHECK(fs::is_fifo(pipe));
  std::string text(1 << 16, '\0');
  const ssize_t got = read(fd, text.data(), text.size());
  CHECK(got > 0);
  REQUIRE(got > 0);
  CHECK(json::parse(text.substr(0, static_cast<size_t>(got)))["outcome"] != "running");
  close(fd);
  // Whoever has read the first record may be gone before the last one is written.
  CHECK_THROWS_WITH_AS(
      write_record(sample(), pipe.string()),
      doctest::Contains("the record cannot be written: no process reads this pipe"),
      std::runtime_error);
  fs::remove(pipe);
  CHECK_THROWS(write_record(sample(), fs::temp_directory_path().string()));
}

namespace {

// A folder in which a test makes its own links and devices.
struct Place {
  Place() : path(fs::temp_directory_path() / ("record-place-" + std::to_string(getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path / "other");
  }
  ~Place() { fs::remove_all(path); }
  std::string text(const char* name) const {
    std::ifstream in(path / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path path;
};

}  // namespace

TEST_CASE("a link stays, and the file that it leads to is replaced, or made") {
  const Place place;
  const fs::path link = place.path / "link";
  for (const fs::path& target : {fs::path("other/r.json"), place.path / "other/r.json"}) {
    fs::create_symlink(target, link);
    fs::create_symlink("link", place.path / "chain");
    for (const char* name : {"link", "chain"}) {
      write_record(sample(), (place.path / name).string());
      CHECK(fs::is_symlink(link));
      CHECK(fs::is_symlink(place.path / "chain"));
      CHECK(json::parse(place.text("other/r.json")).contains("outcome"));
      CHECK(std::distance(fs::directory_iterator(place.path / "other"), {}) == 1);
      std::ofstream(place.path / "other/r.json") << "";
    }
    fs::remove(link);
    fs::remove(place.path / "chain");
    fs::remove(place.path / "other/r.json");
  }
  CHECK(std::distance(fs::directory_iterator(place.path), {}) == 1);
}

TEST_CASE("a file that the process has open is written where the process has got to") {
  const Place place;
  const std::string file = (place.path / "out").string();
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  const std::string descriptor = "/proc/self/fd/" + std::to_string(fd);
  fs::create_symlink(descriptor, place.path / "stdout");
  for (const std::string& name :
       {descriptor, "/dev/fd/" + std::to_string(fd), (place.path / "stdout").string()}) {
    CAPTURE(name);
    REQUIRE(ftruncate(fd, 0) == 0);
    REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
    REQUIRE(write(fd, "before\n", 7) == 7);
    CHECK_NOTHROW(check_record_target(name));
    write_record(sample(), name);
    REQUIRE(write(fd, "after\n", 6) == 6);
    const std::string text = place.text("out");
    REQUIRE(text.size() > 13);
    CHECK(text.substr(0, 7) == "before\n");
    CHECK(text.substr(text.size() - 6) == "after\n");
    CHECK(json::parse(text.substr(7, text.size() - 13)).contains("outcome"));
    CHECK(fs::is_symlink(place.path / "stdout"));
  }
  close(fd);
  CHECK(std::distance(fs::directory_iterator(place.path), {}) == 3);
}

TEST_CASE("a character device stays one, behind a link, too") {
  const Place place;
  const std::string device = (place.path / "null").string();
  if (mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) {
    MESSAGE("not checked: devices cannot be made here");
    return;
  }
  fs::create_symlink("null", place.path / "link");
  const int fd = open(device.c_str(), O_WRONLY | O_CLOEXEC);
  const bool usable = fd >= 0;  // not on a file system without devices
  if (usable) close(fd);
  for (const char* name : {"null", "link"}) {
    if (usable) {
      CHECK_NOTHROW(write_record(sample(), (place.path / name).string()));
    } else {
      CHECK_THROWS(write_record(sample(), (place.path / name).string()));
    }
    CHECK(fs::is_character_file(device));
    CHECK(fs::is_symlink(place.path / "link"));
  }
}

TEST_CASE("a record that cannot be written names the file") {
  CHECK_THROWS_WITH_AS(
      write_record(sample(), "/proc/none/run.json"),
      "/proc/none/run.json: the record cannot be written: No such file or directory",
      std::runtime_error);
}

TEST_CASE("threads come from OMP_NUM_THREADS, then Slurm, then the processors of the process") {
  setenv("OMP_NUM_THREADS", "3,2", 1);
  setenv("SLURM_CPUS_PER_TASK", "5", 1);
  CHECK(default_threads() == 3);
  setenv("OMP_NUM_THREADS", "nonsense", 1);
  CHECK(default_threads() == 5);
  unsetenv("OMP_NUM_THREADS");
  unsetenv("SLURM_CPUS_PER_TASK");
  CHECK(default_threads() >= 1);
}

TEST_CASE("the host's NVIDIA GPUs are counted without CUDA") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("tally-gpus-" + std::to_string(getpid()));
  fs::create_directories(root / "dev");
  CHECK(nvidia_gpus_of_host(root.string() + "/") == 0);
  for (const char* name : {"nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm", "null"})
    std::ofstream(root / "dev" / name) << "";
  CHECK(nvidia_gpus_of_host(root.string() + "/") == 2);
  for (const char* name : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"})
    fs::create_directories(root / "proc/driver/nvidia/gpus" / name);
  CHECK(nvidia_gpus_of_host(root.string() + "/") == 3);
  fs::remove_all(root);
}

TEST_CASE("phases: mean, least and most of the steps after the warm-up, and a column for each") {
  Record r = sample();
  CHECK(to_json(r)["results"]["headline"] == true);
  r.config.time_phases = true;
  for (int k = 0; k < 3; ++k) r.phases.push_back({0, 0.1 + 0.01 * k, 0.2, 0.05 * k, 0.01});
  const json j = to_json(r);
  CHECK(j["results"]["headline"] == false);
  const json& forward = j["results"]["phases"]["forward"];  // of steps 5 and 6
  CHECK(forward["mean_seconds"] == doctest::Approx(0.115));
  CHECK(forward["min_seconds"] == doctest::Approx(0.11));
  CHECK(forward["max_seconds"] == doctest::Approx(0.12));
  CHECK(j["results"]["phases"]["gradient_reduction"]["mean_seconds"] == doctest::Approx(0.075));
  CHECK(j["steps"]["gradient_reduction_seconds"] == json({0.0, 0.05, 0.1}));
}

TEST_CASE("throughput between two iterations: their samples over their seconds") {
  Record r = sample();
  CHECK(!to_json(r)["results"].contains("throughput_window"));
  r.config.throughput_window = {4, 5};
  const json w = to_json(r)["results"]["throughput_window"];
  CHECK(w["seconds"] == doctest::Approx(0.9));
  CHECK(w["samples_per_second"] == doctest::Approx(16 / 0.9));
  CHECK(w["tokens_per_second"] == doctest::Approx(16 * 1024 / 0.9));
  for (const std::pair<int64_t, int64_t> missing : {std::pair{3, 5}, std::pair{5, 7}}) {
    r.config.throughput_window = missing;
    CHECK(!to_json(r)["results"].contains("throughput_window"));
  }
}
