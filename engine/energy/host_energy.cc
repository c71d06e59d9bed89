#include "engine/energy/host_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "engine/base/files.h"
#include "engine/base/presence.h"

namespace tally {
namespace {

std::string read_word(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  return word;
}

// "intel-rapl:0", or "intel-rapl:0:1" for a part of it. AMD's CPUs have the same names.
bool is_domain(const std::string& name) {
  return name.rfind("intel-rapl:", 0) == 0;
}

}  // namespace

CpuEnergy::CpuEnergy(std::string root) : root_(std::move(root)) {}

Status CpuEnergy::start() {
  std::vector<std::string> names;
  TRY(names_in(root_, &names));
  std::erase_if(names, [](const std::string& name) { return !is_domain(name); });
  if (names.empty()) return Status::error(fmt::format("'{}' has no counters (RAPL)", root_));
  for (const std::string& name : names) {
    Counter counter;
    const std::string folder = root_ + "/" + name + "/";
    const bool part = std::ranges::count(name, ':') > 1;
    counter.domain.name = read_word(folder + "name");
    if (part) {
      const std::string whole = read_word(root_ + "/" + name.substr(0, name.rfind(':')) + "/name");
      // Cores are in the package's energy already; memory is not.
      if (counter.domain.name != "dram") continue;
      counter.domain.name = whole + " dram";
    }
    counter.path = folder + "energy_uj";
    errno = 0;
    if (!read_number(counter.path, &counter.last) ||
        !read_number(folder + "max_energy_range_uj", &counter.range))
      return Status::error(
          fmt::format("'{}' cannot be read: {}", counter.path,
                      errno == EACCES ? "only root may; ask the administrator for read permission"
                                      : std::strerror(errno == 0 ? EINVAL : errno)));
    counters_.push_back(std::move(counter));
  }
  return Status::ok();
}

Status CpuEnergy::update() {
  constexpr double kMicro = 1e-6;
  for (Counter& counter : counters_) {
    double now = 0;
    if (!read_number(counter.path, &now))
      return Status::error(fmt::format("'{}' cannot be read any more", counter.path));
    const double used =
        now >= counter.last ? now - counter.last : now + counter.range - counter.last;
    counter.domain.joules += used * kMicro;
    counter.last = now;
  }
  return Status::ok();
}

std::vector<CpuEnergy::Domain> CpuEnergy::domains() const {
  std::vector<Domain> all;
  for (const Counter& counter : counters_) all.push_back(counter.domain);
  return all;
}

namespace {

constexpr double kMicro = 1e-6;

std::string read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The number in "energy12_input" for "energy" and "_input". 0: the name has another form.
int number_in(const std::string& name, const std::string& kind, const std::string& end) {
  if (name.size() <= kind.size() + end.size() || name.compare(0, kind.size(), kind) != 0 ||
      name.compare(name.size() - end.size(), end.size(), end) != 0)
    return 0;
  const std::string digits = name.substr(kind.size(), name.size() - kind.size() - end.size());
  if (digits.size() > 4 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  return std::stoi(digits);
}

}  // namespace

HwmonEnergy::HwmonEnergy(std::string root) : root_(std::move(root)) {}

Status HwmonEnergy::start() {
  std::vector<std::string> names;
  TRY(names_in(root_, &names));
  for (const std::string& name : names) {
    TRY(find_in(root_ + "/" + name));
  }
  if (!readings_.empty()) return Status::ok();
  if (!unreadable_.empty())
    return Status::error(fmt::format("'{}' cannot be read; often only root may", unreadable_));
  return Status::error(fmt::format("'{}' has no sensors of power or energy", root_));
}

// A sensor may have both files. The counter is more exact.
Status HwmonEnergy::find_in(const std::string& folder) {
  std::vector<std::string> names;
  TRY(names_in(folder, &names));
  const std::string device = read_line(folder + "/name");
  std::set<int> counted;
  struct Form {
    const char* kind;
    const char* end;
  };
  for (const Form& form :
       {Form{"energy", "_input"}, Form{"power", "_input"}, Form{"power", "_average"}}) {
    for (const std::string& name : names) {
      const int number = number_in(name, form.kind, form.end);
      if (number == 0 || counted.count(number) != 0) continue;
      Reading reading;
      reading.path = folder + "/" + name;
      if (!read_number(reading.path, &reading.last)) {
        unreadable_ = reading.path;
        continue;
      }
      counted.insert(number);
      const std::string label =
          read_line(folder + "/" + form.kind + std::to_string(number) + "_label");
      reading.sensor.name =
          device + " " + (label.empty() ? form.kind + std::to_string(number) : label);
      reading.sensor.counter = form.kind == std::string("energy");
      reading.sensor.joules = 0;
      readings_.push_back(std::move(reading));
    }
  }
  return Status::ok();
}

void HwmonEnergy::update(double seconds) {
  for (Reading& reading : readings_) {
    double now = 0;
    std::optional<double>& joules = reading.sensor.joules;
    // The value at which a counter wraps around is not known.
    if (!read_number(reading.path, &now) || (reading.sensor.counter && now < reading.last))
      joules.reset();
    if (!joules) continue;
    *joules += reading.sensor.counter ? (now - reading.last) * kMicro
                                      : seconds * (now + reading.last) / 2 * kMicro;
    reading.last = now;
  }
}

std::vector<HwmonEnergy::Sensor> HwmonEnergy::sensors() const {
  std::vector<Sensor> all;
  for (const Reading& reading : readings_) all.push_back(reading.sensor);
  return all;
}

}  // namespace tally
