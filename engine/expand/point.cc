#include "engine/expand/point.h"

namespace tally {

TextId TextPool::intern(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<TextId>(texts_.size());
  texts_.emplace_back(text);
  // The key is a view of the stored text. That is safe because a deque never moves its elements.
  ids_.emplace(texts_.back(), id);
  return id;
}

const Binding* find_binding(const Point& point, const TextPool& pool, std::string_view name) {
  const std::string_view other = without_platform_prefix(name);
  const Binding* found = nullptr;
  for (const Binding& binding : point.bindings) {
    const std::string& own = pool[binding.name];
    if (own == name) return &binding;
    if (!other.empty() && own == other) found = &binding;
  }
  return found;
}

}  // namespace tally
