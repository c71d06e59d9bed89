// `tally meter` through the program, with a driver library of our own.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "engine/energy/host_energy.h"
#include "engine/energy/meter.h"
#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

std::string with_gpus(const std::string& arguments, const std::string& more = {}) {
  return "LD_LIBRARY_PATH=" TALLY_FAKE_NVML " " + more + " \"$TALLY\" meter " + arguments;
}

// The number after `words`.
double number_after(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  return at == std::string::npos ? -1 : std::atof(text.c_str() + at + words.size());
}

}  // namespace

TEST_CASE("meter: the counter, the sensor, and what there is not" *
          doctest::test_suite(tally::testing::kOpensALibrary)) {
  const Shell shell;
  const Ran ran = shell.sh(with_gpus("--json use.json -- sh -c 'echo before; sleep 1; exit 7'"));
  CHECK(ran.code == 7);
  CHECK(ran.out.rfind("before\nenergy: ", 0) == 0);
  const double seconds = number_after(ran.out, "energy: ");
  CHECK(seconds >= 1);
  // 250 W all the time, by the counter and by the sensor.
  const double counted = number_after(ran.out, "energy: GPU 0 (Fake H100): ");
  CHECK_MESSAGE(std::fabs(counted / seconds - 250) < 50, ran.out);
  const double sampled = number_after(ran.out, "energy: GPU 1 (Fake old GPU): ");
  CHECK_MESSAGE(std::fabs(sampled / seconds - 250) < 50, ran.out);
  CHECK(has(ran.out, " W, limit 700 W, clock 1410 MHz, throttling: power cap\n"));
  CHECK(has(ran.out, ", from sampled power: there is no energy counter\n"));
  CHECK(has(ran.out,
            "energy: GPU 2 (Fake old GPU): not available: this GPU has no energy counter "
            "and no power sensor\n"));
  CHECK(!has(ran.out, ": 0.0 J"));
  const std::string json = shell.content("use.json");
  CHECK_MESSAGE(has(json, "\"exit_code\": 7"), json);
  CHECK(has(json,
            "\"gpu\": 2,\n   \"name\": \"Fake old GPU\",\n   \"joules\": null,\n   "
            "\"sampled_joules\": null"));
}

TEST_CASE("meter: no driver, a driver that does not answer, and wrong command lines" *
          doctest::test_suite(tally::testing::kOpensALibrary)) {
  const Shell shell;
  Ran ran = shell.sh(with_gpus("-- true", "FAKE_NVML=broken"));
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "energy: GPU: not available: NVML: Driver Not Loaded\n"), ran.out);
  ran = shell.tally("meter -- sh -c 'kill -9 $$'");
  CHECK(ran.code == 137);
  CHECK(has(ran.out, "energy: "));
  CHECK(shell.tally("meter").code == 2);
  // The program's options are its own.
  ran = shell.tally("meter -- echo --js -v --verb");
  CHECK_MESSAGE(ran.out.rfind("--js -v --verb\n", 0) == 0, (ran.out + ran.err));
  ran = shell.tally("meter -- ./no-such-program");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "cannot start './no-such-program': No such file"), ran.err);
}

TEST_CASE("meter: the CPUs' counters, also when they wrap around") {
  const Shell shell;
  const auto domain = [&](const std::string& name, const std::string& word,
                          const std::string& energy) {
    shell.file("rapl/" + name + "/name", word + "\n");
    shell.file("rapl/" + name + "/energy_uj", energy + "\n");
    shell.file("rapl/" + name + "/max_energy_range_uj", "10000000\n");
  };
  domain("intel-rapl:0", "package-0", "9000000");
  domain("intel-rapl:0:0", "core", "5");
  domain("intel-rapl:0:1", "dram", "1000000");
  domain("intel-rapl:1", "package-1", "0");
  tally::CpuEnergy cpu(shell.root() + "/rapl");
  REQUIRE(static_cast<bool>(cpu.start()));
  domain("intel-rapl:0", "package-0", "500000");  // 1 J to the end of the range, and half a joule
  domain("intel-rapl:0:1", "dram", "1250000");
  REQUIRE(static_cast<bool>(cpu.update()));
  domain("intel-rapl:0", "package-0", "700000");
  REQUIRE(static_cast<bool>(cpu.update()));
  const auto domains = cpu.domains();
  REQUIRE(domains.size() == 3);
  CHECK((domains[0].name == "package-0" && domains[0].joules == doctest::Approx(1.7)));
  CHECK((domains[1].name == "package-0 dram" && domains[1].joules == doctest::Approx(0.25)));
  CHECK((domains[2].name == "package-1" && domains[2].joules == 0));
  CHECK(tally::CpuEnergy(shell.root() + "/nowhere").start().message() ==
        "'" + shell.root() + "/nowhere' has no counters (RAPL)");
}

