#include "src/measure/build_info.h"

#include <fmt/format.h>

#include "git_commit.h"
#include "src/ops/build_features.h"

namespace tally::train {

BuildInfo build_info() {
  return {TALLY_VERSION,    TALLY_GIT_COMMIT,    TALLY_COMPILER,
          TALLY_BUILD_TYPE, TALLY_TORCH_VERSION, TALLY_CUDA_VERSION};
}

std::string version_text() {
  const BuildInfo b = build_info();
  return fmt::format("tally-train {} (commit {})\nLibTorch {}\nCUDA {}\n{}\nbuilt with {}, {}\n",
                     b.version, b.commit, b.libtorch, b.cuda.empty() ? "none" : b.cuda,
                     describe(build_features()), b.compiler, b.build_type);
}

}  // namespace tally::train
