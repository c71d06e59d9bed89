// Loads the library that carries the messages, at run time.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "src/parallel/collectives/module.h"
#include "src/parallel/control/operations.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

// The module's folder: next to the program (in a build), or where an installation has it.
std::string module_path(const std::string& name) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::string file = "tally_" + name + ".so";
  for (const fs::path& path : {folder / file, folder / ".." / "lib" / "tally" / file})
    if (fs::exists(path, error)) return path.string();
  return "";
}

// True under the launchers of Open MPI and MPICH, or under a Slurm with their PMI.
bool mpi_was_launched() {
  for (const char* name : {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_FD"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

std::unique_ptr<Communicator> open_module(const std::string& name, const ModuleContext& context) {
  const std::string path = module_path(name);
  // RTLD_GLOBAL, because MPI's plug-ins look for its symbols in the program.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr)
    throw CommunicationError(fmt::format("{} cannot be loaded: {}", path, dlerror()));
  const auto make = reinterpret_cast<MakeCommunicator>(dlsym(module, make_communicator_symbol));
  if (make == nullptr)
    throw CommunicationError(fmt::format("{} is not a module of tally-train", path));
  return std::unique_ptr<Communicator>(make(context));
}

}  // namespace

std::string communicator_unavailable_reason(const std::string& name) {
  if (name == "sockets") return "";
  if (module_path(name).empty())
    return fmt::format("this build has no {}: there was no {} when it was configured",
                       name == "mpi" ? "MPI" : "NCCL",
                       name == "mpi" ? "MPI library (libopenmpi-dev)" : "nccl.h");
  if (name == "mpi" && !mpi_was_launched())
    return "no MPI launcher started this process: start it by mpirun, or by srun --mpi=pmix (plain "
           "srun ends an Open MPI program as soon as MPI starts), or take --distributed-backend "
           "sockets, which needs neither";
  return "";
}

std::unique_ptr<Communicator> make_communicator(const std::string& name, Rendezvous& meeting,
                                                Device device, const std::string& interface) {
  if (meeting.size() == 1) return make_single_communicator();
  if (const std::string why = communicator_unavailable_reason(name); !why.empty())
    throw CommunicationError(why);
  ModuleContext context;
  context.meeting = &meeting;
  context.device = device;
  context.interface = interface;
  context.reduce = reduce_elements;
  auto made = name == "sockets" ? make_sockets_communicator(context) : open_module(name, context);
  std::vector<int> ranks(static_cast<size_t>(meeting.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  made->report_to(&meeting.operations(), std::move(ranks));
  return made;
}

}  // namespace tally::train
