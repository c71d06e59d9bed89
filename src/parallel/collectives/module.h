// The interface between the program and the modules that hold NCCL and MPI (nccl_module.cc,
// mpi_module.cc). A module uses only the program's headers and what is passed here.
#pragma once

#include <string>

#include "src/parallel/collectives/communicator.h"
#include "src/parallel/control/rendezvous.h"

namespace tally::train {

// to[i] = to[i] (+ or max) from[i] in host memory; see communicator.h for the types.
using ReduceElements = void (*)(DType type, Reduce op, const void* from, void* to, int64_t count);

struct ModuleContext {
  Rendezvous* meeting = nullptr;
  Device device;
  std::string interface;
  ReduceElements reduce = nullptr;
};

// The one symbol of a module, `extern "C" tally_make_communicator`. Throws CommunicationError.
using MakeCommunicator = Communicator* (*)(const ModuleContext& context);
inline constexpr const char* make_communicator_symbol = "tally_make_communicator";

void reduce_elements(DType type, Reduce op, const void* from, void* to, int64_t count);
std::unique_ptr<Communicator> make_sockets_communicator(const ModuleContext& context);

}  // namespace tally::train
