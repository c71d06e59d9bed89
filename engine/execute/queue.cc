#include "engine/execute/queue.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/presence.h"
#include "engine/base/text.h"

namespace tally {

Queue::Queue(const Benchmark& benchmark, int jobs, const std::vector<std::string>& gpus)
    : jobs_(std::max(1, jobs)), caps_(benchmark.steps.size()) {
  for (size_t i = 0; i < caps_.size(); ++i) {
    const Step& step = benchmark.steps[i];
    caps_[i].max_async = static_cast<int>(strtol(step.max_async.value.c_str(), nullptr, 10));
    caps_[i].procs = static_cast<int>(strtol(step.procs.value.c_str(), nullptr, 10));
    if (!step.until.metric.value.empty())
      caps_[i].first_decided = step.until.warmup + step.until.min;
  }
  find_gpus(gpus);
}

void Queue::find_gpus(const std::vector<std::string>& given) {
  free_gpus_ = given;
  if (const char* visible = getenv("CUDA_VISIBLE_DEVICES");
      free_gpus_.empty() && visible != nullptr) {
    for (std::string& gpu : split_strip(visible, ",")) {
      if (!gpu.empty()) free_gpus_.push_back(std::move(gpu));
    }
  } else if (free_gpus_.empty()) {
    std::vector<std::string> found;
    gpus_known_ = matching_paths("/dev/nvidia[0-9]*", &found);
    for (size_t i = 0; i < found.size(); ++i) free_gpus_.push_back(std::to_string(i));
  }
  gpu_count_ = free_gpus_.size();
}

void Queue::add(int id, int step, const Turn& turn) {
  step_of_[id] = step;
  if (turn.chain != 0) turns_[id] = turn;
  const bool first = turn.phase == 0 && turn.round == 0;
  (first ? queue_ : later_[turn.phase][turn.chain][turn.round]).push_back(id);
}

bool Queue::at_most_waiting(const Caps& caps) {
  return caps.max_async > 0 && caps.active >= caps.max_async;
}

bool Queue::held_back(int id, const Caps& caps) const {
  if (active_.count(id) != 0) return false;
  if (at_most_waiting(caps)) return true;
  return caps.procs > 1 && caps.active >= caps.procs;
}

// Whether the next round has repeats that may not be needed, which the running ones decide.
bool Queue::waits_for_results(const Rounds& rounds) const {
  const auto& [next_round, ids] = *rounds.begin();
  return std::ranges::any_of(ids, [&, round = next_round](int id) {
    const Caps& caps = caps_[static_cast<size_t>(step_of_.at(id))];
    return caps.first_decided > 0 && round >= caps.first_decided && caps.active > 0;
  });
}

// Whether nothing of an earlier phase runs. (Nothing of one is queued where it is asked.)
bool Queue::is_open_phase(int phase) const {
  return active_in_phase_.empty() || active_in_phase_.begin()->first >= phase;
}

// Moves the next round of no chain, or those of all chains that wait for nothing, into the queue.
// Returns whether there was any.
bool Queue::take_rounds() {
  if (later_.empty() || !is_open_phase(later_.begin()->first)) return false;
  std::map<int, Rounds>& chains = later_.begin()->second;
  std::vector<int> taken;
  for (auto chain = chains.begin(); chain != chains.end();) {
    Rounds& rounds = chain->second;
    const bool waits =
        chain->first == 0 ? waits_for_results(rounds) : active_in_chain_.count(chain->first) != 0;
    if (!waits) {
      const std::deque<int>& ids = rounds.begin()->second;
      taken.insert(taken.end(), ids.begin(), ids.end());
      rounds.erase(rounds.begin());
    }
    chain = rounds.empty() ? chains.erase(chain) : std::next(chain);
  }
  if (chains.empty()) later_.erase(later_.begin());
  // Repeats of several chains take turns: their numbers do.
  if (!turns_.empty()) std::ranges::sort(taken);
  queue_.insert(queue_.end(), taken.begin(), taken.end());
  return !taken.empty();
}

int Queue::next(int running) {
  if (!open_) return -1;
  for (;;) {
    // A chain that is running now would fall behind the others, whose rounds would be taken without it.
    const bool no_room = running >= jobs_ && !turns_.empty();
    if (queue_.empty() && (no_room || !take_rounds())) return -1;
    const int id = queue_.front();
    Caps& caps = caps_[static_cast<size_t>(step_of_[id])];
    if (held_back(id, caps)) {
      queue_.pop_front();
      caps.held.push_back(id);
      continue;
    }
    // procs raises the engine's limit while only workpackages of one step run, as JUBE's pool does.
    const bool in_pool = caps.procs > 1 && running <= caps.active && running < caps.procs;
    if (running >= jobs_ && !in_pool) return -1;
    queue_.pop_front();
    step_of_.erase(id);
    return id;
  }
}

void Queue::started(int id, int step) {
  if (!active_.emplace(id, true).second) return;
  ++caps_[static_cast<size_t>(step)].active;
  if (const auto turn = turns_.find(id); turn != turns_.end()) {
    ++active_in_chain_[turn->second.chain];
    ++active_in_phase_[turn->second.phase];
  }
}

void Queue::ended(int id, int step) {
  Caps& caps = caps_[static_cast<size_t>(step)];
  if (active_.erase(id) != 0) {
    --caps.active;
    const auto leave = [](std::map<int, int>& counts, int key) {
      if (--counts[key] == 0) counts.erase(key);
    };
    if (const auto turn = turns_.find(id); turn != turns_.end()) {
      leave(active_in_chain_, turn->second.chain);
      leave(active_in_phase_, turn->second.phase);
    }
  }
  if (!caps.held.empty()) {
    queue_.push_front(caps.held.front());
    caps.held.pop_front();
  }
  if (const auto gpus = gpus_of_.find(id); gpus != gpus_of_.end()) {
    free_gpus_.insert(free_gpus_.end(), gpus->second.begin(), gpus->second.end());
    std::ranges::sort(free_gpus_);
    gpus_of_.erase(gpus);
    queue_.insert(queue_.begin(), held_for_gpus_.begin(), held_for_gpus_.end());
    held_for_gpus_.clear();
  }
}

const char* Queue::what_holds(int step) const {
  const Caps& caps = caps_[static_cast<size_t>(step)];
  if (!caps.held.empty()) return at_most_waiting(caps) ? "max_async" : "procs";
  for (const int id : held_for_gpus_) {
    if (step_of_.at(id) == step) return "gpu_slots";
  }
  return nullptr;
}

void Queue::keep_waiting(int step) {
  ++caps_[static_cast<size_t>(step)].active;
}

Queue::Gpus Queue::take_gpus(int id, int step, int count) {
  const auto wanted = static_cast<size_t>(count);
  if (wanted > gpu_count_) return Gpus::never;
  if (wanted > free_gpus_.size()) {
    step_of_[id] = step;
    held_for_gpus_.push_back(id);
    return Gpus::later;
  }
  const auto end = free_gpus_.begin() + count;
  gpus_of_[id] = {free_gpus_.begin(), end};
  free_gpus_.erase(free_gpus_.begin(), end);
  return Gpus::taken;
}

std::vector<std::string> Queue::gpus_of(int id) const {
  const auto found = gpus_of_.find(id);
  return found != gpus_of_.end() ? found->second : std::vector<std::string>();
}

}  // namespace tally
