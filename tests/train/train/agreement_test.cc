// Agreement of ranks: every flag that changes the run is compared.
#include "src/train/run/agreement.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <future>
#include <map>
#include <set>
#include <sstream>

#include "src/checkpoint/stored_models.h"
#include "src/config/args.h"
#include "src/parallel/control/tcp.h"
#include "src/train/run/failures.h"

using namespace tally::train;

namespace {

Config parse(const std::string& flags) {
  std::istringstream in("tally-train " + flags);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_args(static_cast<int>(argv.size()), argv.data(), stored_models(), 2);
}

// The label of the first setting that differs; empty where none does.
std::string difference(const RunSettings& a, const RunSettings& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].name == b[i].name);
    if (a[i].value != b[i].value) return a[i].label;
  }
  return "";
}

const std::string base =
    "--mock-data --device cpu --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
    "--global-batch-size 8 ";
const std::string steps = base + "--train-iters 10 ";
const std::string samples = base + "--train-samples 80 ";

const std::string classes =
    "--model bert-base --task classify --data-path d --vocab-file v --train-iters 10 ";
const std::string questions =
    "--model bert-base --task squad --data-path d --vocab-file v --train-iters 10 ";

const std::string llama =
    "--swiglu --normalization RMSNorm --disable-bias-linear --use-rotary-position-embeddings ";

// Two command lines that differ in one flag.
struct Pair {
  std::string common, other;
  std::string shared = steps;
};

