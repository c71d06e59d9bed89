// tally-train with several ranks on this host: the numbers of one rank, one end for all, one error.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/train/parallel/ranks.h"

namespace {

const std::string with_evaluation = flags + "--train-iters 6 --eval-interval 3 --eval-iters 2 ";

// Sums in float64 in another order: a few rounding errors of 1e-16 each, which six steps of Adam
// may enlarge.
void check_same_numbers(const json& one, const json& several) {
  for (const char* column : {"loss", "grad_norm"}) {
    CAPTURE(std::string(column));
    const json &a = one["steps"][column], &b = several["steps"][column];
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      // The norm is recorded in float32.
      const double bound = std::string(column) == "loss" ? 1e-12 : 1e-6;
      CHECK(std::abs(a[i].get<double>() - b[i].get<double>()) <= bound * a[i].get<double>());
    }
  }
  const json &a = one["results"]["evaluations"], &b = several["results"]["evaluations"];
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i)
    CHECK(std::abs(a[i]["loss"].get<double>() - b[i]["loss"].get<double>()) <= 1e-12 * 5);
}

}  // namespace

TEST_CASE("several ranks with a growing batch and masked targets compute what one does") {
  const Folder folder("distributed_rampup");
  const std::string run = flags +
                          "--micro-batch-size 1 --rampup-batch-size 4 2 24 --train-samples 40 "
                          "--tokenizer-type NullTokenizer --vocab-size 97 ";
  REQUIRE(tally_train(run + "--record " + folder / "1.json").code == 0);
  const std::string masked = run + "--eod-mask-loss --record " + folder / "2.json";
  const Ended two = tally_train(run + "--nproc-per-node 2 --record " + folder / "2.json");
  REQUIRE_MESSAGE(two.code == 0, two.err);
  const json one = read_json(folder / "1.json");
  CHECK(one["steps"]["global_batch_size"] == json({4, 4, 4, 6, 6, 8, 8}));
  check_same_numbers(one, read_json(folder / "2.json"));
  // Every micro batch of every rank is a mean over its own tokens, so that the sum is one rank's.
  REQUIRE(tally_train(masked).code == 0);
  const json whole = read_json(folder / "2.json");
  CHECK(whole["steps"]["loss"] != one["steps"]["loss"]);
  REQUIRE(tally_train(masked + " --nproc-per-node 2").code == 0);
  check_same_numbers(whole, read_json(folder / "2.json"));
}

namespace {

// Loss, norm and the losses of validation are those of one process that takes the global batch at
// once, whatever divides it. `size`: of the global batch.
void check_divisions(const std::string& run, int size, const std::vector<std::string>& layouts) {
  CAPTURE(run);
  const Folder folder("divisions");
  const auto record_of = [&](const std::string& division) {
    CAPTURE(division);
    const Ended ended =
        tally_train(run + fmt::format("--global-batch-size {} {} --record ", size, division) +
                    folder / "r.json");
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    return read_json(folder / "r.json");
  };
  const json whole = record_of(fmt::format("--micro-batch-size {}", size));
  REQUIRE(whole["steps"]["loss"].size() == 4);
  REQUIRE(!whole["results"]["evaluations"].empty());
  for (const std::string& division : layouts) {
    CAPTURE(division);
    check_same_numbers(whole, record_of(division));
  }
}

const std::string of_divisions =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --mock-data --precision fp64 --lr "
    "1e-3 "
    "--clip-grad 0.5 --device cpu --train-iters 4 --log-interval 2 --hidden-dropout 0 "
    "--attention-dropout 0 --eval-interval 2 --eval-iters 3 ";
const std::vector<std::string> in_data{
    "--micro-batch-size 3",
    "--micro-batch-size 1",
    "--micro-batch-size 2 --reference",
    "--micro-batch-size 2 --pad --nproc-per-node 3",
    "--micro-batch-size 1 --nproc-per-node 2",
    "--micro-batch-size 1 --nproc-per-node 3 --use-distributed-optimizer",
    "--micro-batch-size 2 --nproc-per-node 3 --data-parallel-sharding-strategy optim_grads"};

}  // namespace

