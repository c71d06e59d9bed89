// The program from outside: exit codes, messages, records, signals, checkpoints.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "tests/train/train/tiny_run.h"

namespace {

// The loss of a model that knows nothing but how often each byte comes, in nats.
double letter_entropy(const std::string& text) {
  std::array<double, 256> counts{};
  for (const char c : text) ++counts[static_cast<unsigned char>(c)];
  double entropy = 0;
  for (const double count : counts) {
    const double p = count / static_cast<double>(text.size());
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace

TEST_CASE("--version and --help") {
  const Ended version = tally_train("--version");
  CHECK(version.code == 0);
  CHECK(contains(version.out, "tally-train 0."));
  CHECK(contains(version.out, "LibTorch 2."));
  CHECK(contains(version.out, "CUDA "));
  CHECK(contains(version.out, "GPU kernels"));
  CHECK(version.err.empty());
  const Ended help = tally_train("train --help");
  CHECK(help.code == 0);
  CHECK(contains(help.out, "--micro-batch-size"));
  CHECK(contains(help.out, "Exit codes: 0 completed"));
}

TEST_CASE("help and version come without LibTorch's constructors, of one process, and anywhere") {
  for (const std::string command : {"--help", "evaluate --help", "--version", "reference"}) {
    CAPTURE(command);
    const Ended ended = tally_train(command, "export LD_DEBUG=files;");
    CHECK(ended.code == 0);
    CHECK(contains(ended.err, "calling init: "));
    CHECK_FALSE(std::regex_search(ended.err, std::regex("calling init: \\S*libtorch")));
  }
  CHECK(tally_train("--help", "export RANK=1;").out.empty());
  CHECK(tally_train("--help", "export SLURM_PROCID=1;").code == 0);
  CHECK_FALSE(tally_train("--help", "export RANK=0;").out.empty());
  // The program alone, without what answers early.
  const Folder folder("alone");
  fs::copy(TALLY_BINARY_DIR "/bin/tally-train", folder.path);
  const std::string alone = folder / "tally-train --help >" + folder / "out";
  REQUIRE(std::system(("COLUMNS=90 " + alone).c_str()) == 0);
  CHECK((read_text(folder / "out") == tally_train("--help", "export COLUMNS=90;").out));
}

TEST_CASE("OpenMP's threads spin briefly while they wait, unless the environment says otherwise") {
  const auto spinning_of_run = [](const std::string& prefix) {
    std::string environment, name;
    const Ended ended =
        tally_train(mock + "--train-iters 1000000 --log-interval 1", prefix,
                    [&](const std::string& out, int pid) {
                      if (!environment.empty() || !contains(out, " iteration        1/")) return;
                      // What the program was started with; a variable that it set itself is not in
                      // it.
                      environment = '\0' + read_text(fmt::format("/proc/{}/environ", pid));
                      name = read_text(fmt::format("/proc/{}/comm", pid));
                      kill(pid, SIGTERM);
                    });
    CHECK(ended.code == 4);
    CHECK(name == "tally-train\n");
    const std::string key = std::string(1, '\0') + "GOMP_SPINCOUNT=";
    const size_t at = environment.find(key);
    return at == std::string::npos ? "unset" : std::string(environment.c_str() + at + key.size());
  };
  CHECK(spinning_of_run("unset OMP_WAIT_POLICY GOMP_SPINCOUNT;") == "3000");
  CHECK(spinning_of_run("unset OMP_WAIT_POLICY; export GOMP_SPINCOUNT=7;") == "7");
  CHECK(spinning_of_run("unset GOMP_SPINCOUNT; export OMP_WAIT_POLICY=active;") == "unset");
}

TEST_CASE("bad input is one line on stderr, exit code 2, and nothing is written") {
  const Folder folder("bad");
  const auto check = [&](const std::string& arguments, const std::string& message,
                         const std::string& environment = "") {
    CAPTURE(arguments);
    const Ended ended = tally_train(
        arguments + " --record " + folder / "r.json" + " --save " + folder / "s", environment);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err == "tally-train: error: " + message + "\n");
    CHECK(fs::is_empty(folder.path));
  };
  check(mock + "--train-iters 1 --num-layer 3",
        "--num-layer: unknown flag; did you mean '--num-layers'?");
  check(mock + "--train-iters 1 --tensor-model-parallel-size 2",
        "--tensor-model-parallel-size: world size (1) is not divisible by tensor parallel size (2) "
        "times "
        "pipeline parallel size (1)");
  check(mock + "--train-iters 1", "WORLD_SIZE=4 is set and RANK is not: set both or neither",
        "WORLD_SIZE=4;export WORLD_SIZE;");
  check(mock + "--train-iters 1 --load " + folder / "none" + " --exit-on-missing-checkpoint",
        fmt::format("--load: {} holds no checkpoint", folder / "none"));
  check(mock + "--train-iters 1 --vocab-file /none/vocab.json",
        "--vocab-file: needs --merge-file, too");
}

TEST_CASE("a run from header to record") {
  const Folder folder("run");
  const Ended ended =
      tally_train(mock +
                  "--train-iters 6 --log-interval 2 --eval-interval 4 --eval-iters 1 "
                  "--use-flash-attn --record " +
                  folder / "deep/r.json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.err, "note: accepted without effect: --use-flash-attn"));
  CHECK(contains(ended.out, "  model      gpt: 2 layers, hidden 32, 4 heads"));
  CHECK(contains(ended.out, " iteration        6/       6 | consumed samples:           24 |"));
  CHECK(contains(ended.out, " validation loss at iteration 4 |"));
  CHECK(contains(ended.out, "\ncompleted: 6 steps, "));
  CHECK(contains(ended.out, " ms/step (mean of steps 4 to 6 in "));
  CHECK(contains(ended.out, "; with the first steps "));
  const json record = read_json(folder / "deep/r.json");
  CHECK(record["outcome"] == "completed");
  CHECK(record["exit_code"] == 0);
  CHECK(record["steps"]["loss"].size() == 6);
  CHECK(record["intervals"].size() == 3);
  CHECK(record["results"]["evaluations"].size() == 2);
  CHECK(record["results"]["tokens_per_second"].get<double>() > 0);
  CHECK(record["results"]["peak_device_bytes"].get<int64_t>() > 0);
  CHECK(record["command_line"].size() > 10);
}

// An address space, in kilobytes, in which the program trains a tiny model: LibTorch for CUDA maps
// gigabytes of libraries.
int64_t kilobytes_for_a_tiny_model() {
  for (int64_t kilobytes = 1'000'000; kilobytes < 32'000'000; kilobytes += 500'000) {
    const Ended ended = tally_train(
        "--num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 16 "
        "--max-position-embeddings 16 --tokenizer-type bytes --mock-data --device cpu "
        "--train-iters 1 --micro-batch-size 1",
        "ulimit -v " + std::to_string(kilobytes) + ";");
    if (ended.code == 0) return kilobytes;
  }
  FAIL("the program starts in no address space");
  return 0;
}

TEST_CASE("out of memory: exit code 3, a record, and advice") {
  const Folder folder("memory");
  // 124 million parameters where the address space ends before the optimizer's state.
  const std::string limit = std::to_string(kilobytes_for_a_tiny_model() + 1'000'000);
  const Ended ended = tally_train(
      "--model gpt2 --mock-data --device cpu --train-iters 1 --micro-batch-size 2 "
      "--global-batch-size 2 --record " +
          folder / "r.json",
      "ulimit -v " + limit + ";");
  CHECK(ended.code == 3);
  CHECK(contains(ended.err, "tally-train: error: out of memory: "));
  CHECK(contains(ended.err, " of memory for "));
  CHECK(contains(ended.err, "; try --micro-batch-size below 2 (the global batch stays the same)"));
  CHECK(contains(ended.err, "GiB"));
  const json record = read_json(folder / "r.json");
  CHECK(record["outcome"] == "out_of_memory");
  CHECK(record["exit_code"] == 3);
  CHECK(record["message"].get<std::string>().rfind("out of memory", 0) == 0);
}

TEST_CASE("a model that fits no memory is refused before the kernel kills the run") {
  const Folder folder("huge");
  const Ended ended = tally_train(
      "--num-layers 1000 --hidden-size 32768 --num-attention-heads 64 --mock-data --device cpu "
      "--train-iters 1 --record " +
      folder / "r.json");
  CHECK(ended.code == 3);
  CHECK(contains(ended.err, " GiB are needed on this host, and "));
  CHECK(contains(ended.err, " GiB are available: weights, gradients and the optimizer's state "));
  CHECK(contains(ended.err, "the parameters alone do not fit: try a smaller model"));
  CHECK(read_json(folder / "r.json")["outcome"] == "out_of_memory");
}

TEST_CASE("activations that fit no memory are refused before anything is allocated") {
  const Folder folder("activations");
  const std::string run =
      "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --mock-data "
      "--device cpu --train-iters 1 --micro-batch-size 1000000 --record " +
      folder / "r.json ";
  for (const std::string more : {"", "--nproc-per-node 2", "--reference"}) {
    CAPTURE(more);
    const Ended ended = tally_train(run + more);
    CHECK(ended.code == 3);
    CHECK(contains(ended.err, "tally-train: error: out of memory: "));
    CHECK(contains(ended.err, " GiB are needed on this host"));
    // With less than 17 GiB, a smaller batch alone does not help two processes.
    CHECK((contains(ended.err, "; try --micro-batch-size ") ||
           contains(ended.err, "; try a smaller --micro-batch-size and ")));
    const json record = read_json(folder / "r.json");
    CHECK(record["outcome"] == "out_of_memory");
    CHECK(record["results"]["peak_host_bytes"].get<int64_t>() < int64_t{1} << 30);
  }
}

TEST_CASE("an evaluation that fits no memory is refused, too") {
  const Folder folder("evaluation");
  std::ofstream(folder / "text.txt") << "a text that is long enough";
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + folder / "s").code == 0);
  const Ended ended =
      tally_train("evaluate --device cpu --tokenizer-type bytes --load " +
                  folder / "s --micro-batch-size 10000000 --text " + folder / "text.txt");
  CHECK(ended.code == 3);
  CHECK(contains(ended.err, "weights, gradients 0.00 GiB, activations "));
  CHECK(contains(ended.err, "try --micro-batch-size "));
}

// With --prefix-output the pipes of all processes are made first, and so few files may be opened
// that a program that does not look at the host's limits starts no process, either.
TEST_CASE("more processes than the host can hold are refused before one is started") {
  const Folder folder("many");
  const std::string run = mock + "--train-iters 1 --record " + folder / "r.json ";
  Ended ended =
      tally_train(run + "--global-batch-size 2000000 --nproc-per-node 1000000 --prefix-output",
                  "ulimit -n 500;");
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(contains(ended.err, "tally-train: error: --nproc-per-node 1000000: 1000000 processes of "));
  CHECK(contains(ended.err, "start at most "));
  ended = tally_train(run + "--global-batch-size 40 --nproc-per-node 20", "ulimit -n 60;");
  CHECK(ended.code == 2);
  CHECK(contains(ended.err, "--nproc-per-node 20: 20 ranks need up to 144 open files"));
}

TEST_CASE("a model that does not fit once per process is refused before one is started") {
  const Folder folder("processes");
  const Ended ended = tally_train(
      "--num-layers 1000 --hidden-size 8192 --num-attention-heads 64 --mock-data --device cpu "
      "--train-iters 1 --nproc-per-node 3 --record " +
      folder / "r.json");
  CHECK(ended.code == 3);
  CHECK(ended.out.empty());
  CHECK(contains(ended.err, "tally-train: error: out of memory: "));
  CHECK(contains(ended.err, "are needed on this host for 3 processes, and "));
  CHECK(read_json(folder / "r.json")["outcome"] == "out_of_memory");
}

TEST_CASE("asked to stop by a signal: step finished, record and checkpoint written, exit code 4") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    CAPTURE(signal);
    const Folder folder("signal");
    bool sent = false;
    const Ended ended = tally_train(mock + "--train-iters 1000000 --log-interval 1 --save " +
                                        folder / "s" + " --record " + folder / "r.json",
                                    "", [&](const std::string& out, int pid) {
                                      if (sent || !contains(out, " iteration        1/")) return;
                                      sent = kill(pid, signal) == 0;
                                    });
    CHECK(ended.code == 4);
    CHECK(contains(ended.err, "tally-train: stopped: SIG"));
    const json record = read_json(folder / "r.json");
    CHECK(record["outcome"] == "signalled");
    const int64_t done = record["results"]["iterations"];
    CHECK(done >= 1);
    CHECK(done < 1000000);
    CHECK(
        contains(read_text(folder / "s/latest_checkpointed_iteration.txt"), std::to_string(done)));
  }
}