// A value of each flag that is not the default.
const std::map<std::string, Pair> flags{
    {"--model", {"", "gpt2"}},
    {"--num-layers", {"", "8"}},
    {"--hidden-size", {"", "128"}},
    {"--num-attention-heads", {"", "8"}},
    {"--ffn-hidden-size", {"", "96"}},
    {"--seq-length", {"", "16"}},
    {"--max-position-embeddings", {"", "2048"}},
    {"--position-embedding-type", {"", "rope"}},
    {"--use-rotary-position-embeddings", {"", ""}},
    {"--rotary-base", {"--use-rotary-position-embeddings", "500"}},
    {"--rotary-percent", {"--use-rotary-position-embeddings", "0.5"}},
    {"--group-query-attention", {llama, ""}},
    {"--num-query-groups", {llama + "--group-query-attention", "2"}},
    {"--kv-channels", {llama, "32"}},
    {"--add-qkv-bias", {llama, ""}},
    {"--qk-layernorm", {llama, ""}},
    {"--use-rope-scaling", {llama, ""}},
    {"--rope-scaling-factor", {llama + "--use-rope-scaling", "32"}},
    {"--rope-low-freq-factor", {llama + "--use-rope-scaling", "2"}},
    {"--rope-high-freq-factor", {llama + "--use-rope-scaling", "8"}},
    {"--rope-original-max-position-embeddings", {llama + "--use-rope-scaling", "1024"}},
    {"--vocab-size", {"", "97"}},
    {"--make-vocab-size-divisible-by", {"", "4096"}},
    {"--layernorm-epsilon", {"", "1e-6"}},
    {"--norm-epsilon", {"", "1e-6"}},
    {"--init-method-std", {"", "0.1"}},
    {"--hidden-dropout", {"", "0"}},
    {"--attention-dropout", {"", "0"}},
    {"--micro-batch-size", {"", "2"}},
    {"--global-batch-size", {"", "16"}},
    {"--train-iters", {"", "11"}},
    {"--train-samples", {"", "88", samples}},
    {"--seed", {"", "7"}},
    {"--time-phases", {"", ""}},
    {"--explain", {"--train-iters 20", "", "--mock-data --num-layers 4 "}},
    {"--recompute-activations", {"", ""}},
    {"--recompute-granularity", {"", "full"}},
    {"--exit-interval", {"", "3"}},
    {"--exit-duration-in-mins", {"", "3"}},
    {"--optimizer", {"", "lamb"}},
    {"--sgd-momentum", {"--optimizer sgd", "0.8"}},
    {"--lr", {"", "2e-4"}},
    {"--min-lr", {"", "1e-6"}},
    {"--lr-decay-style", {"", "cosine"}},
    {"--lr-decay-iters", {"", "5"}},
    {"--lr-decay-samples", {"", "40", samples}},
    {"--lr-warmup-iters", {"", "2"}},
    {"--lr-warmup-samples", {"", "2", samples}},
    {"--lr-warmup-fraction", {"", "0.1"}},
    {"--weight-decay", {"", "0.1"}},
    {"--adam-beta1", {"", "0.8"}},
    {"--adam-beta2", {"", "0.95"}},
    {"--adam-eps", {"", "1e-6"}},
    {"--clip-grad", {"", "0.5"}},
    {"--precision", {"", "bf16"}},
    {"--fp32-attention", {"--device auto", "tf32x3"}},
    {"--fp8-format", {"--bf16", "hybrid"}},
    {"--fp8-recipe", {"--bf16 --fp8-format e4m3", "rowwise"}},
    {"--first-last-layers-bf16", {"--bf16 --fp8-format hybrid", ""}},
    {"--num-layers-at-start-in-bf16", {"--bf16 --fp8-format hybrid --first-last-layers-bf16", "2"}},
    {"--num-layers-at-end-in-bf16", {"--bf16 --fp8-format hybrid --first-last-layers-bf16", "2"}},
    {"--bf16", {"", ""}},
    {"--fp16", {"", ""}},
    {"--tf32", {"--device auto", ""}},
    {"--fp64", {"", ""}},
    {"--loss-scale", {"--fp16", "8"}},
    {"--initial-loss-scale", {"--fp16", "8"}},
    {"--min-loss-scale", {"--fp16", "2"}},
    {"--loss-scale-window", {"--fp16", "2"}},
    {"--hysteresis", {"--fp16", "3"}},
    {"--split", {"", "1,1,0"}},
    {"--tokenizer-type", {"", "bytes"}},
    {"--log-interval", {"", "3"}},
    {"--save", {"", "there"}},
    {"--save-hf", {"", "there"}},
    {"--save-interval", {"--save there", "2"}},
    {"--exit-on-missing-checkpoint", {"--load none", ""}},
    {"--eval-interval", {"", "3"}},
    {"--eval-interval-samples", {"", "24"}},
    {"--target-loss", {"--eval-interval 3", "2"}},
    {"--eval-iters", {"", "3"}},
    {"--calculate-per-token-loss", {"", ""}},
    {"--reference", {"", ""}},
    {"--no-cuda-graph", {"", ""}},
    {"--no-fusion", {"", "residual"}},
    {"--deterministic", {"", ""}},
    {"--ddp-bucket-size", {"", "5"}},
    {"--no-peer-memory", {"", ""}},
    {"--check-weight-hash-across-dp-replicas-interval", {"", "5"}},
    {"--distributed-backend", {"", "sockets"}},
    {"--untie-embeddings-and-output-weights", {"", ""}},
    {"--rampup-batch-size", {"", "2 2 8", samples}},
    {"--lr-warmup-init", {"--lr-warmup-iters 2", "1e-5"}},
    {"--start-weight-decay",
     {"--weight-decay-incr-style linear --end-weight-decay 0.1 --start-weight-decay 0.01", "0.02"}},
    {"--end-weight-decay",
     {"--weight-decay-incr-style linear --start-weight-decay 0.01 --end-weight-decay 0.1", "0.2"}},
    {"--weight-decay-incr-style",
     {"--start-weight-decay 0.01 --end-weight-decay 0.1 --weight-decay-incr-style linear",
      "cosine"}},
    {"--finetune", {"--load none", ""}},
    {"--no-load-optim", {"--load none", ""}},
    {"--no-save-optim", {"--save there", ""}},
    {"--skip-train", {"--eval-iters 2", ""}},
    {"--no-bias-gelu-fusion", {"", ""}},
    {"--deterministic-mode", {"", ""}},
    {"--task", {"--model bert-base", "classify"}},
    {"--bert-no-binary-head", {"--model bert-base", ""}},
    {"--num-classes", {"--model bert-base --task classify", "7"}},
    {"--classifier-dropout", {"--model bert-base --task classify", "0.4"}},
    {"--pad", {"--model bert-base", ""}},
    {"--mock-lengths", {"--model bert-base", "9"}},
    {"--mock-samples", {"--model bert-base", "9"}},
    {"--mask-prob", {"--model bert-base", "0.3"}},
    {"--max-predictions-per-seq", {"--model bert-base", "7"}},
    {"--dynamic-masking",
     {"--model bert-base --data-path d --vocab-file v", "", "--train-iters 10 "}},
    {"--text-column", {"", "t", classes}},
    {"--pair-column", {"", "t", classes}},
    {"--label-column", {"", "t", classes}},
    {"--doc-stride", {"", "64", questions}},
    {"--max-query-length", {"", "32", questions}},
    {"--version-2-with-negative", {"", "", questions}},
};

