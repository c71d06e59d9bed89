// Workflows drawn at random, as YAML: a seed gives the same text at every call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::testing {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // 0 to below - 1.
  int below(int limit) { return static_cast<int>(next() % static_cast<uint64_t>(limit)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename List>
  const typename List::value_type& pick(const List& list) {
    return list[static_cast<size_t>(below(static_cast<int>(list.size())))];
  }

 private:
  uint64_t state_;
};

// A line of YAML with the lines below it, so that a failing workflow can be made smaller by leaving
// elements out.
struct Node {
  std::string text;
  std::vector<Node> children;
};
std::string render(const Node& root);
// All workflows that have one element less, as paths to that element; the largest elements first.
using Path = std::vector<size_t>;
std::vector<Path> elements(const Node& root);
Node without(Node root, const Path& path);

struct Drawing {
  Node root;
  Node long_form;  // of a short form: the same workflow, without files, patterns and tables
  std::vector<std::string> tags;  // that are set
};
// A sixth of the seeds are in the short form.
Drawing draw(uint64_t seed);
Drawing draw_short(uint64_t seed);

// What lies beside the workflow: a template, and a file with a set that others begin with.
inline constexpr const char* template_name = "template.in";
inline constexpr const char* common_name = "common.yaml";
inline constexpr const char* common_text =
    "parameterset:\n"
    "  - name: common\n"
    "    parameter:\n"
    "      - {name: c0, type: int, _: \"4,5\"}\n"
    "      - {name: c1, export: true, _: \"from_${c0}_in_${jube_step_name}\"}\n";
// Every line names one parameter as #name#; see the substitution sets.
std::string template_text();

}  // namespace tally::testing
