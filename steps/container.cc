#include "steps/container.h"

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "steps/kinds.h"

namespace tally {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Image {
  std::string runtime, name, args, outpath;
  bool gpus = false;
  std::vector<std::string> binds;
  Variables variables;
};

std::string chosen(const Text& own, const Lookup& lookup, std::string_view name) {
  if (!own.value.empty()) return std::string(strip(substitute(own.value, lookup)));
  return substitute(stripped_value(lookup, name), lookup);
}

Image image_of(const Step& step, const Lookup& lookup) {
  const Container& own = step.container;
  Image image;
  image.name = chosen(own.image, lookup, "container_image");
  if (image.name.empty()) return image;  // most steps have none: the rest is not looked up
  image.runtime = chosen(own.runtime, lookup, "container_runtime");
  if (image.runtime.empty()) image.runtime = "apptainer";
  image.args = chosen(own.args, lookup, "container_args");
  const std::string gpus = chosen(own.gpus, lookup, "container_gpus");
  std::string asked = stripped_value(lookup, "gpuspernode");
  if (!step.resources.gpus_per_node.value.empty()) {
    asked = strip(substitute(step.resources.gpus_per_node.value, lookup));
  }
  image.gpus = gpus == "all" || (gpus != "none" && !asked.empty() && asked != "0");
  for (const Text& list : {Text{stripped_value(lookup, "container_bind"), {}}, own.bind}) {
    for (std::string& bind : split_strip(substitute(list.value, lookup), ",")) {
      if (!bind.empty()) image.binds.push_back(std::move(bind));
    }
  }
  for (const auto& [name, text] : unpack_variables(stripped_value(lookup, "container_env"))) {
    image.variables.emplace_back(name, substitute_parameters(text, lookup));
  }
  for (const auto& [name, text] : own.env) {
    image.variables.emplace_back(substitute(name.value, lookup),
                                 substitute_parameters(text.value, lookup));
  }
  // Parents are beside this run, and so is setup work reused from earlier runs.
  const std::string run = stripped_value(lookup, "jube_benchmark_rundir");
  image.outpath = run.substr(0, run.rfind('/'));
  return image;
}

// Apptainer takes a value of --env with a comma for several variables. A value that the environment
// has under this prefix stays whole.
std::string apptainer(const Image& image) {
  std::string command;
  for (const auto& [name, value] : image.variables) {
    command += command.empty() ? "env " : "";
    command +=
        variables_for_shell((image.runtime == "singularity" ? "SINGULARITYENV_" : "APPTAINERENV_") +
                            name + "=" + value) +
        " ";
  }
  command += image.runtime + " exec";
  if (image.gpus) command += " --nv";
  if (!image.outpath.empty()) command += " --bind " + double_quoted(image.outpath);
  command += " --bind \"${TMPDIR:-/tmp}\" --bind \"${TALLY_CACHE_DIR:-$PWD}\"";
  for (const std::string& bind : image.binds) command += " --bind " + double_quoted(bind);
  command += " --pwd \"$PWD\"";
  if (!image.args.empty()) command += " " + image.args;
  return command + " " + double_quoted(image.name);
}

// Pyxis is a part of srun, whose words these are. The program gets its own variables within the
// image, since srun's --export cannot hold every value.
std::string pyxis(const Image& image) {
  std::string mounts;
  const auto mount = [&](const std::string& bind) {
    mounts += (mounts.empty() ? "" : ",") +
              double_quoted(bind.find(':') == std::string::npos ? bind + ":" + bind : bind);
  };
  if (!image.outpath.empty()) mount(image.outpath);
  for (const char* folder : {"${TMPDIR:-/tmp}", "${TALLY_CACHE_DIR:-$PWD}"})
    mount(std::string(folder) + ":" + folder);
  for (const std::string& bind : image.binds) mount(bind);
  std::string command = "--container-image=" + double_quoted(image.name) +
                        " --container-mounts=" + mounts + " --container-workdir=\"$PWD\"";
  if (!image.args.empty()) command += " " + image.args;
  if (!image.variables.empty()) command += " env";
  for (const auto& [name, value] : image.variables)
    command += " " + variables_for_shell(name + "=" + value);
  return command;
}

// A docker container inherits no environment variables by default. They are passed explicitly:
// those that launchers set for their processes, and those of the step and the platform.
std::string docker(const Image& image, const Step& step, const Lookup& lookup) {
  std::string command = image.runtime + " run --rm --init --network=host --ipc=host";
  command += image.runtime == "podman" ? " --userns=keep-id" : " --user \"$(id -u):$(id -g)\"";
  if (image.gpus)
    command += image.runtime == "podman" ? " --device nvidia.com/gpu=all" : " --gpus all";
  const auto volume = [&](const std::string& bind) {
    command += " --volume " +
               double_quoted(bind.find(':') == std::string::npos ? bind + ":" + bind : bind);
  };
  if (!image.outpath.empty()) volume(image.outpath);
  for (const std::string& bind : image.binds) volume(bind);
  command += " --volume \"${TALLY_CACHE_DIR:-$PWD}:${TALLY_CACHE_DIR:-$PWD}\"";
  command += " --workdir \"$PWD\" --env TMPDIR=/tmp";
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST", "SLURM_NNODES", "SLURM_NODEID",
        "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "MASTER_ADDR",
        "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TALLY_CACHE_DIR"}) {
    command += std::string(" --env ") + name;
  }
  for (const char* parameter : {"site_interconnect_variables", "site_variables"}) {
    for (const auto& variable : unpack_variables(stripped_value(lookup, parameter)))
      command += " --env " + variable.first;
  }
  for (const std::string& name : exported_names(lookup)) command += " --env " + name;
  for (const auto& variable : step.env) {
    command += " --env " + substitute(variable.first.value, lookup);
  }
  for (const auto& [name, value] : image.variables) {
    command += " --env " + variables_for_shell(name + "=" + value);
  }
  if (!image.args.empty()) command += " " + image.args;
  return command + " " + double_quoted(image.name);
}

}  // namespace

std::string container_command(const Step& step, const Lookup& lookup) {
  const Image image = image_of(step, lookup);
  if (image.name.empty() || image.runtime == "none") return {};
  if (image.runtime == "pyxis") return pyxis(image);
  if (image.runtime == "docker" || image.runtime == "podman") return docker(image, step, lookup);
  return apptainer(image);
}

std::string container_fault(const Step& step, const Lookup& lookup) {
  const Image image = image_of(step, lookup);
  if (image.name.empty() || image.runtime != "pyxis") return {};
  const std::string starter = stripped_value(lookup, "starter");
  if (stripped_value(lookup, "scheduler") != "slurm" || starter.find("srun") == std::string::npos)
    return "container: pyxis is a part of Slurm's srun, which does not start this program";
  if (chosen(step.container.gpus, lookup, "container_gpus") == "none")
    return "container: pyxis gives a program the GPUs of its job, and gpus is none";
  if (image.outpath.find_first_of(",:") != std::string::npos)
    return "container: pyxis cannot mount a folder with , or : in its name: " + image.outpath;
  return {};
}

}  // namespace tally