// The flags that may differ between ranks, and why.
const std::set<std::string> may_differ{
    "--data-path", "--train-data-path", "--valid-data-path", "--test-data-path",
    "--mock-data",  // the content is compared; tested below
    // Need a dataset; in the record's configuration by their names, see below.
    "--eod-mask-loss", "--reset-position-ids", "--reset-attention-mask", "--log-format",
    "--log-throughput",                                    // rank 0 alone prints
    "--profile-start", "--profile-stop", "--profile-dir",  // rank 0 alone uses them
    "--profile-counters",                                  // runs in one process
    "--find-batch",                                        // runs in one process
    "--witness-steps",                                     // likewise
    "--no-energy",                                         // each rank reads its own GPU, or not
    "--throughput-start", "--throughput-stop",             // likewise
    "--persistent-save-interval",                          // known and refused, or without effect
    "--local-rank", "--local_rank",  // launchers pass it, and it changes nothing
    "--merge-file", "--record", "--mllog", "--mllog-set",  // rank 0 alone uses them
    "--vocab-file",         // rank 0 alone uses it, or it makes the content
    "--load", "--load-hf",  // need a model on the disk; tested below
    "--epochs",             // needs a dataset; sets the number of steps, which is compared
    "--text", "--stride", "--eval-mode", "--predictions",  // of evaluate; tested below
    "--device",  // the kind of device is compared when it has been opened
    // Refused without each other; the kind of model that they name is compared.
    "--swiglu", "--normalization", "--disable-bias-linear",
    // Where the processes are; the rendezvous compares their number.
    "--nproc-per-node", "--master-addr", "--master-port", "--master-addr-suffix",
    "--network-interface", "--rendezvous-token-file", "--distributed-timeout-minutes",
    "--prefix-output",
    // Refused above 1 or without effect at 1.
    "--tensor-model-parallel-size", "--pipeline-model-parallel-size",
    "--num-layers-per-virtual-pipeline-stage", "--sequence-parallel", "--use-distributed-optimizer",
    "--data-parallel-sharding-strategy", "--context-parallel-size", "--expert-model-parallel-size",
    // A rehearsal has one process.
    "--rehearse", "--network",
    // A plan is printed before ranks meet.
    "--plan", "--plan-device", "--plan-gpus", "--plan-nodes", "--plan-gpus-per-node", "--plan-zero",
    "--plan-network", "--plan-efficiency", "--plan-json"};

bool is_ignored(const std::string& flag) {
  for (const char* value : {"", " 1"}) {
    try {
      for (const std::string& notice : parse(steps + flag + value).notices)
        if (notice.find("accepted without effect: " + flag) == 0) return true;
    } catch (const UsageError&) {
    }
  }
  return false;
}

}  // namespace

TEST_CASE("every flag that changes the run is found when it differs") {
  for (const std::string& flag : flag_names()) {
    CAPTURE(flag);
    const auto found = flags.find(flag);
    if (found == flags.end()) {
      // A new flag: give it a value above, or add below why ranks may differ in it.
      CHECK_MESSAGE((may_differ.count(flag) > 0 || is_ignored(flag)), flag);
      continue;
    }
    const Pair& p = found->second;
    const Config one = parse(p.shared + p.common),
                 two = parse(p.shared + p.common + " " + flag + " " + p.other);
    CHECK_MESSAGE(!difference(run_settings(one), run_settings(two)).empty(), flag);
  }
}

TEST_CASE("every flag of evaluate") {
  Config one = parse(steps);
  one.command = Command::evaluate;
  const auto differs = [&](const auto& change) {
    Config other = one;
    change(other);
    return difference(run_settings(one), run_settings(other));
  };
  CHECK(differs([](Config& c) { c.text = "t"; }) == "--text");
  CHECK(differs([](Config& c) { c.stride = 7; }) == "--stride");
  CHECK(differs([](Config& c) { c.eval_mode = EvalMode::gather; }) == "--eval-mode");
  CHECK(differs([](Config& c) { c.predictions_path = "p"; }) == "--predictions");
}

