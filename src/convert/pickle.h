// The part of Python's pickle format that torch.save() writes for dictionaries of tensors
// (pickletools of CPython describes the opcodes; torch/serialization.py and torch/_utils.py what
// PyTorch makes of them). The reader imports, calls and executes nothing: the few functions that
// build tensors are known by name, and every other name is refused.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tally::train {

struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,     // items: key, value, key, value, ...
    global,   // text: its name, as "torch.FloatStorage"
    storage,  // items: global of its type, text of its key, integer of its elements
    tensor,   // items: storage, integer of its first element, tuples of sizes and strides
  };
  Kind kind = Kind::none;
  int64_t integer = 0;
  std::string_view text;
  std::vector<const PickleValue*> items;

  // The value of a text key of a dict, the last where there are several; null: there is none.
  const PickleValue* find(std::string_view key) const;
};

// The values of a pickle. They live as long as it does. Memory is linear in the pickle's size.
class Pickle {
 public:
  // `bytes` must outlive it. `offset`: of the first byte in its file, for messages. Throws
  // DamagedData, among others for a name that is not known, with its offset in the file.
  Pickle(std::string_view bytes, uint64_t offset);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;
  const PickleValue& root() const { return *root_; }

 private:
  friend class PickleMachine;

  std::deque<PickleValue> values_;
  std::deque<std::string> names_;  // names of globals
  const PickleValue* root_ = nullptr;
};

}  // namespace tally::train
