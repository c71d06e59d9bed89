#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/parallel/control/operations.h"
#include "src/parallel/control/rendezvous_wire.h"

namespace tally::train {
namespace {

constexpr size_t most_named = 8;

std::string list_of(const std::vector<int>& ranks) {
  if (ranks.size() <= 2 * most_named)
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
  return fmt::format("{} ranks: {}, ..., {}", ranks.size(),
                     fmt::join(ranks.begin(), ranks.begin() + most_named, ", "), ranks.back());
}

std::string title(const GroupCalls& g) {
  const std::string ranks = g.ranks.empty() ? "" : fmt::format(" ({})", list_of(g.ranks));
  if (g.name == "world") return "the group of all ranks" + ranks;
  return fmt::format("the {}{} group{}", g.name, g.name == "embedding" ? "" : " parallel", ranks);
}

const GroupCalls* group_of(const RankActivity& rank, const std::string& id) {
  for (const GroupCalls& g : rank.groups)
    if (g.id == id) return &g;
  return nullptr;
}

// Says what a rank does while others wait for it.
std::string describe(const RankActivity& rank) {
  if (!rank.known) return "does not answer";
  std::string text;
  if (rank.operation.empty()) {
    text = rank.task.empty() ? "waits for no other rank" : rank.task;
  } else if (rank.group < 0) {
    text = "waits for its " + rank.operation;
  } else {
    text = fmt::format("waits in {} of {}", rank.operation,
                       title(rank.groups[static_cast<size_t>(rank.group)]));
  }
  return rank.iteration > 0 ? fmt::format("is in iteration {} and {}", rank.iteration, text) : text;
}

// One rank that waits, and what it waits for.
struct Wait {
  int rank = 0;
  std::vector<int> missing;       // ranks that have not begun the operation
  std::vector<int> elsewhere;     // ranks that have begun another one instead
  std::vector<std::string> what;  // the operation of each of `elsewhere`
  // The cause rather than a consequence: somebody who waits for nobody is missing, or the ranks
  // have called different operations.
  bool is_cause = false;
  int consequences = 0;  // missing ranks that wait themselves
};

// The peer of "receive from rank 3".
int peer_in(const std::string& operation) {
  const size_t at = operation.rfind(" rank ");
  return at == std::string::npos ? -1 : std::stoi(operation.substr(at + 6));
}

Wait find_missing(const std::vector<RankActivity>& ranks, int rank) {
  const RankActivity& me = ranks[static_cast<size_t>(rank)];
  Wait wait;
  wait.rank = rank;
  if (me.group < 0) return wait;
  const GroupCalls& mine = me.groups[static_cast<size_t>(me.group)];
  const int peer = peer_in(me.operation);
  for (const int r : mine.ranks) {
    if (r == rank || (peer >= 0 && r != peer)) continue;
    const RankActivity& other = ranks[static_cast<size_t>(r)];
    const GroupCalls* theirs = group_of(other, mine.id);
    if (theirs == nullptr || theirs->calls < mine.calls) {
      wait.missing.push_back(r);
      const bool waits = other.known && !other.operation.empty();
      wait.is_cause = wait.is_cause || !waits;
      wait.consequences += waits ? 1 : 0;
    } else if (peer < 0 && theirs->calls == mine.calls && theirs->last != me.operation) {
      wait.elsewhere.push_back(r);
      wait.what.push_back(theirs->last);
      wait.is_cause = true;
    }
  }
  return wait;
}

std::string sentence(const std::vector<RankActivity>& ranks, const Wait& wait) {
  const RankActivity& me = ranks[static_cast<size_t>(wait.rank)];
  std::string text;
  if (me.group < 0) {
    std::vector<std::string> last;
    for (const GroupCalls& g : me.groups)
      if (g.calls > 0 && g.id != "exchange")
        last.push_back(fmt::format("{} of {}", g.last, title(g)));
    text = fmt::format("it has waited for its {} for {:.0f} s", me.operation, me.seconds);
    if (!last.empty())
      text += fmt::format(", which may wait in the last {}", fmt::join(last, ", "));
  } else {
    const GroupCalls& mine = me.groups[static_cast<size_t>(me.group)];
    text = fmt::format("it has waited for {:.0f} s in {} of {}", me.seconds, me.operation,
                       title(mine));
  }
  for (size_t i = 0; i < std::min(most_named, wait.missing.size()); ++i)
    text += fmt::format("; rank {} did not come: it {}", wait.missing[i],
                        describe(ranks[static_cast<size_t>(wait.missing[i])]));
  if (wait.missing.size() > most_named)
    text += fmt::format("; {} other ranks did not come", wait.missing.size() - most_named);
  for (size_t i = 0; i < std::min(most_named, wait.elsewhere.size()); ++i)
    text += fmt::format("; rank {} called {} instead", wait.elsewhere[i], wait.what[i]);
  return text + "; --distributed-timeout-minutes sets the limit";
}

}  // namespace

std::optional<Failure> explain_wait(const std::vector<RankActivity>& ranks, double limit_seconds) {
  std::optional<Wait> chosen;
  bool too_long = false;
  for (const RankActivity& rank : ranks) {
    if (rank.operation.empty() && !rank.task.empty()) return std::nullopt;
    too_long = too_long || (!rank.operation.empty() && rank.seconds > limit_seconds);
  }
  if (!too_long) return std::nullopt;
  for (size_t r = 0; r < ranks.size(); ++r) {
    // The rank that waits for the cause may have begun a little later than the first one.
    if (ranks[r].operation.empty() || ranks[r].seconds <= limit_seconds / 2) continue;
    Wait wait = find_missing(ranks, static_cast<int>(r));
    const auto better = [&](const Wait& old) {
      if (wait.is_cause != old.is_cause) return wait.is_cause;
      if (wait.consequences != old.consequences) return wait.consequences < old.consequences;
      return ranks[r].seconds > ranks[static_cast<size_t>(old.rank)].seconds;
    };
    if (!chosen || better(*chosen)) chosen = std::move(wait);
  }
  Failure f;
  f.rank = chosen->rank;
  f.message = sentence(ranks, *chosen);
  return f;
}

std::string encode(const RankActivity& a) {
  std::string body;
  put(&body, a.operation);
  put(&body, a.group);
  put(&body, static_cast<int>(a.seconds * 1000));
  put(&body, a.iteration);
  put(&body, a.task);
  put(&body, static_cast<int>(a.groups.size()));
  for (const GroupCalls& g : a.groups) {
    put(&body, g.id);
    put(&body, g.name);
    put(&body, std::to_string(g.calls));
    put(&body, g.last);
    put(&body, static_cast<int>(g.ranks.size()));
    for (const int r : g.ranks) put(&body, r);
  }
  return body;
}

RankActivity decode_activity(const std::string& body) {
  Reader in(body);
  RankActivity a;
  a.operation = in.text();
  a.group = in.number();
  a.seconds = in.number() / 1000.0;
  a.iteration = in.number();
  a.task = in.text();
  const int groups = in.number();
  for (int i = 0; i < groups; ++i) {
    GroupCalls& g = a.groups.emplace_back();
    g.id = in.text();
    g.name = in.text();
    g.calls = std::strtoll(in.text().c_str(), nullptr, 10);
    g.last = in.text();
    const int size = in.number();
    for (int r = 0; r < size; ++r) g.ranks.push_back(in.number());
  }
  return a;
}

}  // namespace tally::train
