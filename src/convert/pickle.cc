#include "src/convert/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/convert/byte_reader.h"

namespace tally::train {
namespace {

using Kind = PickleValue::Kind;

// A pickle of ten thousand tensors has a megabyte or two.
constexpr size_t kLargestPickle = size_t{16} << 20;

constexpr const char* kStorages[] = {
    "torch.FloatStorage", "torch.DoubleStorage", "torch.HalfStorage",  "torch.BFloat16Storage",
    "torch.LongStorage",  "torch.IntStorage",    "torch.ShortStorage", "torch.CharStorage",
    "torch.ByteStorage",  "torch.BoolStorage"};
constexpr const char* kOrderedDict = "collections.OrderedDict";
constexpr const char* kTensor = "torch._utils._rebuild_tensor_v2";
constexpr const char* kParameter = "torch._utils._rebuild_parameter";

bool is_known(const std::string& name) {
  return name == kOrderedDict || name == kTensor || name == kParameter ||
         std::any_of(std::begin(kStorages), std::end(kStorages),
                     [&](const char* storage) { return name == storage; });
}

// Names may hold any bytes, and messages hold text.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 100)) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

}  // namespace

const PickleValue* PickleValue::find(std::string_view key) const {
  for (size_t i = items.size(); i >= 2; i -= 2)
    if (items[i - 2]->kind == Kind::text && items[i - 2]->text == key) return items[i - 1];
  return nullptr;
}

// Pickle's stack machine, without the opcodes that call or import.
class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, uint64_t offset, Pickle* out)
      : in_(bytes), offset_(offset), out_(*out) {}

  const PickleValue* run() {
    for (;;) {
      at_ = in_.position();
      const auto opcode = in_.take<uint8_t>();
      if (opcode == '.') return pop();
      if (!constant(opcode) && !container(opcode) && !memory(opcode) && !object(opcode))
        refuse(fmt::format("the pickle opcode 0x{:02x}", opcode));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw DamagedData(
        fmt::format("byte {} has {}, which does not belong to a dictionary of tensors and is never "
                    "executed: save "
                    "the model's state_dict() alone",
                    offset_ + at_, what));
  }
  [[noreturn]] void malformed() const {
    throw DamagedData(fmt::format("its pickle is malformed at byte {}", offset_ + at_));
  }

  PickleValue* make(Kind kind) {
    out_.values_.emplace_back().kind = kind;
    return &out_.values_.back();
  }
  void push(PickleValue* value) { stack_.push_back(value); }
  void push_integer(Kind kind, int64_t value) {
    push(make(kind));
    stack_.back()->integer = value;
  }
  void push_text(uint64_t bytes) {
    push(make(Kind::text));
    stack_.back()->text = in_.take(bytes);
  }
  // The values above the last mark may be popped.
  PickleValue* pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) malformed();
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  PickleValue* pop(Kind kind) {
    PickleValue* value = pop();
    if (value->kind != kind) malformed();
    return value;
  }
  std::vector<const PickleValue*> pop_to_mark() {
    if (marks_.empty()) malformed();
    std::vector<const PickleValue*> values(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()),
                                           stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return values;
  }
  PickleValue* top(Kind kind) {
    PickleValue* value = pop(kind);
    stack_.push_back(value);
    return value;
  }

  bool constant(uint8_t opcode);
  bool container(uint8_t opcode);
  bool memory(uint8_t opcode);
  bool object(uint8_t opcode);
  int64_t take_long();
  void push_tuple(size_t count);
  void append(Kind kind, const std::vector<const PickleValue*>& values);
  void push_global(std::string_view module, std::string_view name);
  void push_storage();
  void reduce();

  ByteReader in_;
  uint64_t offset_;
  size_t at_ = 0;  // the opcode's position
  Pickle& out_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleValue*> memo_;
};

int64_t PickleMachine::take_long() {
  const std::string_view bytes = in_.take(in_.take<uint8_t>());
  if (bytes.size() > sizeof(int64_t)) refuse("an integer of more than 64 bits");
  int64_t value = !bytes.empty() && (bytes.back() & 0x80) != 0 ? -1 : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

bool PickleMachine::constant(uint8_t opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (in_.take<uint8_t>() > 5) refuse("a later version of the pickle format");
      return true;
    case 0x95:  // FRAME
      in_.take(8);
      return true;
    case 'N':
      push(make(Kind::none));
      return true;
    case 0x88:
    case 0x89:
      push_integer(Kind::boolean, opcode == 0x88 ? 1 : 0);
      return true;
    case 'J':
      push_integer(Kind::integer, in_.take<int32_t>());
      return true;
    case 'K':
      push_integer(Kind::integer, in_.take<uint8_t>());
      return true;
    case 'M':
      push_integer(Kind::integer, in_.take<uint16_t>());
      return true;
    case 0x8a:
      push_integer(Kind::integer, take_long());
      return true;
    case 'G':  // a float, whose value nothing needs
      in_.take(8);
      push(make(Kind::real));
      return true;
    case 'X':
      push_text(in_.take<uint32_t>());
      return true;
    case 0x8c:
    case 'U':
      push_text(in_.take<uint8_t>());
      return true;
    case 0x8d:
      push_text(in_.take<uint64_t>());
      return true;
    default:
      return false;
  }
}

