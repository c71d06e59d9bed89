// Who a process is, from the variables that launchers set (captured from srun 22.05, Open MPI 4.1
// and torchrun 2.11).
#include "src/parallel/control/launch.h"

#include <doctest/doctest.h>

#include <map>

using namespace tally::train;

namespace {

using Map = std::map<std::string, std::string>;

Launch launch(const Map& variables, const LaunchOptions& options = {}) {
  return discover_launch(options, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Map srun{{"SLURM_JOB_ID", "71"},
               {"SLURM_STEP_ID", "0"},
               {"SLURM_PROCID", "4"},
               {"SLURM_STEP_NUM_TASKS", "5"},
               {"SLURM_LOCALID", "1"},
               {"SLURM_NODEID", "1"},
               {"SLURM_STEP_NUM_NODES", "2"},
               {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
               {"SLURM_STEP_NODELIST", "jwb[0007-0008]"}};
const Map mpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                 {"OMPI_COMM_WORLD_SIZE", "2"},
                 {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                 {"PMIX_NAMESPACE", "3021733889"}};
const Map torchrun{{"RANK", "5"},
                   {"WORLD_SIZE", "8"},
                   {"LOCAL_RANK", "1"},
                   {"LOCAL_WORLD_SIZE", "4"},
                   {"MASTER_ADDR", "node1"},
                   {"MASTER_PORT", "29511"}};

Map with(Map map, const Map& more) {
  for (const auto& [name, value] : more) map[name] = value;
  return map;
}

std::string refusal(const Map& variables, const LaunchOptions& options = {}) {
  try {
    launch(variables, options);
  } catch (const LaunchError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("no launcher: one process") {
  for (const Map& variables :
       {Map{}, Map{{"WORLD_SIZE", "1"}},
        // A batch script has its job's variables and was not started by srun.
        Map{{"SLURM_JOB_ID", "3"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}}) {
    const Launch l = launch(variables);
    CHECK(l.size == 1);
    CHECK(l.rank == 0);
    CHECK(l.source == "one process");
    CHECK(l.port == 0);
  }
}

TEST_CASE("plain srun") {
  const Launch l = launch(srun);
  CHECK(l.rank == 4);
  CHECK(l.size == 5);
  CHECK(l.local_rank == 1);
  CHECK(l.local_size == 2);
  CHECK(l.nodes == 2);
  CHECK(l.source == "srun");
  CHECK(l.address == "jwb0007");
  CHECK(l.run == "Slurm 71.0");
  CHECK(l.port >= 12000);
  CHECK(l.port < 32000);
  // The same for all ranks of the step, another one for the next step.
  CHECK(launch(with(srun, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}}))
            .port == l.port);
  CHECK(launch(with(srun, {{"SLURM_STEP_ID", "1"}})).port != l.port);
}

TEST_CASE("the address of rank 0: flags, MASTER_*, this host, Slurm's first host") {
  LaunchOptions options;
  options.address_suffix = "i";
  CHECK(launch(srun, options).address == "jwb0007i");
  const Map named = with(srun, {{"MASTER_ADDR", "head"}, {"MASTER_PORT", "6000"}});
  CHECK(launch(named, options).address == "head");
  CHECK(launch(named, options).port == 6000);
  options.address = "10.0.0.1";
  options.port = 7000;
  CHECK(launch(named, options).address == "10.0.0.1");
  CHECK(launch(named, options).port == 7000);
  CHECK(launch(with(srun, {{"SLURM_STEP_NUM_NODES", "1"}})).address == "127.0.0.1");
  CHECK(with_suffix("node3.site.org", "i") == "node3i.site.org");
  CHECK(with_suffix("node3", "-ib") == "node3-ib");
}

TEST_CASE("mpirun, also inside a job of Slurm") {
  for (const Map& variables :
       {mpirun, with(mpirun, {{"SLURM_JOB_ID", "9"}, {"SLURM_PROCID", "0"}}),
        // Its daemons are a step of their own.
        with(mpirun, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})}) {
    const Launch l = launch(variables);
    CHECK(l.rank == 1);
    CHECK(l.size == 2);
    CHECK(l.source == "mpirun");
    CHECK(l.mpi);
    CHECK(l.address == "127.0.0.1");
    CHECK(l.run == "mpirun 3021733889");
  }
  const std::string why = refusal(
      with(mpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}}));
  CHECK(why.find(
            "mpirun started 2 processes on several hosts, and it is not known where they meet") ==
        0);
}

TEST_CASE("RANK and WORLD_SIZE in mpirun's words: mpirun says what they leave open") {
  for (const Map& own : {Map{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}},
                         Map{{"RANK", "1"}, {"WORLD_SIZE", "2"}}}) {
    const Launch l = launch(with(mpirun, own));
    CHECK(l.local_rank == 1);
    CHECK(l.local_size == 2);
    CHECK(l.nodes == 1);
    CHECK(l.address == "127.0.0.1");
  }
}

TEST_CASE("torchrun's variables") {
  const Launch l = launch(torchrun);
  CHECK(l.rank == 5);
  CHECK(l.size == 8);
  CHECK(l.local_rank == 1);
  CHECK(l.local_size == 4);
  CHECK(l.address == "node1");
  CHECK(l.port == 29511);
  CHECK(!l.mpi);
  // torchrun under srun, one a node.
  const Map under = with(srun, {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  CHECK(launch(with(with(under, torchrun), {{"TORCHELASTIC_RUN_ID", "x"}})).rank == 5);
}

TEST_CASE("whose output nobody collects together with rank 0's") {
  CHECK(launch(torchrun).own_output);  // set by hand
  const Map elastic = with(torchrun, {{"TORCHELASTIC_RUN_ID", "7"}});
  CHECK(!launch(elastic).own_output);
  CHECK(launch(with(elastic, {{"RANK", "4"}, {"LOCAL_RANK", "0"}})).own_output);
  CHECK(!launch(with(torchrun, {{"TALLY_SUPERVISED", "process 1 2"}})).own_output);
  CHECK(!launch(srun).own_output);
  CHECK(!launch(mpirun).own_output);
  CHECK(
      !launch(with(mpirun, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}})).own_output);
  CHECK(!launch({}).own_output);
}

TEST_CASE("the token: a flag, a variable, a file of rank 0's where a launcher started all") {
  const std::string secret(32, 'x');
  LaunchOptions file;
  file.token_file = "secret";
  // Slurm and mpirun: the same file for all ranks of a run, and another one for the next.
  CHECK(launch(srun).token.zero_makes);
  CHECK(launch(srun).token.file.find(".tally-train.Slurm-71.0.") == 0);
  CHECK(launch(with(srun, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}})).token.file ==
        launch(srun).token.file);
  CHECK(launch(with(srun, {{"SLURM_STEP_ID", "1"}})).token.file != launch(srun).token.file);
  CHECK(launch(mpirun).token.file.find(".tally-train.mpirun-3021733889.") == 0);
  CHECK(launch(with(mpirun, {{"PMIX_NAMESPACE", "a/../b c"}})).token.file.find('/') ==
        std::string::npos);
  // Started by hand: none.
  CHECK(launch(torchrun).token.file.empty());
  CHECK(launch(torchrun).token.text.empty());
  for (const Map& variables : {srun, mpirun, torchrun}) {
    const Launch named = launch(with(variables, {{token_variable, secret}}));
    CHECK(named.token.text == secret);
    CHECK(named.token.file.empty());
    CHECK(!named.token.zero_makes);
    const Launch filed = launch(with(variables, {{token_variable, secret}}), file);
    CHECK(filed.token.text.empty());
    CHECK(filed.token.file == "secret");
    CHECK(!filed.token.zero_makes);
  }
  // A parent's comes before the flag, which the parent got.
  const Map child = with(torchrun, {{"TALLY_SUPERVISED", "process 1"}, {token_variable, secret}});
  CHECK(launch(child, file).token.text == secret);
  CHECK(refusal(with(torchrun, {{token_variable, "1234"}}))
            .find("TALLY_RENDEZVOUS_TOKEN has 4 characters") == 0);
  CHECK(launch({{token_variable, "1234"}}).size == 1);
}

