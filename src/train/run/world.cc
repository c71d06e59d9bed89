#include "src/train/run/world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "src/data/text/bus_errors.h"
#include "src/measure/system_info.h"
#include "src/train/run/agreement.h"
#include "src/train/run/failures.h"
#include "src/train/run/output.h"

namespace tally::train {
namespace {

constexpr size_t hash_piece = size_t{16} << 20;

// Chooses the backend when no flag names one.
std::string choose_backend(const Config& c, const Launch& launch, Device device) {
  const std::string& asked = c.distributed_backend;
  if (device.is_cuda()) {
    if (!asked.empty() && asked != "nccl")
      throw InputError(fmt::format("--distributed-backend {}: GPUs need nccl", asked));
    return "nccl";
  }
  if (asked == "nccl")
    throw InputError(
        "--distributed-backend nccl: this run is on the CPU, which needs mpi or sockets");
  if (!asked.empty()) return asked;
  return launch.mpi && communicator_unavailable_reason("mpi").empty() ? "mpi" : "sockets";
}

void print_end(int code, const std::string& why) {
  code == exit_code(Outcome::signalled) ? print_stopped(why) : print_error(why);
}

// All ports of the run have been open by now. Connections that were refused are no error, and
// somebody may want to know of them.
void note_strangers(World& world) {
  int all = 0;
  for (const std::string& one :
       world.meeting().exchange(std::to_string(world.meeting().strangers())))
    all += std::stoi(one);
  if (all > 0 && world.is_primary()) print_note("at the start " + describe_strangers(all));
}

}  // namespace

World::World(const Launch& launch, const LaunchOptions& options, const std::optional<Fault>& fault)
    : launch_(launch) {
  RendezvousOptions o;
  o.rank = launch.rank;
  o.size = launch.size;
  o.address = launch.address;
  o.port = launch.port;
  o.listening_fd = launch.listening_fd;
  o.host = host_name();
  o.run = launch.run;
  o.token = launch.token;
  o.interface = options.interface;
  o.one_host = launch.nodes == 1;
  o.timeout_seconds = options.start_seconds();
  o.silence_seconds = options.silence_seconds();
  o.host_silence_seconds = options.host_silence_seconds();
  o.operation_seconds = options.operation_seconds();
  o.supervisor_fd = launch.supervisor_fd;
  o.fault = fault;
  o.own_output = launch.own_output;
  // A parent of all ranks sees those that end, and the others come, however slow the host is. One
  // rank of each host says that it waits for rank 0.
  const bool watched = launch.supervised && launch.nodes == 1;
  const bool notes_waiting = launch.local_rank == 0 || launch.rank == 1 || launch.own_output;
  if (notes_waiting && !watched) o.say = print_note;
  o.report = [this](const Failure& f) {
    print_end(f.code, named(f));
    tell_supervisor();
  };
  meeting_ = Rendezvous::meet(o, [this](const Failure& f) {
    // Rank 0 reports for all; rank 1 reports that rank 0 was lost.
    end(f, rank() == 0 || (!f.known_to_zero && rank() == 1));
  });
}

void World::set_on_failure(std::function<void(const Failure&)> on_failure) {
  const std::lock_guard lock(mutex_);
  on_failure_ = std::move(on_failure);
}

void World::write_unless_ending(const std::function<void()>& write) {
  const std::lock_guard lock(mutex_);
  write();
}

std::string World::named(const Failure& f) const {
  return fmt::format("rank {} on {}: {}", f.rank, f.host, f.message);
}

int World::fail(int code, const std::string& message, bool consequence) {
  if (size() == 1) {
    print_end(code, message);
    return code;
  }
  const Failure first = meeting_->fail(code, message, consequence);
  end(first, rank() == 0 || !first.known_to_zero);
}

// Ends without destructors, because threads of libraries may be waiting for peers that are gone.
void World::end(const Failure& first, bool report) {
  std::fflush(stdout);
  // The lock is held until the process is gone: a second failure is not reported, and nothing
  // replaces the record.
  std::unique_lock lock(mutex_, std::defer_lock);
  if (report) {
    lock.lock();
    print_end(first.code, named(first));
    if (on_failure_) on_failure_(first);
  }
  if (report || first.known_to_zero) tell_supervisor();
  _exit(first.code);
}

// The supervisor reports what no rank has.
void World::tell_supervisor() const {
  if (launch_.supervisor_fd < 0) return;
  const char reported = 'R';
  [[maybe_unused]] const ssize_t n = send(launch_.supervisor_fd, &reported, 1, MSG_NOSIGNAL);
}

MeshShape mesh_shape(const Config& config) {
  return {config.tensor_parallel, config.pipeline_parallel, config.data_parallel};
}

SaveGroup save_group(const Config& config, World& world, ExchangeKind exchange) {
  SaveGroup group;
  group.shape = mesh_shape(config);
  group.position = position_of(group.shape, world.rank());
  group.divided_optimizer = config.distributed_optimizer;
  group.exchange = [&world, exchange](const std::string& mine) {
    return world.meeting().exchange(mine, exchange);
  };
  return group;
}

OpenCommunicator open_communicator(const Config& config, World& world, Device device) {
  ProcessFacts facts;
  facts.launcher = world.launch().source;
  if (world.size() == 1) {
    facts.backend = "single";
    return {make_single_communicator(), facts};
  }
  facts.hosts = world.meeting().exchange(host_name());
  const std::string backend = choose_backend(config, world.launch(), device);
  require_same_settings(world.meeting(), host_name(),
                        {{"device", "the device", device.is_cuda() ? "a GPU" : "a CPU"},
                         {"backend", "the communication backend", backend}},
                        "give every rank the same --device and --distributed-backend");
  if (const std::string why = communicator_unavailable_reason(backend); !why.empty())
    throw InputError(fmt::format("--distributed-backend {}: {}", backend, why));
  auto made = make_communicator(backend, world.meeting(), device, config.network_interface);
  note_strangers(world);
  watch_bus_errors();  // the library may have installed its own handler
  const CommunicatorInfo info = made->info();
  facts.backend = info.backend;
  facts.backend_version = info.version;
  facts.nccl_settings = info.settings;
  return {std::move(made), facts};
}

namespace {

// 16 digits, the same for the same bits.
std::string bits_hash(Stream& stream, const Tensor& flat) {
  std::vector<char> piece(std::min(hash_piece, flat.bytes()));
  XXH64_hash_t hash = 0;
  for (size_t at = 0; at < flat.bytes(); at += piece.size()) {
    const size_t n = std::min(piece.size(), flat.bytes() - at);
    stream.copy(piece.data(), static_cast<const char*>(flat.data) + at, n);
    stream.synchronize();
    hash = XXH3_64bits_withSeed(piece.data(), n, hash);
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace

std::string weights_hash(World& world, const MeshShape& shape, Stream& stream, const Tensor& flat) {
  const std::string mine = bits_hash(stream, flat);
  if (world.size() == 1) return mine;
  std::string parts;
  const auto all = world.meeting().exchange(mine);
  for (size_t r = 0; r < all.size(); ++r)
    if (position_of(shape, static_cast<int>(r)).replica == 0) parts += all[r];
  if (parts.size() == mine.size()) return parts;
  return fmt::format("{:016x}", XXH3_64bits(parts.data(), parts.size()));
}

void check_same_weights(World& world, const MeshShape& shape, Stream& stream, const Tensor& flat,
                        const char* when) {
  if (world.size() == 1) return;
  const auto all = world.meeting().exchange(bits_hash(stream, flat));
  std::vector<size_t> different;
  for (size_t r = 0; r < all.size(); ++r) {
    MeshPosition first = position_of(shape, static_cast<int>(r));
    first.replica = 0;
    if (all[r] != all[static_cast<size_t>(rank_of(shape, first))]) different.push_back(r);
  }
  if (!different.empty())
    throw CheckFailed(
        fmt::format("{}: the weights of rank{} {} differ from those of the first replica", when,
                    different.size() == 1 ? "" : "s", fmt::join(different, ", ")));
}

}  // namespace tally::train