TEST_CASE("an encoder's training does not depend on how the global batch is divided") {
  const std::string encoder = of_divisions + "--vocab-size 97 --seq-length 24 --mock-lengths 4:24 ";
  const std::string bert = encoder + "--model bert-base ";
  // Few tokens are masked, and some micro batches have none.
  check_divisions(bert + "--mask-prob 0.05 ", 12, in_data);
  check_divisions(bert + "--bert-no-binary-head --optimizer lamb ", 12, in_data);
  check_divisions(bert + "--task classify --num-classes 3 --classifier-dropout 0 ", 12, in_data);
  check_divisions(bert + "--task squad ", 12, in_data);
  check_divisions(encoder + "--model distilbert --optimizer sgd ", 12, in_data);
  // The flag changes nothing of an encoder.
  check_divisions(bert + "--calculate-per-token-loss ", 24, {"--micro-batch-size 2"});
}

TEST_CASE("--calculate-per-token-loss: a language model's neither, with masked targets") {
  const std::string run =
      of_divisions + "--seq-length 16 --tokenizer-type NullTokenizer --vocab-size 17 ";
  const std::string masked = run + "--eod-mask-loss ";
  std::vector<std::string> layouts{
      "--micro-batch-size 1 --nproc-per-node 4 --pipeline-model-parallel-size 2",
      "--micro-batch-size 2 --nproc-per-node 4 --tensor-model-parallel-size 2 "
      "--pipeline-model-parallel-size 2 --sequence-parallel",
      "--micro-batch-size 3 --nproc-per-node 4 --tensor-model-parallel-size 2 "
      "--use-distributed-optimizer"};
  for (const std::string& division : in_data)
    if (!contains(division, "--pad")) layouts.push_back(division);
  check_divisions(masked + "--calculate-per-token-loss ", 12, layouts);
  // Without masked targets all tokens count.
  check_divisions(run + "--calculate-per-token-loss ", 12, layouts);
  check_divisions(run, 12, layouts);
}

TEST_CASE(
    "--eod-mask-loss alone: Megatron-LM's mean of means, which is said; validation is over "
    "tokens") {
  const Folder folder("megatrons_rule");
  const std::string run = of_divisions +
                          "--seq-length 16 --tokenizer-type NullTokenizer --vocab-size 17 "
                          "--eod-mask-loss --global-batch-size 4 --record " +
                          folder / "r.json ";
  const std::string said = "give --calculate-per-token-loss";
  const Ended one = tally_train(run + "--micro-batch-size 4");
  REQUIRE_MESSAGE(one.code == 0, one.err);
  CHECK_FALSE(contains(one.err, said));
  const json whole = read_json(folder / "r.json");
  for (const std::string division : {"--micro-batch-size 1", "--micro-batch-size 2",
                                     "--micro-batch-size 2 --nproc-per-node 2"}) {
    CAPTURE(division);
    const Ended ended = tally_train(run + division);
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    CHECK(contains(ended.err, said));
    const json divided = read_json(folder / "r.json");
    CHECK(divided["steps"]["loss"][0] != whole["steps"]["loss"][0]);
    const Ended counted = tally_train(run + division + " --calculate-per-token-loss");
    REQUIRE_MESSAGE(counted.code == 0, counted.err);
    CHECK_FALSE(contains(counted.err, said));
    check_same_numbers(whole, read_json(folder / "r.json"));
    // The weights are the same until the first update.
    const Ended untrained = tally_train(run + division + " --lr 0");
    REQUIRE_MESSAGE(untrained.code == 0, untrained.err);
    const json held_out = read_json(folder / "r.json")["results"]["evaluations"];
    const Ended at_once = tally_train(run + "--micro-batch-size 4 --lr 0");
    REQUIRE_MESSAGE(at_once.code == 0, at_once.err);
    const json expected = read_json(folder / "r.json")["results"]["evaluations"];
    REQUIRE(held_out.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(held_out[i]["loss"].get<double>() ==
            doctest::Approx(expected[i]["loss"].get<double>()).epsilon(1e-13));
  }
}

TEST_CASE("several ranks compute what one does") {
  const Folder folder("distributed");
  REQUIRE(tally_train(with_evaluation + "--record " + folder / "1.json").code == 0);
  const json one = read_json(folder / "1.json");
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const std::string file = folder / fmt::format("{}.json", ranks);
    const Ended ended = tally_train(
        with_evaluation + fmt::format("--nproc-per-node {} --record {} --check-weight-hash-"
                                      "across-dp-replicas-interval 2",
                                      ranks, file));
    INFO(ended.err);
    CHECK(ended.code == 0);
    // One process prints.
    CHECK(count(ended.out, "consumed samples:           48") == 1);
    CHECK(contains(ended.out, fmt::format("processes  {} on 1 host (data parallel), started by "
                                          "--nproc-per-node, joined by sockets",
                                          ranks)));
    const json several = read_json(file);
    check_same_numbers(one, several);
    CHECK(several["configuration"]["parallel"]["data"] == ranks);
    CHECK(several["environment"]["hosts"].size() == static_cast<size_t>(ranks));
    CHECK(several["environment"]["nccl"].is_null());
  }
}

