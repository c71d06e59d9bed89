#include "engine/energy/hwmon_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "engine/base/presence.h"
#include "engine/base/system_files.h"

namespace tally {
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
  if (Status s = names_in(root_, &names); !s) return s;
  for (const std::string& name : names) {
    if (Status s = find_in(root_ + "/" + name); !s) return s;
  }
  if (!readings_.empty()) return Status::ok();
  if (!unreadable_.empty())
    return Status::error(fmt::format("'{}' cannot be read; often only root may", unreadable_));
  return Status::error(fmt::format("'{}' has no sensors of power or energy", root_));
}

// A sensor may have both files. The counter is more exact.
Status HwmonEnergy::find_in(const std::string& folder) {
  std::vector<std::string> names;
  if (Status s = names_in(folder, &names); !s) return s;
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
