// One process that does the work of one rank of many: its communicators send nothing, move nothing,
// and write down what they would have sent. The other ranks' parts are numbers that were put there
// once, so that every kernel has finite and busy operands. For measuring a layout on one device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "src/parallel/collectives/communicator.h"

namespace tally::train {

enum class MessageKind : uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  send,
  receive
};

// The messages between one rank and the others of a group, in one direction.
struct Messages {
  std::string group;  // "tensor", "data", ...
  MessageKind kind = MessageKind::all_reduce;
  int ranks = 1;      // size of the group
  int64_t calls = 0;  // so far
  double bytes = 0;   // size of the whole tensors: all ranks' parts of a gather, one's of a sum
  // Bytes that one rank sends, by a ring: 2 (n - 1) / n of a sum, (n - 1) / n of a gather or a
  // scatter (Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms"), all of a message;
  // and the steps in which it does so.
  double bytes_sent() const;
  double steps() const;
};

class RehearsalLedger {
 public:
  void add(const std::string& group, MessageKind kind, int ranks, double bytes);
  void clear() { messages_.clear(); }
  std::vector<Messages> messages() const;

 private:
  std::map<std::tuple<std::string, MessageKind, int>, Messages> messages_;
};

// Rank `rank` of `size`. `ledger` outlives it.
std::unique_ptr<Communicator> make_rehearsal_communicator(int rank, int size,
                                                          RehearsalLedger* ledger);

}  // namespace tally::train