#ifdef MPIRUN
TEST_CASE("over MPI, too") {
  const Folder folder("distributed");
  REQUIRE(tally_train(with_evaluation + "--record " + folder / "1.json").code == 0);
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const std::string file = folder / fmt::format("{}.json", ranks);
    const Ended ended = tally_train(with_evaluation + "--record " + file, "", {},
                                    fmt::format("{} {}", MPIRUN, ranks));
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(contains(ended.out, "started by mpirun, joined by mpi"));
    check_same_numbers(read_json(folder / "1.json"), read_json(file));
  }
}

TEST_CASE("the error of the one rank that has it is the one that is shown") {
  // Only rank 1 is given a dataset that is not there.
  const Folder folder("distributed");
  std::ofstream(folder / "text.txt") << std::string(1000, 'x');
  REQUIRE(tally_train("prepare --tokenizer-type bytes --input " + folder / "text.txt --output " +
                      folder / "text")
              .code == 0);
  const size_t at = flags.find("--mock-data ");
  const std::string run = flags.substr(0, at) + flags.substr(at + 12) +
                          "--vocab-size 257 --split 1 --train-iters 6 --data-path ";
  const std::string second = " : -n 1 " TALLY_BINARY_DIR "/bin/tally-train " + run + "/none/text";
  const Ended ended =
      tally_train(run + folder / "text" + second, "", {}, fmt::format("{} 1", MPIRUN));
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(count(ended.err, "tally-train: error:") == 1);
  CHECK(contains(ended.err, "tally-train: error: rank 1 on "));
  CHECK(contains(ended.err, "/none/text"));
}

TEST_CASE("MPI that no launcher of its own started is refused, not started") {
  const Ended ended =
      tally_train(flags + "--train-iters 2 --nproc-per-node 2 --distributed-backend mpi");
  CHECK(ended.code == 2);
  CHECK(count(ended.err, "tally-train: error:") == 1);
  CHECK(contains(ended.err,
                 "--distributed-backend mpi: no MPI launcher started this process: start "
                 "it by mpirun, or by srun --mpi=pmix"));
}
#endif

TEST_CASE("the threads of no rank spin for long while they wait") {
  std::string environment;
  const Ended ended =
      tally_train(flags + "--train-iters 100000000 --nproc-per-node 2",
                  "unset OMP_WAIT_POLICY GOMP_SPINCOUNT;", [&](const std::string& out, int pid) {
                    if (!environment.empty() || !contains(out, "iteration")) return;
                    environment = environment_of(pid_of_rank(pid, "1"));
                    kill(pid, SIGTERM);
                  });
  CHECK(ended.code == 4);
  CHECK(contains(environment, std::string("GOMP_SPINCOUNT=3000") + '\0'));
}

TEST_CASE("bad flags are reported once, before a rank is started") {
  const Ended ended = tally_train(flags + "--train-iters 6 --nproc-per-node 3");
  CHECK(ended.code == 2);
  CHECK(ended.err ==
        "tally-train: error: --global-batch-size: global batch size (8) is not divisible by micro "
        "batch size (2) times data parallel size (3)\n");
  const Ended weights = tally_train(
      flags +
      "--train-iters 6 --nproc-per-node 2 --data-parallel-sharding-strategy optim_grads_params");
  CHECK(weights.code == 2);
  CHECK(weights.err ==
        "tally-train: error: --data-parallel-sharding-strategy: optim_grads_params: this version "
        "divides no weights: take optim_grads\n");
}

TEST_CASE("an interface that is not there is a wrong flag") {
  const Ended ended =
      tally_train(flags + "--train-iters 6 --nproc-per-node 2 --network-interface none0");
  CHECK(ended.code == 2);
  CHECK(count(ended.err, "tally-train: error:") == 1);
  CHECK(contains(ended.err, "--network-interface: this host has no interface 'none0'"));
}