TEST_CASE("the time limit: exit code 4") {
  const Folder folder("time");
  const Ended ended = tally_train(
      mock + "--train-iters 1000000 --exit-duration-in-mins 0.0001 --record " + folder / "r.json");
  CHECK(ended.code == 4);
  CHECK(contains(ended.err, "stopped: --exit-duration-in-mins 0.0001 is over"));
  CHECK(read_json(folder / "r.json")["outcome"] == "time_limit");
}

TEST_CASE("a loss that is not finite: exit code 5, and no checkpoint of it") {
  const Folder folder("nan");
  const Ended ended =
      tally_train(mock + "--train-iters 50 --lr 1e30 --clip-grad 0 --log-interval 1 --save " +
                  folder / "s" + " --record " + folder / "r.json");
  CHECK(ended.code == 5);
  CHECK(contains(ended.err, " is not finite (loss "));
  CHECK(read_json(folder / "r.json")["outcome"] == "failed_check");
  CHECK_FALSE(fs::exists(folder / "s/latest_checkpointed_iteration.txt"));
}

TEST_CASE("the reference model's losses are the explicit model's") {
  const Folder folder("reference");
  const std::string run =
      mock + "--train-iters 3 --hidden-dropout 0 --attention-dropout 0 --precision fp64 ";
  REQUIRE(tally_train(run + "--record " + folder / "a.json").code == 0);
  REQUIRE(tally_train(run + "--reference --record " + folder / "b.json").code == 0);
  const json a = read_json(folder / "a.json")["steps"]["loss"];
  const json b = read_json(folder / "b.json")["steps"]["loss"];
  REQUIRE(a.size() == 3);
  for (size_t i = 0; i < 3; ++i)
    CHECK(a[i].get<double>() == doctest::Approx(b[i].get<double>()).epsilon(1e-9));
}