void PickleMachine::push_tuple(size_t count) {
  PickleValue* tuple = make(Kind::tuple);
  for (size_t i = 0; i < count; ++i) tuple->items.push_back(pop());
  std::reverse(tuple->items.begin(), tuple->items.end());
  push(tuple);
}

void PickleMachine::append(Kind kind, const std::vector<const PickleValue*>& values) {
  PickleValue* to = top(kind);
  if (kind == Kind::dict && values.size() % 2 != 0) malformed();
  to->items.insert(to->items.end(), values.begin(), values.end());
}

bool PickleMachine::container(uint8_t opcode) {
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case ')':
      push_tuple(0);
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      push_tuple(opcode - 0x84U);
      return true;
    case 't': {
      std::vector<const PickleValue*> values = pop_to_mark();
      push(make(Kind::tuple));
      stack_.back()->items = std::move(values);
      return true;
    }
    case ']':
      push(make(Kind::list));
      return true;
    case '}':
      push(make(Kind::dict));
      return true;
    case 'a':
      append(Kind::list, {pop()});
      return true;
    case 'e':
      append(Kind::list, pop_to_mark());
      return true;
    case 's': {
      const PickleValue* value = pop();
      append(Kind::dict, {pop(), value});
      return true;
    }
    case 'u':
      append(Kind::dict, pop_to_mark());
      return true;
    default:
      return false;
  }
}

bool PickleMachine::memory(uint8_t opcode) {
  const auto keep = [&](uint64_t offset) {
    PickleValue* value = pop();
    push(value);
    memo_[offset] = value;
  };
  const auto recall = [&](uint64_t offset) {
    const auto found = memo_.find(offset);
    if (found == memo_.end()) malformed();
    push(found->second);
  };
  if (opcode == 'q')
    keep(in_.take<uint8_t>());
  else if (opcode == 'r')
    keep(in_.take<uint32_t>());
  else if (opcode == 0x94)
    keep(memo_.size());
  else if (opcode == 'h')
    recall(in_.take<uint8_t>());
  else if (opcode == 'j')
    recall(in_.take<uint32_t>());
  else
    return false;
  return true;
}

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  std::string whole = std::string(module) + "." + std::string(name);
  if (!is_known(whole)) refuse(fmt::format("the global '{}'", printable(whole)));
  out_.names_.push_back(std::move(whole));
  push(make(Kind::global));
  stack_.back()->text = out_.names_.back();
}

void PickleMachine::push_storage() {
  const std::vector<const PickleValue*>& id = pop(Kind::tuple)->items;
  if (id.size() != 5 || id[0]->kind != Kind::text || id[0]->text != "storage" ||
      id[1]->kind != Kind::global || id[2]->kind != Kind::text || id[4]->kind != Kind::integer)
    refuse("a persistent id that is not a storage");
  PickleValue* storage = make(Kind::storage);
  storage->items = {id[1], id[2], id[4]};
  push(storage);
}

// The known functions are those that build tensors, which are built here.
void PickleMachine::reduce() {
  const std::vector<const PickleValue*>& arguments = pop(Kind::tuple)->items;
  PickleValue* function = pop();
  const std::string_view name = function->kind == Kind::global ? function->text : "";
  if (name == kOrderedDict && arguments.empty()) return push(make(Kind::dict));
  if (name == kParameter && !arguments.empty() && arguments[0]->kind == Kind::tensor) {
    PickleValue* tensor = make(Kind::tensor);
    tensor->items = arguments[0]->items;
    return push(tensor);
  }
  if (name != kTensor || arguments.size() < 6 || arguments[0]->kind != Kind::storage ||
      arguments[1]->kind != Kind::integer || arguments[2]->kind != Kind::tuple ||
      arguments[3]->kind != Kind::tuple)
    refuse(name.empty() ? std::string("a call of something that is not a global")
                        : fmt::format("a call of '{}' with other arguments", name));
  PickleValue* tensor = make(Kind::tensor);
  tensor->items.assign(arguments.begin(), arguments.begin() + 4);
  push(tensor);
}

bool PickleMachine::object(uint8_t opcode) {
  switch (opcode) {
    case 'c': {
      const std::string_view module = in_.take_line();
      push_global(module, in_.take_line());
      return true;
    }
    case 0x93: {
      const PickleValue* name = pop(Kind::text);
      push_global(pop(Kind::text)->text, name->text);
      return true;
    }
    case 'Q':
      push_storage();
      return true;
    case 'R':
      reduce();
      return true;
    case 'b':  // attributes of an OrderedDict: the versions of modules, which nothing needs
      pop();
      top(Kind::dict);
      return true;
    default:
      return false;
  }
}

Pickle::Pickle(std::string_view bytes, uint64_t offset) {
  if (bytes.size() > kLargestPickle)
    throw DamagedData(fmt::format(
        "its pickle has {} bytes, and at most {} are read: save the model's state_dict() alone",
        bytes.size(), kLargestPickle));
  root_ = PickleMachine(bytes, offset, this).run();
}

}  // namespace tally::train
