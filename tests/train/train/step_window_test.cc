// --profile-start, --profile-stop and --profile-counters with profilers that make up what they saw.
#include "src/train/step/step_window.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/train/run/failures.h"
#include "src/train/run/summary.h"
#include "src/train/step/counter_window.h"
#include "src/train/step/profile_window.h"

using namespace tally::train;

namespace {

namespace fs = std::filesystem;

// Saw one kernel.
class FakeProfiler final : public DeviceProfiler {
 public:
  explicit FakeProfiler(std::string* calls) : calls_(calls) {}
  void start() override { *calls_ += "start "; }
  std::vector<DeviceActivity> stop(int64_t* lost) override {
    *calls_ += "stop ";
    *lost = 3;
    DeviceActivity a;
    a.name = "kernel";
    a.end = 10;
    a.grid = "1x1x1";
    return {a};
  }

 private:
  std::string* calls_;
};

// Counts a GEMM of 3000 ns and a norm of 1000 ns in each step; knows tensor cores and memory alone.
class FakeCounters final : public CounterProfiler {
 public:
  explicit FakeCounters(std::string* calls, size_t counted = 2)
      : calls_(calls), counted_(counted) {}
  std::string chip() const override { return "GX100"; }
  bool has_metric(const std::string& base) const override {
    return base == "gpu__time_duration" || base == "sm__pipe_tensor_cycles_active" ||
           base == "dram__throughput";
  }
  int select(const std::vector<std::string>& metrics) override {
    *calls_ += fmt::format("select {} ", metrics.size());
    return 1;
  }
  void start() override { *calls_ += "start "; }
  CounterReading stop() override {
    *calls_ += "stop ";
    CounterReading reading{{"gemm", "norm"}, {{3000, 80, 20}, {1000, 0, 60}}, 0};
    reading.values.resize(counted_);
    return reading;
  }

