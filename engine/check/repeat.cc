#include "engine/check/repeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engine/check/elements.h"

namespace tally {
namespace {

// A whole number of at least `least` in a key of `repeat`; `otherwise` if there is none.
int count_of(const Element& element, const char* key, int least, int otherwise,
             Diagnostics& diagnostics) {
  const Text text = attribute_text(element, key);
  if (text.value.empty()) return otherwise;
  const bool digits =
      text.value.size() < 7 && text.value.find_first_not_of("0123456789") == std::string::npos;
  const int count = digits ? std::atoi(text.value.c_str()) : -1;
  if (count >= least) return count;
  diagnostics.error(text.mark, fmt::format("repeat: {}: '{}' is not a whole number of at least {}",
                                           key, text.value, least));
  return otherwise;
}

void read_until(const Element& element, RepeatUntil* until, Diagnostics& diagnostics) {
  until->metric = attribute_text(element, "metric");
  const Text width = attribute_text(element, "half_width");
  char* end = nullptr;
  until->half_width = std::strtod(width.value.c_str(), &end) / 100;
  const bool read = end != width.value.c_str() && std::string_view(end) == "%";
  if (width.value.empty() || (read && until->half_width > 0 && until->half_width < 1)) return;
  diagnostics.error(width.mark,
                    fmt::format("until: half_width: '{}' is not a percentage between "
                                "0% and 100%",
                                width.value),
                    "write it as 1% or 0.5%");
}

}  // namespace

void read_repeat(const Element& element, Step* s, Diagnostics& diagnostics) {
  s->repeat = text_of(element);
  const bool keys = !element.attributes.empty() || !element.children.empty();
  if (!keys) return;
  for (const Element& child : element.children) {
    if (child.name == "until") read_until(child, &s->until, diagnostics);
  }
  const bool until = !s->until.metric.value.empty();
  s->until.warmup = count_of(element, "warmup", 0, 0, diagnostics);
  const bool in_text = !s->repeat.value.empty();
  const int most = count_of(element, "max", 1, 0, diagnostics);
  constexpr int kFewestWithInterval = 6;
  s->until.min = count_of(element, "min", 1, kFewestWithInterval, diagnostics);
  if (in_text || most == 0) {
    diagnostics.error(
        element.mark,
        fmt::format("repeat of step '{}': {}", s->name.value,
                    in_text ? "a number and keys exclude each other" : "it needs `max`"),
        "repeat: {max: 10, warmup: 1}");
  } else if (!until && element.find("min") != nullptr) {
    diagnostics.error(element.mark, "repeat: `min` needs `until`",
                      "until: {metric: NAME, half_width: 1%}");
  } else if (until && s->until.min > most) {
    diagnostics.error(element.mark,
                      fmt::format("repeat: min ({}) is greater than max ({})", s->until.min, most));
  } else if (s->iterations.value != "1") {
    diagnostics.error(element.mark, "repeat with keys and `iterations` exclude each other",
                      "leave out iterations");
  }
  s->repeat = {std::to_string(s->until.warmup + std::max(most, 1)), element.mark};
}

}  // namespace tally
