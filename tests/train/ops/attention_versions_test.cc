// The version of attention that each pass takes on a GPU.
#include <doctest/doctest.h>

#include "src/ops/attention/gpu_versions.h"

namespace tally::train {
namespace {

AttentionShape shape_of(int64_t head_dim, int64_t tokens, int64_t groups, double dropout) {
  AttentionShape a{1, tokens, 8, head_dim, AttentionMask::causal, 0.1, dropout};
  a.groups = groups;
  return a;
}

AttentionVersion backward_of(const AttentionShape& a, bool has_cudnn = true) {
  return choose_backward(a, AttentionVersion::hopper, [&](AttentionVersion v) {
    return has_cudnn && v == AttentionVersion::cudnn;
  });
}

TEST_CASE(
    "attention: cuDNN's backward pass follows ours where it is faster and has no mask to share") {
  using Version = AttentionVersion;
  CHECK(backward_of(shape_of(128, 4096, 8, 0)) == Version::hopper);
  CHECK(backward_of(shape_of(128, 8192, 8, 0)) == Version::cudnn);
  CHECK(backward_of(shape_of(128, 1024, 2, 0)) == Version::cudnn);
  CHECK(backward_of(shape_of(128, 8192, 2, 0.1)) == Version::hopper);
  CHECK(backward_of(shape_of(64, 8192, 2, 0)) == Version::hopper);
  CHECK(backward_of(shape_of(128, 8192, 2, 0), false) == Version::hopper);
  const auto all = [](AttentionVersion) { return true; };
  CHECK(choose_backward(shape_of(128, 8192, 2, 0), Version::unfused, all) == Version::unfused);
}

}  // namespace
}  // namespace tally::train
