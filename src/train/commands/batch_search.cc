#include "src/train/commands/batch_search.h"

#include <algorithm>

namespace tally::train {

int64_t largest_that_fits(int64_t start, int64_t most, const std::function<bool(int64_t)>& fits) {
  const auto stride = [](int64_t n) { return std::max<int64_t>(1, n / 8); };
  int64_t good = 0, bad = most + 1, at = std::clamp<int64_t>(start, 1, most);
  // The search goes on until there is one that fits and one that does not.
  while (good < bad - 1) {
    if (fits(at)) {
      good = at;
      if (bad <= most || good == most) break;
      at = std::min(most, at + stride(at));
    } else {
      bad = at;
      if (good > 0 || bad == 1) break;
      at = std::max<int64_t>(1, at - stride(at));
    }
  }
  while (good < bad - 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace tally::train
