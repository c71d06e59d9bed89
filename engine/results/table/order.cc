#include <algorithm>

#include "engine/results/table/columns.h"

namespace tally {
namespace {

// JUBE's comparison of rows. The first key in which they differ decides. None against anything, and
// a number against a string, are unordered. This is not a valid ordering, so the result depends on
// the sort algorithm. This class does what Python's sort does for up to 63 rows (takes the first
// run, then inserts), and merges beyond that.
class RowOrder {
 public:
  explicit RowOrder(const std::vector<std::string>& keys) : keys_(keys) {}
  bool operator()(const Record& a, const Record& b) const {
    for (const std::string& key : keys_) {
      const Value& x = a.values.at(key);
      const Value& y = b.values.at(key);
      if (x == y) continue;
      return less(x, y);
    }
    return false;
  }

 private:
  const std::vector<std::string>& keys_;
};

using Order = std::vector<size_t>;

void insertion_sort(Order& order, size_t from, size_t to, size_t sorted,
                    const std::vector<Record>& rows, const RowOrder& before) {
  for (size_t i = sorted; i < to; ++i) {
    size_t pivot = order[i];
    size_t low = from;
    size_t high = i;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (before(rows[pivot], rows[order[middle]])) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    for (size_t j = i; j > low; --j) order[j] = order[j - 1];
    order[low] = pivot;
  }
}

// Finds the run that starts at `from`: ascending, or strictly descending and then reversed. Returns
// its end.
size_t take_run(Order& order, size_t from, size_t to, const std::vector<Record>& rows,
                const RowOrder& before) {
  size_t end = from + 1;
  if (end >= to) return to;
  bool down = before(rows[order[end]], rows[order[end - 1]]);
  ++end;
  while (end < to && before(rows[order[end]], rows[order[end - 1]]) == down) ++end;
  if (down) {
    std::reverse(order.begin() + static_cast<std::ptrdiff_t>(from),
                 order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return end;
}

}  // namespace

void sort_rows(const std::vector<std::string>& keys, std::vector<Record>& rows) {
  if (keys.empty() || rows.size() < 2) return;
  RowOrder before(keys);
  Order order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  constexpr size_t kBlock = 64;
  if (rows.size() < kBlock) {
    size_t sorted = take_run(order, 0, order.size(), rows, before);
    insertion_sort(order, 0, order.size(), sorted, rows, before);
  } else {
    for (size_t from = 0; from < order.size(); from += kBlock) {
      insertion_sort(order, from, std::min(from + kBlock, order.size()), from + 1, rows, before);
    }
    Order merged(order.size());
    for (size_t width = kBlock; width < order.size(); width *= 2) {
      for (size_t from = 0; from < order.size(); from += 2 * width) {
        size_t middle = std::min(from + width, order.size());
        size_t to = std::min(from + 2 * width, order.size());
        size_t i = from;
        size_t j = middle;
        for (size_t k = from; k < to; ++k) {
          bool right = i == middle || (j < to && before(rows[order[j]], rows[order[i]]));
          merged[k] = order[right ? j++ : i++];
        }
      }
      std::swap(order, merged);
    }
  }
  std::vector<Record> sorted;
  sorted.reserve(rows.size());
  for (size_t i : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

}  // namespace tally