TEST_CASE("every fusion, and every weight of a blend of datasets") {
  const Config one = parse(steps);
  for (const auto& fusion : fusion_names) {
    Config other = one;
    other.policy.fusions.*fusion.second = false;
    CHECK_MESSAGE(difference(run_settings(one), run_settings(other)) == "--no-fusion",
                  fusion.first);
  }
  for (bool DataConfig::*at_ends : {&DataConfig::eod_mask_loss, &DataConfig::reset_position_ids,
                                    &DataConfig::reset_attention_mask}) {
    Config other = one;
    other.data.*at_ends = true;
    CHECK(difference(run_settings(one), run_settings(other)).rfind("--", 0) == 0);
  }
  Config a = one, b = one;
  a.data.weights = {1, 2};
  b.data.weights = {1, 3};
  CHECK(difference(run_settings(a), run_settings(b)) == "the weights of --data-path");
}

TEST_CASE("paths may differ, whether they are given may not") {
  const Config one = parse(steps);
  Config other = one;
  other.record_path = "r.json";
  other.data.paths = {"/scratch/text"};
  other.device = "cuda:3";
  CHECK(difference(run_settings(one), run_settings(other)).empty());
  other.load_dir = "there";
  CHECK(difference(run_settings(one), run_settings(other)) == "--load");
  Config elsewhere = other;
  elsewhere.load_dir = "elsewhere";
  CHECK(difference(run_settings(other), run_settings(elsewhere)).empty());
  other = one;
  other.save_hf_dir = "there";
  CHECK(difference(run_settings(one), run_settings(other)) == "--save-hf");
  other = one;
  other.load_hf_dir = "there";
  CHECK(difference(run_settings(one), run_settings(other)) == "--load-hf");
  other = one;
  other.data.mock = false;
  CHECK(difference(run_settings(one), run_settings(other)) == "--mock-data");
}

TEST_CASE("every part of the build is compared") {
  const BuildInfo one{"1.0", "abc", "GNU", "Release", "2.11", "13.0"};
  const auto found = [&](auto change) {
    BuildInfo other = one;
    change(other);
    return difference(build_settings(one), build_settings(other));
  };
  CHECK(found([](BuildInfo& b) { b.version = "1.1"; }) == "the version of tally-train");
  CHECK(found([](BuildInfo& b) { b.commit = "abd"; }) == "the commit of tally-train");
  CHECK(found([](BuildInfo& b) { b.libtorch = "2.12"; }) == "LibTorch");
  CHECK(found([](BuildInfo& b) { b.cuda = ""; }) == "the CUDA toolkit of the build");
}

namespace {

// Rank 0's report when the ranks have these settings.
std::string report(const std::vector<RunSettings>& of_ranks) {
  const Socket listener = listen_on("127.0.0.1", 0);
  RendezvousOptions options;
  options.size = static_cast<int>(of_ranks.size());
  options.address = "127.0.0.1";
  options.token.text = std::string(64, '7');
  options.port = port_of(listener);
  options.timeout_seconds = 30;
  std::vector<std::future<std::string>> ranks;
  for (int r = options.size - 1; r >= 0; --r) {
    RendezvousOptions mine = options;
    mine.rank = r;
    if (r == 0) mine.listening_fd = dup(listener.fd());
    ranks.push_back(std::async(std::launch::async, [mine, &of_ranks]() -> std::string {
      const auto meeting = Rendezvous::meet(mine, [](const Failure&) {});
      try {
        require_same_settings(*meeting, "node" + std::to_string(mine.rank),
                              of_ranks[static_cast<size_t>(mine.rank)], "start them alike");
      } catch (const InputError& e) {
        meeting->fail(2, e.what());
        return e.what();
      } catch (const CommunicationError& e) {
        return e.what();
      }
      meeting->done();
      return "";
    }));
  }
  std::vector<std::string> said;
  for (auto& rank : ranks) said.push_back(rank.get());
  for (const std::string& one : said)
    CHECK_MESSAGE((said.back().empty() ? one.empty() : one.find(said.back()) != std::string::npos),
                  one);
  return said.back();
}

}  // namespace

TEST_CASE("ranks that differ are named with both values, and all learn it") {
  const RunSettings one{{"a", "--a", "1"}, {"b", "--b", "2"}},
      two{{"a", "--a", "1"}, {"b", "--b", "3"}};
  CHECK(report({one, one, one}).empty());
  CHECK(report({one, two}) ==
        "--b is 3 on rank 1 (node1) and 2 on rank 0 (node0): start them alike");
  CHECK(report({one, one, two, one, two}) ==
        "--b is 3 on ranks 2, 4 (node2) and 2 on rank 0 (node0): start them alike");
  CHECK(report({one, {{"a", "--a", "1"}}}).find("the list of settings is of another version") == 0);
}