TEST_CASE("the reference model's metrics are the explicit model's") {
  const Folder folder("metrics");
  const std::string run =
      "--model bert-base --num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 32 "
      "--vocab-size 200 --task classify --num-classes 3 --mock-data --mock-lengths 8:32 --lr 1e-3 "
      "--train-iters 4 --micro-batch-size 4 --eval-interval 2 --eval-iters 3 --precision fp64 ";
  json evaluations[2];
  int at = 0;
  for (const std::string model : {"", "--reference "}) {
    REQUIRE(tally_train(run + model + "--record " + folder / "r.json").code == 0);
    evaluations[at++] = read_json(folder / "r.json")["results"]["evaluations"];
  }
  REQUIRE(evaluations[0].size() == 2);
  REQUIRE(evaluations[1].size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    REQUIRE(evaluations[0][i].contains("accuracy"));
    CHECK(evaluations[0][i]["accuracy"] == evaluations[1][i]["accuracy"]);
  }
}

TEST_CASE("six steps at once and three, resumed, three more are the same bit for bit") {
  for (const std::string precision : {"fp32", "bf16", "bf16 --fp8-format e4m3 --fp8-recipe rowwise",
                                      "bf16 --fp8-format hybrid --fp8-recipe blockwise"}) {
    CAPTURE(precision);
    const Folder folder("resume");
    const std::string threads = "export OMP_NUM_THREADS=2;";
    const std::string run =
        mock + "--train-iters 6 --log-interval 6 --lr-warmup-iters 2 --precision " + precision;
    REQUIRE(tally_train(run + " --save " + folder / "whole" + " --record " + folder / "whole.json")
                .code == 0);
    const std::string parts = run + " --save " + folder / "parts" + " --load " + folder / "parts";
    REQUIRE(
        tally_train(parts + " --exit-interval 3 --record " + folder / "first.json", threads).code ==
        0);
    const Ended second = tally_train(parts + " --record " + folder / "second.json", threads);
    REQUIRE_MESSAGE(second.code == 0, second.err);
    CHECK(contains(second.out, "  resumed    after 3 steps"));

    json losses = read_json(folder / "first.json")["steps"]["loss"];
    CHECK(losses.size() == 3);
    const json resumed = read_json(folder / "second.json")["steps"]["loss"];
    for (const json& loss : resumed) losses.push_back(loss);
    CHECK(losses == read_json(folder / "whole.json")["steps"]["loss"]);
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      const bool same = read_text(folder / "whole/iter_0000006/" + file) ==
                        read_text(folder / "parts/iter_0000006/" + file);
      CHECK_MESSAGE(same, std::string(file));
    }
  }
}

