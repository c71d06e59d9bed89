// A model's weights in Hugging Face's format, written by several processes into one file.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "src/checkpoint/hugging_face_parameters.h"
#include "src/checkpoint/model_weights.h"

namespace tally::train {
namespace {

// A file that several processes write to. It is opened for writing alone: on a network file system
// a process that may also read writes whole pages, with the bytes of others as it knows them.
class SharedFile {
 public:
  SharedFile(std::string path, int flags)
      : path_(std::move(path)), fd_(open(path_.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666)) {
    if (fd_ < 0) fail("cannot be written");
  }
  ~SharedFile() { close(fd_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void write(size_t at, const char* data, size_t bytes) const {
    while (bytes > 0) {
      const ssize_t written = pwrite(fd_, data, bytes, static_cast<off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("cannot be written");
      at += static_cast<size_t>(written);
      data += written;
      bytes -= static_cast<size_t>(written);
    }
  }
  void resize(size_t bytes) const {
    if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail("cannot be made as large as needed");
  }
  void sync() const {
    if (fsync(fd_) != 0) fail("cannot be flushed to disk");
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error(fmt::format("'{}' {}: {}", path_, what, std::strerror(errno)));
  }
  std::string path_;
  int fd_;
};

SafetensorsOutline outline_of(const ParameterState& state) {
  std::vector<TensorSource> tensors;
  for (const Parameter& p : state.model ? *state.model : *state.parameters)
    for (const StoredPart& part : stored_parts(p))
      tensors.push_back({part.tensor.name, state.weights.dtype, part.shape, nullptr});
  return safetensors_outline(&tensors);
}

// The host's copy of this process's part, in the order in which it is stored.
std::vector<char> fetch_part(const ParameterState& state, const Parameter& p, Stream& stream) {
  const Tensor range = parameter_range(state.weights, p);
  std::vector<char> host(range.bytes());
  stream.copy(host.data(), range.data, host.size());
  stream.synchronize();
  if (!p.transposed) return host;
  std::vector<char> turned(host.size());
  transpose(host.data(), range.dim(0), range.dim(1), size_of(range.dtype), turned.data());
  return turned;
}

}  // namespace

uint64_t make_model_file(const std::string& path, const ParameterState& state) {
  const SafetensorsOutline outline = outline_of(state);
  const SharedFile file(path, O_CREAT | O_TRUNC);
  file.write(0, outline.header.data(), outline.header.size());
  file.resize(outline.bytes);
  file.sync();
  return outline.bytes;
}

void write_model_part(const std::string& path, const ParameterState& state, Stream& stream) {
  const SafetensorsOutline outline = outline_of(state);
  const SharedFile file(path, 0);
  const size_t element = size_of(state.weights.dtype);
  for (const Parameter& p : *state.parameters) {
    if (p.copy) continue;
    const std::vector<char> held = fetch_part(state, p, stream);
    for (const StoredPart& part : stored_parts(p)) {
      const size_t at = outline.offsets.at(part.tensor.name);
      for (const ElementRun& run : part.runs)
        file.write(at + static_cast<size_t>(run.global) * element,
                   held.data() + static_cast<size_t>(run.local) * element,
                   static_cast<size_t>(run.count) * element);
    }
  }
  file.sync();
}

}  // namespace tally::train
