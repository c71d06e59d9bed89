// tally doctor: what this machine has, what of it Tally can use, and what is missing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/prepare.h"
#include "engine/energy/gpu_devices.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/execute/machine_facts.h"
#include "engine/run/input.h"
#include "engine/workspace/environment.h"
#include "engine/workspace/external_command.h"

namespace tally {
namespace {

// The output of a command; empty if it fails.
std::string said_by(std::vector<std::string> words) {
  ExternalCommand spec;
  spec.words = std::move(words);
  spec.environment = entries(current_environment());
  spec.patience = std::chrono::seconds(20);
  const CommandResult result = run_external(spec);
  return result.status == 0 ? std::string(strip(result.out)) : std::string();
}

// The type of the file system that holds a folder, as "lustre". Empty: unknown.
std::string file_system_of(const std::string& folder) {
  std::string type;
  size_t longest = 0;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // "36 35 98:0 /root /mount/point options ... - type source ..."
    const std::vector<std::string> fields = split_strip(line, " ");
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || dash == fields.end() || dash + 1 == fields.end()) continue;
    const std::string at = fields[4] == "/" ? "" : fields[4];
    const bool holds = folder == at || starts_with(folder, at + "/");
    if (!holds || at.size() < longest) continue;
    longest = at.size();
    type = *(dash + 1);
  }
  return type;
}

// Whether files can be made and locked in a folder, as a journal's are. The error says why not.
Status try_folder(const std::string& folder) {
  std::string path = folder + "/.tally-doctor.XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0)
    return Status::error(fmt::format("no file can be made in it: {}", std::strerror(errno)));
  const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
  const int fault = errno;
  close(file);
  unlink(path.c_str());
  if (locked) return Status::ok();
  return Status::error(fmt::format("no file can be locked in it: {}", std::strerror(fault)));
}

class Doctor {
 public:
  void look_at_machine() {
    head("Machine");
    std::unique_ptr<GpuDevices> gpus;
    const Status opened = GpuDevices::open(&gpus);
    bool any_gpu = false;
    for (const auto& [name, value] : machine_facts(".", gpus.get(), opened.message())) {
      line(name == "Load at start" ? "Load" : name, value);
      any_gpu = any_gpu || name == "GPUs";
    }
    if (!any_gpu) {
      missing("GPUs", opened ? "NVML lists none" : opened.message(),
              "training uses CPUs, and no GPU's energy and clocks are recorded");
    } else if (!opened) {
      missing("NVML", opened.message(), "the energy and clocks of the GPUs are not recorded");
    }
  }

  void look_at_jobs() {
    head("Jobs");
    Status problem;
    std::vector<SchedulerHere> here = schedulers_here(template_directories(&problem), &problem);
    if (!problem) missing("Templates", problem.message(), "no job script can be made");
    if (here.empty()) here.push_back({"slurm", make_slurm()});
    for (const SchedulerHere& one : here) {
      std::vector<std::pair<std::string, std::string>> facts;
      const Status described = one.scheduler->describe(&facts);
      for (const auto& [name, value] : facts) line(name, value);
      if (!described)
        missing("Scheduler", described.message(),
                fmt::format("`platform: {}` submits nothing; `tally script` writes the job scripts",
                            one.name));
    }
  }

  void look_at_programs() {
    head("Programs");
    const std::string python = find_program({"python3"});
    if (python.empty()) {
      missing("python3", "it is not in PATH", "expressions (`where`, `mode: python`) are errors");
    } else {
      line("python3", fmt::format("{} ({})", said_by({python, "--version"}), python));
    }
    const std::string trainer = find_program({"tally-train"}, {program_directory()});
    if (trainer.empty()) {
      missing("tally-train", "it is neither beside tally nor in PATH",
              "the training workflows do not run: scripts/build makes it");
    } else {
      const std::string version = said_by({trainer, "--version"});
      line("tally-train", trainer);
      for (const std::string& one : split_strip(version, "\n")) line("", one);
      if (version.empty()) missing("tally-train", trainer + " --version fails", "it cannot train");
      look_at_module(trainer, "nccl", "NCCL", "training on several GPUs does not run");
      look_at_module(trainer, "mpi", "MPI of tally-train", "ranks on CPUs exchange over sockets");
    }
    const std::string container = find_program({"apptainer", "singularity", "podman", "docker"});
    if (container.empty()) {
      missing("Containers", "neither apptainer, singularity, podman nor docker is in PATH",
              "steps with `container` do not run");
    } else {
      line("Containers", container);
    }
  }

  // Returns whether runs can be kept in it.
  bool look_at_folder() {
    const std::string folder = absolute_path(".");
    head("This folder");
    line("Path", folder);
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    constexpr double kGiB = 1 << 30;
    const std::string room = error ? ""
                                   : fmt::format(", {:.1f} GiB of {:.1f} free",
                                                 static_cast<double>(space.available) / kGiB,
                                                 static_cast<double>(space.capacity) / kGiB);
    line("File system", file_system_of(folder) + room);
    const Status good = try_folder(folder);
    if (!good) missing("Runs", good.message(), "no run can be kept here: give another by -o");
    return bool(good);
  }

  void print_missing() const {
    if (missing_.empty()) return;
    fmt::print("\nMissing\n");
    for (const auto& [name, text] : missing_) fmt::print("  {:<19} {}\n", name, text);
  }

 private:
  // The module that tally-train opens to reach other ranks: beside it, or where an installation has
  // it.
  void look_at_module(const std::string& trainer, const std::string& module, const char* name,
                      const char* so) {
    const std::string folder = trainer.substr(0, trainer.rfind('/'));
    const std::string file = "tally_" + module + ".so";
    for (const std::string& path : {folder + "/" + file, folder + "/../lib/tally/" + file}) {
      if (access(path.c_str(), R_OK) == 0) return line(name, path);
    }
    missing(name, file + " is not beside tally-train", so);
  }
  // It is printed with its first line.
  void head(const char* name) { head_ = name; }
  void line(const std::string& name, const std::string& value) {
    if (value.empty()) return;
    if (!head_.empty()) fmt::print("{}{}\n", first_ ? "" : "\n", head_);
    first_ = false;
    head_.clear();
    fmt::print("  {:<19} {}\n", name, one_line(value));
  }
  // `so`: what does not work without it.
  void missing(const std::string& name, const std::string& why, const std::string& so) {
    missing_.emplace_back(name, one_line(why) + ": " + so);
  }

  std::string head_;
  bool first_ = true;
  std::vector<std::pair<std::string, std::string>> missing_;
};

}  // namespace

int doctor_command() {
  Doctor doctor;
  doctor.look_at_machine();
  doctor.look_at_jobs();
  doctor.look_at_programs();
  const bool usable = doctor.look_at_folder();
  doctor.print_missing();
  return usable ? kFine : kFailed;
}

void Application::add_doctor() {
  command("doctor", "say what this machine has, what of it is used, and what is missing",
          [] { return doctor_command(); });
}

}  // namespace tally
