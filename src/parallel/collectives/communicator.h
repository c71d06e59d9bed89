// Collective operations between the processes (ranks) of a run, independent of the library that
// carries them. Data, tensor, sequence and pipeline parallelism are written in terms of this.
//
// Memory: every tensor is dense, lies on the device of its stream, and stays the caller's; received
// tensors are overwritten. Types: f64, f32, bf16, f16, i64 and i32; narrow types are added in
// float32 and rounded after each addition (NCCL may add in its own order).
// Order: on a GPU an operation is enqueued on the stream and done when the stream has reached it,
// so that a CUDA graph can record it; on the CPU it is done when the call returns.
// Collective: all ranks of a communicator call the same operations in the same order with equal
// sizes and types. All ranks get the same bits. Ranks that take part in several communicators use
// them in the same order, too. One thread of a process at a time.
// Errors: CommunicationError, or DeviceError of the GPU. A peer that dies causes no error here:
// calls wait for it, and the rendezvous (rendezvous.h) ends the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/device/stream.h"
#include "src/device/tensor.h"
#include "src/parallel/control/errors.h"

namespace tally::train {

enum class Reduce : uint8_t { sum, max };

// Names and versions for the log and the record.
struct CommunicatorInfo {
  std::string backend;                // "single", "sockets", "mpi", "nccl"
  std::string version;                // "2.28.9", "Open MPI 4.1.4"; empty: part of this program
  std::vector<std::string> settings;  // "NCCL_NVLS_ENABLE=0": variables that the library reads
};

class OperationWatch;

// See Communicator::map_peers().
class PeerMapping {
 public:
  virtual ~PeerMapping() = default;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual CommunicatorInfo info() const = 0;
  // Whether every rank's GPU reads every other's memory over NVLink. A message is then so short
  // that overlapping it costs the kernels beside it more than waiting for it
  // (bench/notes/layouts.md).
  virtual bool linked() const { return false; }
  // Lets the other ranks read and write this rank's `memory`, where they can (GPUs of one host that
  // NVLink connects). While the result lives, operations on parts of `memory` go past the library:
  //   what start_...() starts: by copy engines, which take no SMs from the kernels beside them; sums
  //     of f32 and f64, and gathers
  //   other sums and gathers: by one kernel each (at most 8 ranks)
  // Every rank passes tensors of the same sizes in the same order, and later operations on the same
  // parts of them, on stream `s`. Null, on all ranks, where one of them cannot: everything stays as
  // it is. Collective, and not to be recorded; so is the result's destruction, which comes before
  // that of the memory, of `s` and of this. While an exception is thrown, it waits for nobody.
  std::unique_ptr<PeerMapping> map_peers(Stream& s, const std::vector<Tensor>& memory);
  // Whether a result of map_peers() lives, and how it carries messages.
  virtual bool uses_copy_engines() const { return false; }
  virtual bool uses_peer_kernels() const { return false; }

  // t becomes the sum (or maximum) of all ranks' t, element by element.
  void all_reduce(Stream& s, const Tensor& t, Reduce op = Reduce::sum);
  // t becomes root's t.
  void broadcast(Stream& s, const Tensor& t, int root);
  // whole = the parts of all ranks in their order; whole.numel == size() * part.numel. `part` may
  // be this rank's own part of `whole`.
  void all_gather(Stream& s, const Tensor& part, const Tensor& whole);
  // part = this rank's share of the reduced `whole`. Only that share of `whole` may be overwritten
  // (`part` may be that share).
  void reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part, Reduce op = Reduce::sum);
  // Point to point, for pipelines. The receiver's size and type are the sender's. send_receive does
  // both at once, so that neighbours can exchange without a deadlock.
  void send(Stream& s, const Tensor& t, int to);
  void receive(Stream& s, const Tensor& t, int from);
  void send_receive(Stream& s, const Tensor& out, int to, const Tensor& in, int from);
  // Returns when all ranks have called it and their streams have reached it.
  void barrier(Stream& s);