TEST_CASE("launchers that disagree, and halves") {
  CHECK(refusal(with(srun, {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}})) ==
        "RANK=0 and WORLD_SIZE=4 contradict srun, which says SLURM_PROCID=4 and "
        "SLURM_STEP_NUM_TASKS=5: unset RANK and WORLD_SIZE, or start the program without srun");
  // A job script that exported one rank for all.
  CHECK(refusal(with(srun, {{"RANK", "0"}, {"WORLD_SIZE", "5"}, {"LOCAL_RANK", "0"}})) != "");
  CHECK(refusal({{"WORLD_SIZE", "4"}}) ==
        "WORLD_SIZE=4 is set and RANK is not: set both or neither");
  CHECK(refusal({{"RANK", "3"}, {"WORLD_SIZE", "2"}}) ==
        "RANK=3 and WORLD_SIZE=2 cannot both be true");
  CHECK(refusal({{"RANK", "x"}, {"WORLD_SIZE", "2"}}) ==
        "RANK=x is not a number of processes or a rank");
  CHECK(refusal(with(srun, {{"PMIX_RANK", "2"}})).find("PMIX_RANK=2 and SLURM_PROCID=4 disagree") ==
        0);
  // torchrun's own process listens at MASTER_PORT: all ranks find another port, that of the run.
  const Map agent =
      with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RUN_ID", "none"}});
  const int port = launch(agent).port;
  CHECK(port != 29511);
  CHECK(launch(with(agent, {{"RANK", "0"}, {"LOCAL_RANK", "0"}})).port == port);
  CHECK(launch(with(agent, {{"MASTER_PORT", "29512"}})).port != port);
  LaunchOptions given;
  given.port = 6000;
  CHECK(launch(agent, given).port == 6000);
  const Map child = with(agent, {{"TALLY_SUPERVISED", "process 1"}});
  CHECK(launch(with(child, {{token_variable, std::string(32, 'x')}})).port == 29511);
  for (const std::string bad : {"0", "-1", "abc", "65536", "99999999999"})
    CHECK(refusal(with(srun, {{"MASTER_PORT", bad}})) ==
          "MASTER_PORT=" + bad + " is not a valid port: 1 to 65535");
  // WORLD_SIZE alone, as some sites export it, is no contradiction where it is right.
  CHECK(launch(with(srun, {{"WORLD_SIZE", "5"}})).rank == 4);
}

TEST_CASE("--nproc-per-node: alone, under one task a node, and not twice") {
  LaunchOptions four;
  four.processes = 4;
  CHECK(launch({}, four).size == 1);
  const Map one_a_node = with(srun, {{"SLURM_PROCID", "1"},
                                     {"SLURM_STEP_NUM_TASKS", "2"},
                                     {"SLURM_LOCALID", "0"},
                                     {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}});
  CHECK(launch(one_a_node, four).rank == 1);
  CHECK(launch(one_a_node, four).address == "jwb0007");
  CHECK(refusal(srun, four).find("--nproc-per-node 4: srun started 2 processes on this host") == 0);
  CHECK(refusal(torchrun, four).find("--nproc-per-node starts processes, and WORLD_SIZE=8") == 0);
  // A rank that a tally-train started believes it, whatever else there is.
  const Launch child =
      launch(with(with(one_a_node, torchrun), {{"TALLY_SUPERVISED", "Slurm 71.0"}}), four);
  CHECK(child.rank == 5);
  CHECK(child.supervised);
  CHECK(!child.mpi);
  CHECK(child.address == "node1");
}
