// The quiet check and the facts of a machine, on folders that stand for /proc and /sys.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "engine/execute/machine_facts.h"
#include "engine/execute/machine_load.h"
#include "engine/execute/quiet_check.h"
#include "engine/workspace/left_behind.h"

using tally::cores_of_others;
using tally::disturbs;
using tally::is_descendant;
using tally::LoadSample;
using tally::MachineLoad;
namespace fs = std::filesystem;

namespace {

class Root {
 public:
  Root() {
    std::string name = (fs::temp_directory_path() / "tally-machine-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Root() { fs::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  void file(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  // A process with these ticks of user, system, children's user and children's system time.
  void process(int pid, int parent, const std::string& ticks,
               const std::string& name = "a program") const {
    file("proc/" + std::to_string(pid) + "/stat",
         std::to_string(pid) + " (" + name + ") S " + std::to_string(parent) +
             " 1 1 0 -1 4194304 10 0 0 0 " + ticks + " 20 0 1 0 100 0 0\n");
  }
  std::string str() const { return path_.string(); }

 private:
  fs::path path_;
};

LoadSample at(double seconds, double busy, double own) {
  LoadSample sample;
  sample.time += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
  sample.busy = busy;
  sample.own = own;
  return sample;
}

}  // namespace

TEST_CASE("the machine's CPU time, and that of a process with its descendants") {
  const Root root;
  const auto hertz = static_cast<double>(sysconf(_SC_CLK_TCK));
  // user nice system idle iowait irq softirq steal guest guest_nice
  root.file("proc/stat", "cpu  1000 20 300 99999 7777 4 5 6 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
  root.process(10, 1, "100 20 3 4");                     // ours
  root.process(11, 10, "1000 0 0 0", "odd ) (name) S");  // its child
  root.process(12, 11, "50 50 0 0");                     // and grandchild
  root.process(13, 1, "5000 0 0 0");                     // somebody else's
  root.file("proc/self/stat", "");                       // not a number
  const auto sample = MachineLoad(root.str() + "/proc", 10).sample();
  REQUIRE(sample);
  CHECK(sample->busy == doctest::Approx((1000 + 20 + 300 + 4 + 5 + 6) / hertz));
  CHECK(sample->own == doctest::Approx((100 + 20 + 3 + 4 + 1000 + 100) / hertz));
  CHECK(!MachineLoad(root.str() + "/nowhere", 10).sample());
}

TEST_CASE("what disturbs: half a core, and more than the accounting may be wrong by") {
  struct Row {
    double seconds, busy, own;
    bool disturbed;
  };
  const Row rows[] = {
      {2, 2.0, 2.0, false},    // all of it is ours
      {2, 2.8, 2.0, false},    // 0.4 cores
      {2, 3.2, 2.0, true},     // 0.6 cores
      {2, 1.2, 0.0, true},     // we sleep, somebody else works
      {0.1, 1.0, 0.0, false},  // too short to tell
      {10, 645, 635, false},   // 1 core beside 63.5 of ours: 1.6 %
      {10, 660, 635, true},    // 2.5 cores: 3.9 %
      {2, 1.9, 2.0, false},    // rounding
  };
  for (const Row& row : rows) {
    INFO(row.busy << " " << row.own);
    CHECK(disturbs(at(100, 50, 20), at(100 + row.seconds, 50 + row.busy, 20 + row.own)) ==
          row.disturbed);
  }
  CHECK(*cores_of_others(at(0, 0, 0), at(4, 6, 2)) == doctest::Approx(1.0));
  CHECK(!cores_of_others(at(0, 0, 0), at(0.1, 1, 0)));
}

TEST_CASE("CPUs: throttling, and busy ones below their base clock") {
  const Root root;
  const std::string cpus = "sys/devices/system/cpu/cpu";
  const auto clock = [&](int cpu, const std::string& khz) {
    root.file(cpus + std::to_string(cpu) + "/cpufreq/scaling_cur_freq", khz + "\n");
  };
  // user nice system idle iowait irq softirq steal
  const auto times = [&](const std::string& first, const std::string& second) {
    root.file("proc/stat", "cpu  1 1 1 1 1 1 1 1\ncpu0 " + first + " 0 0 0 0\ncpu1 " + second +
                               " 0 0 0 0\nintr 5\n");
  };
  root.file(cpus + "0/cpufreq/base_frequency", "2400000\n");
  root.file(cpus + "1/acpi_cppc/nominal_freq", "2400\n");
  root.file(cpus + "0/thermal_throttle/core_throttle_count", "5\n");
  root.file(cpus + "0/thermal_throttle/package_throttle_count", "7\n");
  clock(0, "1800000");
  clock(1, "800000");
  times("100 0 0 100", "100 0 0 100");
  tally::CpuClocks cpu(root.str());
  REQUIRE(cpu.has_clocks());
  cpu.look();
  const auto begin = cpu.sample();
  CHECK(begin.events == 12);
  times("200 0 0 100", "100 0 0 200");  // CPU 0 works, CPU 1 does nothing
  cpu.look();
  const auto low = cpu.sample();
  CHECK(tally::cpu_throttling(begin, low) == "CPU: 1.80 GHz, below the base clock of 2.40 GHz");
  clock(0, "2390000");
  times("300 0 0 100", "100 0 0 300");
  cpu.look();
  const auto good = cpu.sample();
  CHECK(tally::cpu_throttling(low, good).empty());
  clock(1, "1010000");
  times("400 0 0 100", "200 0 0 300");  // both
  root.file(cpus + "0/thermal_throttle/package_throttle_count", "8\n");
  cpu.look();
  CHECK(tally::cpu_throttling(good, cpu.sample()) ==
        "CPU: 1 thermal throttling event; CPU: 1.70 GHz, below the base clock of 2.40 GHz");
  // A machine that says nothing of this, as most virtual ones.
  const Root empty;
  tally::CpuClocks silent(empty.str());
  CHECK(!silent.has_clocks());
  silent.look();
  CHECK(tally::cpu_throttling(silent.sample(), silent.sample()).empty());
}

TEST_CASE("facts of a machine: what is there, and nothing that is not") {
  const Root root;
  root.file("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654\n\nprocessor\t: 1\n");
  root.file("proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\n");
  root.file("proc/loadavg", "0.52 0.40 0.31 2/345 678\n");
  root.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX 580.95\nGCC version: 12\n");
  for (const char* gpu : {"a", "b"})
    root.file(std::string("proc/driver/nvidia/gpus/") + gpu + "/information",
              "Model: \t\t NVIDIA H100\nIRQ: 3\n");
  for (const char* device : {"mlx5_0", "mlx5_1"}) {
    const std::string port = std::string("sys/class/infiniband/") + device + "/ports/1/";
    root.file(port + "rate", "400 Gb/sec (4X NDR)\n");
    root.file(port + "state", device == std::string("mlx5_0") ? "4: ACTIVE\n" : "1: DOWN\n");
  }
  const std::string cpu = "sys/devices/system/cpu/";
  root.file(cpu + "intel_pstate/no_turbo", "1\n");
  root.file(cpu + "cpu0/cpufreq/scaling_min_freq", "800000\n");
  root.file(cpu + "cpu0/cpufreq/scaling_max_freq", "3500000\n");
  root.file(cpu + "cpu0/cpufreq/base_frequency", "2400000\n");
  const tally::Facts facts =
      tally::machine_facts(root.str(), nullptr, "a static program", root.str());
  const std::map<std::string, std::string> by_name(facts.begin(), facts.end());
  CHECK(by_name.at("CPU").rfind("AMD EPYC 9654, ", 0) == 0);
  CHECK(by_name.at("Memory") == "64.0 GiB");
  CHECK(by_name.at("GPUs") == "2 x NVIDIA H100");
  CHECK(by_name.at(tally::kUnwatchedGpus) == "a static program");
  CHECK(by_name.at("GPU driver") == "NVRM version: NVIDIA UNIX 580.95");
  CHECK(by_name.at("Fabric") == "mlx5_0 400 Gb/sec (4X NDR), mlx5_1 400 Gb/sec (4X NDR) DOWN");
  CHECK(by_name.at("CPU boost") == "off");
  CHECK(by_name.at("CPU clocks") == "0.80 to 3.50 GHz, base 2.40 GHz");
  CHECK(by_name.at("Load at start") == "0.52 0.40 0.31");
  CHECK(by_name.count("CPU governor") == 0);
  CHECK(by_name.count("Commit") == 0);
  const Root empty;
  const tally::Facts few = tally::machine_facts(empty.str(), nullptr, "no driver", empty.str());
  for (const auto& [name, value] : few) CHECK_MESSAGE(name.rfind("GPUs", 0) != 0, value);
}

TEST_CASE("facts of several sessions, and the differences of two runs") {
  const tally::Facts all = tally::merged(
      {{{"Host", "a"}, {"Kernel", "6.1"}}, {{"Host", "b"}, {"Kernel", "6.1"}, {"GPUs", "1 x G"}}});
  CHECK(all == tally::Facts{{"Host", "a / b"}, {"Kernel", "6.1"}, {"GPUs", "1 x G"}});
  const auto found = tally::differences(
      {{"Host", "a"}, {"Kernel", "6.1"}, {"Load at start", "0.1 0 0"}, {"Modules", "gcc"}},
      {{"Host", "a"}, {"Kernel", "6.2"}, {"Load at start", "9 9 9"}, {"GPUs", "1 x G"}});
  REQUIRE(found.size() == 3);
  CHECK((found[0].name == "Kernel" && found[0].base == "6.1" && found[0].other == "6.2"));
  CHECK((found[1].name == "Modules" && found[1].other.empty()));
  CHECK((found[2].name == "GPUs" && found[2].base.empty()));
}

TEST_CASE("a process that has ended but is still listed is nobody's") {
  CHECK(is_descendant(getpid(), getpid()) == true);
  CHECK(is_descendant(getppid(), getpid()) == false);
  int held[2];
  REQUIRE(pipe(held) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(held[1]);
    _exit(read(held[0], &byte, 1) < 0 ? 1 : 0);
  }
  REQUIRE(child > 0);
  CHECK(is_descendant(child, getpid()) == true);
  close(held[1]);
  close(held[0]);
  siginfo_t ended{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(is_descendant(child, getpid()).has_value());  // a zombie: nobody has waited for it
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(is_descendant(child, getpid()).has_value());
}

TEST_CASE("quiet check: which steps are watched") {
  using tally::StepKind;
  tally::Benchmark benchmark;
  tally::Analyser analyser;
  analyser.analyse.push_back({{"other", {}}, {}});
  analyser.analyse.push_back({{"read", {}}, {}});
  benchmark.analysers = {{}, analyser};
  const auto watched = [&](const char* name, StepKind kind, bool wanted = true) {
    tally::Step step;
    step.name.value = name;
    step.kind = kind;
    step.quiet_check = wanted;
    return tally::is_watched(benchmark, step);
  };
  for (const StepKind kind : {StepKind::setup, StepKind::build}) {
    CHECK(watched("read", kind));
    CHECK(!watched("not read", kind));
    CHECK(!watched("read", kind, false));
  }
  for (const StepKind kind : {StepKind::plain, StepKind::run, StepKind::result}) {
    CHECK(watched("read", kind));
    CHECK(watched("not read", kind));
    CHECK(!watched("read", kind, false));
  }
}
