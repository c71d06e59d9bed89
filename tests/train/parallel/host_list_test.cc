// Slurm's host lists: by the grammar of its documentation, and against scontrol where it is
// installed.
#include "src/parallel/control/host_list.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "src/parallel/control/errors.h"

using namespace tally::train;
using Hosts = std::vector<std::string>;

namespace {

// scontrol's result; empty when it is not installed. It needs a configuration for this, but no
// cluster.
Hosts scontrol(const std::string& list) {
  const std::string file = "/tmp/tally_host_list_test_" + std::to_string(getpid()) + ".conf";
  std::ofstream(file) << "ClusterName=test\nSlurmctldHost=localhost\n";
  const std::string command =
      "SLURM_CONF=" + file + " scontrol show hostnames '" + list + "' 2>/dev/null; rm " + file;
  const std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), pclose);
  Hosts hosts(1);
  for (int c; (c = std::fgetc(out.get())) != EOF;) {
    if (c == '\n') {
      hosts.emplace_back();
    } else {
      hosts.back() += static_cast<char>(c);
    }
  }
  hosts.pop_back();
  return hosts;
}

const std::vector<std::pair<const char*, Hosts>> cases{
    {"node1", {"node1"}},
    {"node[01-03,07],gpu5", {"node01", "node02", "node03", "node07", "gpu5"}},
    {"node[9-11]", {"node9", "node10", "node11"}},
    {"node[099-101]", {"node099", "node100", "node101"}},
    {"a,b,a1", {"a", "b", "a1"}},
    {"r[1-2]n[1-2]", {"r1n1", "r1n2", "r2n1", "r2n2"}},
    {"jwb[0001,0003]", {"jwb0001", "jwb0003"}},
    {"n[1-2]-ib", {"n1-ib", "n2-ib"}},
    {"host-3.site.org,host-4.site.org", {"host-3.site.org", "host-4.site.org"}},
    {"c[0-0]", {"c0"}},
};

}  // namespace

TEST_CASE("lists of hosts are expanded in their order") {
  for (const auto& known : cases) {
    const std::string list = known.first;
    CAPTURE(list);
    CHECK(expand_host_list(list) == known.second);
  }
}

TEST_CASE("scontrol expands them alike") {
  if (scontrol("node1").empty()) {
    MESSAGE("SKIPPED: no scontrol");
    return;
  }
  for (const auto& known : cases) {
    const std::string list = known.first;
    CAPTURE(list);
    // It refuses a name that goes on after its bracket; some sites' lists have them.
    if (list == "n[1-2]-ib") continue;
    CHECK(scontrol(list) == known.second);
  }
}

TEST_CASE("invalid lists of hosts are quoted") {
  for (const char* list : {"", "a,,b", "node[1-3", "node1-3]", "node[3-1]", "node[1-x]", "node[]",
                           "node[[1]]", "node[1-9999999]", "[1-9999][1-9999]", "node[-3]"}) {
    CAPTURE(std::string(list));
    CHECK_THROWS_AS(expand_host_list(list), LaunchError);
  }
  CHECK_THROWS_WITH_AS(expand_host_list("node[3-1]"),
                       "the host list 'node[3-1]' cannot be read: a range ends before it begins",
                       LaunchError);
}

TEST_CASE("tasks per node") {
  CHECK(expand_tasks_per_node("4") == std::vector<int>{4});
  CHECK(expand_tasks_per_node("2(x3),1") == std::vector<int>{2, 2, 2, 1});
  CHECK_THROWS_AS(expand_tasks_per_node("2(x"), LaunchError);
  CHECK_THROWS_AS(expand_tasks_per_node("two"), LaunchError);
}