TEST_CASE("the loss falls on real text, below what letter frequencies alone can reach") {
  const Folder folder("text");
  // The project's own documentation.
  std::string text = read_text(TALLY_SOURCE_DIR "/CONTRIBUTING.md");
  std::set<fs::path> pages;  // in an order that is the same on every file system
  for (const auto& entry : fs::directory_iterator(TALLY_SOURCE_DIR "/docs"))
    if (entry.path().extension() == ".md") pages.insert(entry.path());
  for (const fs::path& page : pages) text += read_text(page);
  std::ofstream(folder / "text.txt") << text;
  const Ended prepared = tally_train("prepare --tokenizer-type bytes --append-eod --input " +
                                     folder / "text.txt" + " --output " + folder / "corpus");
  REQUIRE_MESSAGE(prepared.code == 0, prepared.err);
  const Ended ended = tally_train(
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size "
      "8 "
      "--global-batch-size 16 --tokenizer-type bytes --device cpu --position-embedding-type rope "
      "--init-method-std 0.05 --lr 5e-3 --lr-warmup-iters 5 --lr-decay-style cosine --train-iters "
      "120 "
      "--log-interval 20 --hidden-dropout 0 --attention-dropout 0 --split 1 --data-path " +
      folder / "corpus" + " --record " + folder / "r.json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const json losses = read_json(folder / "r.json")["steps"]["loss"];
  REQUIRE(losses.size() == 120);
  // The same chance for each of 257 tokens, and a little more for weights that are not zero.
  CHECK(losses[0].get<double>() == doctest::Approx(std::log(257.0)).epsilon(0.03));
  double last = 0;
  for (size_t i = 110; i < 120; ++i) last += losses[i].get<double>() / 10;
  CHECK(last < letter_entropy(text) - 0.3);
}

TEST_CASE("--time-phases and --throughput-start: the record, the lines, the losses as before") {
  const Folder folder("phases");
  const std::string steps = mock + "--train-iters 6 --log-interval 6 --record ";
  REQUIRE(tally_train(steps + folder / "plain.json").code == 0);
  for (const std::string more : {"", "--nproc-per-node 2 --use-distributed-optimizer"}) {
    CAPTURE(more);
    const Ended ended = tally_train(steps + folder / "r.json" + " --time-phases " + more +
                                    " --throughput-start 3 --throughput-stop 5");
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    CHECK(contains(ended.err, "its throughput is not the headline"));
    CHECK(contains(ended.out, "phases, ms of steps 4 to 6"));
    CHECK(contains(ended.out, "throughput of iterations 3 to 5: "));
    CHECK(contains(ended.out, "; not the headline: --time-phases waits between phases"));
    const json record = read_json(folder / "r.json");
    const json plain = read_json(folder / "plain.json");
    double largest_share = 0;  // on a busy machine a step may wait between its phases
    for (size_t k = 0; k < 6; ++k) {
      double sum = 0;
      for (const char* phase :
           {"data", "forward", "backward", "gradient_reduction", "optimizer_update"})
        sum += record["steps"][fmt::format("{}_seconds", phase)][k].get<double>();
      const auto step = record["steps"]["seconds"][k].get<double>();
      CHECK(sum <= step);
      largest_share = std::max(largest_share, sum / step);
      CHECK(record["steps"]["loss"][k].get<double>() ==
            doctest::Approx(plain["steps"]["loss"][k].get<double>()).epsilon(1e-5));
    }
    CHECK(largest_share > 0.8);
    const json& results = record["results"];
    CHECK(results["phases"]["backward"]["min_seconds"] > 0);
    CHECK((results["phases"]["gradient_reduction"]["mean_seconds"] > 0) == !more.empty());
    CHECK(results["throughput_window"]["samples_per_second"] > 0);
  }
}

TEST_CASE("what cannot be measured is refused") {
  const auto error = [](const std::string& flags) {
    const Ended ended = tally_train(mock + "--train-iters 4 " + flags);
    CHECK(ended.code == 2);
    return ended.err;
  };
  CHECK(error("--throughput-start 2") ==
        "tally-train: error: --throughput-start: goes with --throughput-stop: give the first and "
        "the last iteration\n");
  CHECK(contains(error("--throughput-start 3 --throughput-stop 2"), "2 comes before"));
  CHECK(contains(error("--throughput-start 3 --throughput-stop 5"), "after the last iteration 4"));
  CHECK(contains(
      error("--profile-start 1 --profile-stop 2"),
      "--profile-start: profiles the kernels of a GPU, and --device is cpu: leave it out"));
  CHECK(contains(error("--explain"),
                 "--explain: reads what a GPU did from CUPTI, and --device is cpu: leave it out"));
  CHECK(contains(error("--profile-dir d"), "--profile-dir: goes with --profile-start"));
  CHECK(contains(error("--profile-counters"), "--profile-counters: goes with --profile-start"));
  CHECK(contains(error("--time-phases --nproc-per-node 2 --pipeline-model-parallel-size 2"),
                 "--time-phases: the passes of a pipeline's micro batches overlap"));
}

TEST_CASE("--witness-steps: the losses of the reference model in float64 stand beside the run's") {
  const Folder folder("witness");
  const std::string still = mock + "--hidden-dropout 0 --attention-dropout 0 --train-iters 5 ";
  const auto losses = [&](const std::string& flags, const char* name) {
    const Ended ended = tally_train(still + flags + " --record " + folder / name);
    CHECK_MESSAGE(ended.code == 0, ended.err);
    return read_json(folder / name);
  };
  const json plain = losses("", "plain.json"), run = losses("--witness-steps 3", "run.json");
  CHECK(!plain["results"].contains("witness"));
  CHECK(run["steps"]["loss"] == plain["steps"]["loss"]);  // the witness changes nothing
  // A stranger's check.
  const json reference = losses("--reference --fp64", "reference.json");
  const json& witness = run["results"]["witness"];
  REQUIRE(witness["losses"].size() == 3);
  for (size_t k = 0; k < 3; ++k) {
    CHECK(witness["losses"][k] == reference["steps"]["loss"][k]);
    CHECK(witness["own_losses"][k] == run["steps"]["loss"][k]);
  }
  CHECK(witness["largest_relative_difference"] > 0);
  CHECK(witness["largest_relative_difference"] < 1e-5);
  CHECK(losses("--witness-steps 5 --fp64",
               "f64.json")["results"]["witness"]["largest_relative_difference"] < 1e-12);
  const auto error = [&](const std::string& flags) { return tally_train(mock + flags).err; };
  CHECK(contains(error("--train-iters 4 --hidden-dropout 0.1 --witness-steps 2"),
                 "--witness-steps: dropout draws other masks on a GPU"));
  CHECK(contains(tally_train(still + "--witness-steps 6").err,
                 "--witness-steps: 6 is more than the 5 steps of the run"));
  CHECK(contains(tally_train(still + "--witness-steps 2 --nproc-per-node 2").err,
                 "--witness-steps: computes in one process, and this run has 2: start one"));
}

TEST_CASE("--find-batch on a CPU: the largest that the model lets fit, and one more does not") {
  const Folder folder("find_batch");
  for (const std::string model : {"", "--model bert-base --vocab-size 300 "}) {
    CAPTURE(model);
    const std::string sizes = model +
                              "--num-layers 2 --hidden-size 32 --num-attention-heads 4 "
                              "--seq-length 32 --device cpu --mock-data " +
                              (model.empty() ? "--tokenizer-type bytes " : "");
    const Ended ended = tally_train(sizes + "--find-batch --record " + folder / "r.json");
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    const json record = read_json(folder / "r.json");
    CHECK(record["schema"] == "tally-train-find-batch/1");
    const json& results = record["results"];
    const auto found = results["micro_batch_size"].get<int64_t>();
    CHECK(contains(ended.out, fmt::format("largest micro batch: {} (by the memory model", found)));
    REQUIRE(results["tries"].size() == 2);
    const double limit = results["limit_bytes"];
    CHECK(results["tries"][0]["micro_batch_size"] == found);
    CHECK(results["tries"][0]["predicted_bytes"] <= limit);
    CHECK(results["tries"][1]["predicted_bytes"] > limit);
  }
  // FP8 takes multiples of 16 tokens.
  const Ended fp8 = tally_train(
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 24 --device cpu "
      "--mock-data --tokenizer-type bytes --bf16 --fp8-format hybrid --find-batch --record " +
      folder / "fp8.json");
  REQUIRE_MESSAGE(fp8.code == 0, fp8.err);
  const json tries = read_json(folder / "fp8.json")["results"]["tries"];
  REQUIRE(tries.size() == 2);
  CHECK(tries[0]["micro_batch_size"].get<int64_t>() % 2 == 0);
  CHECK(tries[1]["micro_batch_size"].get<int64_t>() ==
        tries[0]["micro_batch_size"].get<int64_t>() + 2);
  const Ended unwritten = tally_train(
      "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --device cpu "
      "--mock-data --find-batch --record /proc/none/r.json");
  CHECK(unwritten.code == 2);
  CHECK(unwritten.out.empty());
  CHECK(contains(unwritten.err, "--record: "));
  CHECK(contains(unwritten.err, "cannot be written"));
  const Ended refused = tally_train(mock + "--train-iters 1 --find-batch");
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "--micro-batch-size: contradicts --find-batch"));
  const Ended timed = tally_train("--mock-data --device cpu --find-batch --time-phases");
  CHECK(timed.code == 2);
  CHECK(contains(timed.err, "--time-phases: contradicts --find-batch"));
  CHECK(contains(tally_train("evaluate --load nowhere --find-batch").err, "--find-batch: finds"));
}