TEST_CASE("a rank that is killed ends the run, within seconds and with its number") {
  const Folder folder("distributed");
  using Clock = std::chrono::steady_clock;
  for (const std::string rank : {"1", "0"}) {
    CAPTURE(rank);
    Clock::time_point killed{};
    const Ended ended = tally_train(
        flags + "--train-iters 100000000 --nproc-per-node 3 --global-batch-size 12 --record " +
            folder / "r.json",
        "", [&](const std::string& out, int pid) {
          if (killed != Clock::time_point{} || !contains(out, "iteration")) return;
          const pid_t victim = pid_of_rank(pid, rank);
          REQUIRE(victim > 0);
          kill(victim, SIGKILL);
          killed = Clock::now();
        });
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(count(ended.err, "tally-train: error:") == 1);
    CHECK(contains(ended.err, fmt::format("tally-train: error: rank {} on ", rank)));
    CHECK(contains(ended.err, "was killed by signal 9 (Killed)"));
    // A limit against hanging for ever, far from what it takes.
    CHECK(Clock::now() - killed < std::chrono::seconds(30));
    if (rank != "1") continue;
    const json record = read_json(folder / "r.json");
    CHECK(record["outcome"] == "error");
    CHECK(contains(record["message"], "rank 1 on "));
  }
}

TEST_CASE("asked to stop, all ranks stop after the same step; a later run resumes there") {
  const Folder folder("distributed");
  bool told = false;
  // The supervisor passes the signal on, or one rank alone receives it.
  for (const bool one_rank : {false, true}) {
    CAPTURE(one_rank);
    told = false;
    const std::string save = folder / (one_rank ? "one" : "all");
    const Ended ended =
        tally_train(flags + "--train-iters 100000000 --nproc-per-node 2 --save " + save, "",
                    [&](const std::string& out, int pid) {
                      if (told || !contains(out, "iteration")) return;
                      kill(one_rank ? pid_of_rank(pid, "1") : pid, SIGTERM);
                      told = true;
                    });
    INFO(ended.err);
    CHECK(ended.code == 4);
    CHECK(count(ended.err, "tally-train: stopped: ") == 1);
    CHECK(contains(ended.err, one_rank ? "stopped: rank 1 on " : "stopped: SIGTERM was received"));
    CHECK(contains(ended.err, "SIGTERM was received"));
    CHECK(count(ended.out, "saved checkpoint at iteration") == 1);
  }
}

TEST_CASE("a run resumes with another number of ranks") {
  const Folder folder("distributed");
  REQUIRE(tally_train(with_evaluation + "--record " + folder / "whole.json").code == 0);
  const std::string save = " --save " + folder / "checkpoint";
  REQUIRE(tally_train(with_evaluation + "--exit-interval 2 --nproc-per-node 4" + save).code == 0);
  const Ended ended = tally_train(with_evaluation + "--nproc-per-node 2 --load " +
                                  folder / "checkpoint" + " --record " + folder / "rest.json");
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(contains(ended.out, "resumed    after 2 steps"));
  const json whole = read_json(folder / "whole.json"), rest = read_json(folder / "rest.json");
  REQUIRE(rest["steps"]["loss"].size() == 4);
  for (size_t i = 0; i < 4; ++i)
    CHECK(std::abs(rest["steps"]["loss"][i].get<double>() -
                   whole["steps"]["loss"][i + 2].get<double>()) < 1e-11);
}

TEST_CASE("output with the ranks' numbers") {
  const Ended ended = tally_train(flags + "--train-iters 2 --nproc-per-node 2 --prefix-output");
  CHECK(ended.code == 0);
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.rfind("[rank0]: ", 0) == 0);
  CHECK(contains(ended.out, "[rank0]:  iteration        2/       2"));
}

TEST_CASE("torchrun, whose own process listens at MASTER_PORT, starts the ranks") {
  const std::string torchrun =
      TORCHRUN_PYTHON " -m torch.distributed.run --no-python --nproc-per-node 2 ";
  const Folder folder("torchrun");
  const std::string run = flags + "--train-iters 2 --record ";
  REQUIRE(tally_train(run + folder / "one.json").code == 0);
  for (const char* where : {"--standalone", "--master-addr 127.0.0.1 --master-port 29613"}) {
    CAPTURE(std::string(where));
    const Ended two = tally_train(run + folder / "two.json", "", {}, torchrun + where);
    INFO(two.err);
    REQUIRE(two.code == 0);
    CHECK(count(two.out, "completed: 2 steps") == 1);
    check_same_numbers(read_json(folder / "one.json"), read_json(folder / "two.json"));
  }
}