 private:
  std::string* calls_;
  size_t counted_;
};

struct Fixture {
  explicit Fixture(bool counters) {
    fs::remove_all(folder);
    config.profile_window = {4, 5};
    config.profile_dir = folder.string();
    config.profile_counters = counters;
    record.config = config;
    prepare();
  }
  ~Fixture() { fs::remove_all(folder); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void prepare() {
    prepare_profile_folder(folder.string(),
                           config.profile_counters ? counter_files() : profile_files(), notice);
  }
  std::unique_ptr<StepWindow> window(size_t counted = 2) {
    if (config.profile_counters)
      return std::make_unique<CounterWindow>(
          config, *stream, std::make_unique<FakeCounters>(&calls, counted), notice);
    return std::make_unique<ProfileWindow>(config, *stream, std::make_unique<FakeProfiler>(&calls));
  }
  // The steps FIRST to LAST of a run.
  void run(StepWindow& window, int64_t first, int64_t last) {
    for (int64_t iteration = first; iteration <= last; ++iteration) {
      window.before_step(iteration);
      calls += fmt::format("{} ", iteration);
      window.after_step(iteration);
    }
    static_cast<WindowFacts&>(record) = window.facts();
  }
  std::string text(const char* name) const {
    std::ostringstream out;
    out << std::ifstream(folder / name).rdbuf();
    return out.str();
  }

  const fs::path folder = fs::temp_directory_path() / fmt::format("tally_window_{}", getpid());
  Config config;
  Record record;
  std::unique_ptr<Stream> stream = make_stream({DeviceKind::cpu, 0});
  std::string calls, notices;
  std::function<void(const std::string&)> notice = [this](const std::string& text) {
    notices += text + "\n";
  };
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("--profile-start: the steps of the window are profiled, and the files are written") {
  Fixture f(false);
  f.run(*f.window(), 1, 6);
  CHECK(f.calls == "1 2 3 start 4 5 stop 6 ");
  REQUIRE(f.record.profile);
  CHECK(f.record.profile->lost == 3);
  CHECK(f.record.profile->profile.calls == 1);
  CHECK(f.record.profile->profile.seconds > 0);
  CHECK(contains(f.text("kernels.csv"), "\"kernel\",0,10,"));
  CHECK(contains(f.text("trace.json"), "rank 0, iterations 4 to 5"));
  // A run that is resumed within the window has no profile.
  f.record.profile.reset();
  f.run(*f.window(), 5, 6);
  CHECK(!f.record.profile);
}

TEST_CASE("--profile-counters: each step of the window is counted by itself") {
  Fixture f(true);
  f.run(*f.window(), 1, 6);
  CHECK(f.calls == "select 3 1 2 3 start 4 stop start 5 stop 6 ");
  CHECK(f.notices ==
        "--profile-counters: CUPTI has no counter on GX100 for fp16 (half precision), fma (single "
        "precision), xu (special functions), sm_active (SMs with work): left empty\n");
  CHECK(contains(f.text("counters.csv"), "\n4,0,\"gemm\",3000,80.000,,,,,20.000,\n"));
  CHECK(contains(f.text("counters.csv"), "\n5,3,\"norm\",1000,0.000,,,,,60.000,\n"));
  CHECK(contains(f.text("kernel_use.csv"), "\n\"gemm\",2,6000,0.750000,80.000,,,,,20.000,\n"));
  CHECK(contains(f.text("kernel_use.csv"), "\n\"[all kernels]\",4,8000,1.000000,60.000,"));
  const auto counters = to_json(f.record)["results"]["counters"];
  CHECK(counters["chip"] == "GX100");
  CHECK(counters["calls"] == 4);
  CHECK(counters["percent_of_peak"]["tensor"] == doctest::Approx(60));
  CHECK(counters["percent_of_peak"]["dram"] == doctest::Approx(30));
  CHECK(counters["percent_of_peak"]["fp16"].is_null());
  CHECK(counters["metrics"]["dram"] == "dram__throughput.avg.pct_of_peak_sustained_elapsed");
  CHECK(counters["kernels"][0]["name"] == "gemm");
  CHECK(contains(measurements_summary(f.record),
                 "counters of iterations 4 to 5: 4 kernels, 0.008 ms; percent of peak, weighted "
                 "with durations: tensor 60.0, dram 30.0; files in "));
}

TEST_CASE("--profile-counters: kernels that cannot be told apart end the run without files") {
  Fixture f(true);
  const auto window = f.window(1);
  CHECK(contains(message_of([&] { f.run(*window, 1, 6); }),
                 "iteration 4 launched 2 kernels, and CUPTI gave the counters of 1"));
  CHECK(fs::is_empty(f.folder));
  CHECK(!f.record.counters);
}

TEST_CASE("--profile-counters: a run whose first steps lie in the window is refused, or too late") {
  Fixture f(true);
  for (const int64_t first : {3, 4}) {
    const auto window = f.window();
    const std::string message = message_of([&] { f.run(*window, first, 6); });
    CHECK(contains(message, fmt::format("begins with iteration {}", first)));
    CHECK(contains(message, fmt::format("give {} or later", first + 2)));
    CHECK(fs::is_empty(f.folder));
  }
  f.run(*f.window(), 5, 6);
  CHECK(!f.record.counters);
  CHECK(contains(measurements_summary(f.record), "counters of iterations 4 to 5: unknown"));
  f.run(*f.window(), 2, 6);
  CHECK(f.record.counters);
}

TEST_CASE("--profile-dir: links in it stay, and what they lead to is replaced") {
  Fixture f(false);
  const auto elsewhere = f.folder.string() + "-kernels.csv";
  std::filesystem::create_directories(f.folder);
  std::filesystem::create_symlink(elsewhere, f.folder / "kernels.csv");
  f.run(*f.window(), 1, 6);
  CHECK(std::filesystem::is_symlink(f.folder / "kernels.csv"));
  CHECK(std::filesystem::file_size(elsewhere) > 0);
  std::filesystem::remove(elsewhere);
}

TEST_CASE("--profile-dir: an earlier profile is replaced with a notice, anything else refused") {
  Fixture f(false);
  f.run(*f.window(), 1, 6);
  CHECK(f.notices.empty());
  f.prepare();
  CHECK(contains(f.notices, "--profile-dir: the earlier profile in '"));
  // The counters of another run may lie beside it.
  f.notices.clear();
  f.config.profile_counters = true;
  f.prepare();
  CHECK(f.notices.empty());
  std::ofstream(f.folder / "counters.csv") << "my own notes";
  CHECK(contains(message_of([&] { f.prepare(); }), "is not a file of a profile"));
  CHECK(f.text("counters.csv") == "my own notes");
  std::ofstream(f.folder / "counters.csv") << "";
  f.prepare();
}
