// The tensors of a checkpoint in another format, as views of its mapped files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/data/text/mapped_file.h"
#include "src/device/tensor.h"

namespace tally::train {

struct SourceTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape,
      strides;                 // strides in elements; the last is the fastest in the output
  const char* data = nullptr;  // its first element

  int64_t elements() const;
  // Row major without gaps.
  bool contiguous() const;
  // Writes elements() numbers, row major.
  void copy_to(char* out) const;
};

struct SourceWeights {
  std::vector<std::unique_ptr<MappedFile>> files;  // the tensors are views of them
  std::vector<SourceTensor> tensors;
  std::vector<std::string> left_out;  // tensors that are not weights, by name

  // Maps PATH. Throws std::runtime_error that names the file.
  const MappedFile& map(const std::string& path);
};

}  // namespace tally::train