TEST_CASE("the record has the notes on what differs from the checkpoint") {
  const Folder folder("noted");
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + folder / "s").code == 0);
  const Ended ended = tally_train(mock + "--train-iters 2 --seed 5 --load " +
                                  folder / "s --record " + folder / "r.json");
  REQUIRE(ended.code == 0);
  const json notices = read_json(folder / "r.json")["notices"];
  REQUIRE(notices.size() == 2);
  CHECK(contains(notices[0].get<std::string>(), "samples of the learning rate's decay: 8 differs"));
  CHECK(contains(notices[1].get<std::string>(), "--seed 5 differs from the checkpoint's"));
}

TEST_CASE("an evaluation of a checkpoint has no notes on a schedule that it does not follow") {
  const Folder folder("skip_noted");
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + folder / "s").code == 0);
  const std::string other = mock + "--train-iters 2 --seed 5 --lr 1e-2 --weight-decay 0.3 --load " +
                            folder / "s --record " + folder / "r.json ";
  REQUIRE(tally_train(other).code == 0);
  CHECK(read_json(folder / "r.json")["notices"].size() > 3);
  for (const std::string evaluation : {"--skip-train ", "--skip-train --bf16 "}) {
    const Ended ended = tally_train(other + evaluation + "--eval-iters 1 --split 50,50,0");
    CAPTURE(ended.err);
    CHECK(ended.code == 0);
    const json notices = read_json(folder / "r.json")["notices"];
    CHECK(notices.size() == (contains(evaluation, "bf16") ? 1 : 0));
    CHECK_FALSE(contains(ended.err, "differs from the checkpoint's"));
  }
}

TEST_CASE("a window that a run does not complete is said to be unknown") {
  const Ended ended = tally_train(
      mock + "--train-iters 4 --exit-interval 2 --throughput-start 2 --throughput-stop 3");
  CHECK(ended.code == 0);
  CHECK(contains(ended.out, "throughput of iterations 2 to 3: unknown, this run did not do all"));
}