  // The same operations, overlapped with what is enqueued later. They start when `s` has reached
  // this point, one after the other, and their tensors must not be touched before wait(s). On the
  // CPU they are done at once.
  void start_all_reduce(Stream& s, const Tensor& t, Reduce op = Reduce::sum);
  void start_all_gather(Stream& s, const Tensor& part, const Tensor& whole);
  void start_reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part,
                            Reduce op = Reduce::sum);
  // A send() that overlaps with what is enqueued later, so that neighbours that send to each other
  // do not wait for each other. On a GPU `t` must not change before wait(s); on the CPU it has been
  // copied.
  void start_send(Stream& s, const Tensor& t, int to);
  // Makes what follows on `s` wait for everything that start_...() started.
  virtual void wait(Stream& s);
  // Operations between the two calls may be carried out together. The caller waits for nothing in
  // between.
  virtual void begin_group() {}
  virtual void end_group() {}

  // Groups: ranks with the same `color` get a communicator of their own, numbered by `key` and then
  // by rank here; a negative color gives null. Collective over all ranks; the groups must not
  // outlive this.
  std::unique_ptr<Communicator> split(int color, int key);
  // The same where every rank knows its group: `ranks` of this communicator, in the order of the
  // new numbers; without this rank: null. `name` is what messages call the group. Collective over
  // all ranks, and a rank that is in no group passes an empty list.
  std::unique_ptr<Communicator> subgroup(const std::vector<int>& ranks, const char* name);
  const std::string& name() const { return name_; }
  // Lets `watch` know from now on what this process waits for in this communicator and in the
  // groups that are made of it. `ranks`: those of the run, in this one's order. `watch` outlives
  // them.
  void report_to(OperationWatch* watch, std::vector<int> ranks);
  // Null where nobody watches.
  OperationWatch* watch() const { return watch_; }

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}
  // The operations, after their arguments were checked; never called for one rank alone.
  virtual void do_all_reduce(Stream& s, const Tensor& t, Reduce op) = 0;
  virtual void do_start_all_reduce(Stream& s, const Tensor& t, Reduce op) {
    do_all_reduce(s, t, op);
  }
  virtual void do_start_send(Stream& s, const Tensor& t, int to) = 0;
  virtual void do_broadcast(Stream& s, const Tensor& t, int root) = 0;
  virtual void do_all_gather(Stream& s, const Tensor& part, const Tensor& whole) = 0;
  virtual void do_start_all_gather(Stream& s, const Tensor& part, const Tensor& whole) {
    do_all_gather(s, part, whole);
  }
  virtual void do_reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part, Reduce op) = 0;
  virtual void do_start_reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part,
                                       Reduce op) {
    do_reduce_scatter(s, whole, part, op);
  }
  virtual std::unique_ptr<PeerMapping> do_map_peers(Stream& s, const std::vector<Tensor>& memory);
  // A tensor without memory is not sent or not received.
  virtual void do_send_receive(Stream& s, const Tensor& out, int to, const Tensor& in,
                               int from) = 0;
  virtual std::unique_ptr<Communicator> do_split(int color, int key) = 0;
  virtual std::unique_ptr<Communicator> do_subgroup(const std::vector<int>& ranks);

 private:
  void report_to(OperationWatch* watch, std::string id, std::vector<int> ranks);
  int rank_of_run(int rank) const;
  bool has_parts(Stream& s, const Tensor& part, const Tensor& whole) const;
  bool has_shares(Stream& s, const Tensor& whole, const Tensor& part) const;

  int rank_, size_;
  std::string name_ = "world";
  OperationWatch* watch_ = nullptr;
  int group_ = -1;  // index in watch_
  std::string id_;  // the same on all ranks of this communicator
  int groups_made_ = 0;
  std::vector<int> ranks_of_run_;  // empty: not known
};

// One rank: nothing is sent.
std::unique_ptr<Communicator> make_single_communicator();

class Rendezvous;
// Makes the communicator of a run. `name`: "nccl", "mpi" or "sockets". Collective over all ranks of
// the rendezvous; `device`: of this rank's tensors. `interface`: a network interface to use, "" for
// any. nccl and mpi are modules that are loaded only here, so that runs that do not use them need
// neither library. Throws CommunicationError with one sentence.
std::unique_ptr<Communicator> make_communicator(const std::string& name, Rendezvous& meeting,
                                                Device device, const std::string& interface);
// The reason why `name` is not available here, in one sentence; else "". Starts nothing: an MPI
// library without its own launcher ends the process when it starts.
std::string communicator_unavailable_reason(const std::string& name);

}  // namespace tally::train