TEST_CASE("meter: sensors of hwmon, by counter and by sampled power") {
  const Shell shell;
  const auto sensor = [&](const std::string& name, const std::string& text) {
    shell.file("hwmon/" + name, text + "\n");
  };
  sensor("hwmon0/name", "amd_energy");
  sensor("hwmon0/energy1_label", "Esocket0");
  sensor("hwmon0/energy1_input", "5000000");
  sensor("hwmon0/power1_input", "77000000");  // the counter's own power
  sensor("hwmon1/name", "power_meter");
  sensor("hwmon1/power1_average", "250000000");
  sensor("hwmon1/temp1_input", "40000");
  sensor("hwmon2/name", "amdgpu");
  sensor("hwmon2/power2_label", "PPT");
  sensor("hwmon2/power2_input", "100000000");
  sensor("hwmon3/name", "odd");
  sensor("hwmon3/energy3_input", "9");
  tally::HwmonEnergy hwmon(shell.root() + "/hwmon");
  REQUIRE(static_cast<bool>(hwmon.start()));
  sensor("hwmon0/energy1_input", "7500000");
  sensor("hwmon2/power2_input", "300000000");
  sensor("hwmon3/energy3_input", "3");  // it has wrapped around, and nobody knows where
  hwmon.update(2);
  sensor("hwmon3/energy3_input", "10");
  hwmon.update(0.5);
  const auto found = hwmon.sensors();
  REQUIRE(found.size() == 4);
  CHECK((found[0].name == "amd_energy Esocket0" && found[0].counter));
  CHECK(*found[0].joules == doctest::Approx(2.5));
  CHECK((found[1].name == "power_meter power1" && !found[1].counter));
  CHECK(*found[1].joules == doctest::Approx(250 * 2.5));
  CHECK(found[2].name == "amdgpu PPT");
  CHECK(*found[2].joules == doctest::Approx(200 * 2 + 300 * 0.5));
  CHECK(!found[3].joules);
  CHECK(tally::HwmonEnergy(shell.root() + "/nowhere").start().message() ==
        "'" + shell.root() + "/nowhere' has no sensors of power or energy");
  // Around a program.
  tally::MeterOptions options;
  options.powercap = shell.root() + "/nowhere";
  options.hwmon = shell.root() + "/hwmon";
  tally::EnergyUse use;
  int code = 0;
  REQUIRE(static_cast<bool>(
      tally::measure_command({"sh", "-c",
                              "echo 8000000 > " + options.hwmon + "/hwmon0/energy1_input; rm " +
                                  options.hwmon + "/hwmon3/energy3_input"},
                             options, &use, &code)));
  const std::string lines = tally::energy_lines(use);
  CHECK_MESSAGE(has(lines, "energy: sensor amd_energy Esocket0: 0.5 J, "), lines);
  CHECK(has(lines, " W, from sampled power\n"));
  CHECK(
      has(lines, "energy: sensor odd energy3: not available: it could not be read all the time\n"));
  CHECK(has(lines, "energy: CPU: not available: "));
  const std::string json = tally::energy_json(use, {"x"}, 0);
  CHECK_MESSAGE(
      has(json, "\"name\": \"odd energy3\",\n   \"joules\": null,\n   \"from\": \"counter\""),
      json);
}

TEST_CASE("meter: a long run whose counter and sensor disagree is said") {
  tally::EnergyUse use;
  use.seconds = 20;
  use.gpus.push_back({0, "G", 5000.0, 4000.0, 700.0, 0});
  CHECK(has(tally::energy_lines(use),
            "energy: GPU 0 (G): 5000.0 J, 250.0 W, limit 700 W, throttling: "
            "none\nenergy: GPU 0 (G): warning: sampled power gives 4000.0 J\n"));
  use.gpus[0].sampled_joules = 4900.0;
  CHECK(!has(tally::energy_lines(use), "warning"));
}
