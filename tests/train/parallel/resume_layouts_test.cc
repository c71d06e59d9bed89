// Trainings that go on under another layout of ranks, and what several ranks write.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "src/checkpoint/safetensors.h"
#include "tests/train/parallel/ranks.h"

using tally::train::SafetensorsFile;

namespace {

const std::string exact =
    flags + "--hidden-dropout 0 --attention-dropout 0 --lr-decay-style constant ";
const std::string many =
    "--nproc-per-node 4 --tensor-model-parallel-size 2 "
    "--pipeline-model-parallel-size 2 ";
const std::string tensor = "--nproc-per-node 4 --tensor-model-parallel-size 4 ";
const std::string stages = "--nproc-per-node 4 --pipeline-model-parallel-size 2 ";

json losses(const std::string& run, const Folder& folder) {
  const Ended ended = tally_train(run + "--record " + folder / "r.json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  return read_json(folder / "r.json")["steps"]["loss"];
}

}  // namespace

TEST_CASE("a training goes on under one layout after the other, with the numbers of one process") {
  const Folder folder("resume_layouts");
  const json whole = losses(exact + "--train-iters 10 ", folder);
  const std::string places = exact + "--save " + folder / "s --load " + folder / "s ";
  json broken = losses(places + many + "--train-iters 2 ", folder);
  int64_t iterations = 2;
  for (const std::string& layout : {tensor, std::string(), stages, many}) {
    iterations += 2;
    CAPTURE(layout);
    const json more =
        losses(places + layout + "--train-iters " + std::to_string(iterations) + " ", folder);
    REQUIRE(more.size() == 2);
    for (const json& loss : more) broken.push_back(loss);
  }
  REQUIRE(broken.size() == 10);
  for (size_t i = 0; i < 10; ++i)
    CHECK(broken[i].get<double>() == doctest::Approx(whole[i].get<double>()).epsilon(1e-11));
  CHECK(fs::exists(folder / "s/iter_0000002/manifest.json"));
  CHECK(fs::exists(folder / "s/iter_0000010/optimizer-00004-of-00004.safetensors"));
  CHECK(fs::exists(folder / "s/iter_0000006/optimizer.safetensors"));
  // Two replicas of two stages: the first replica writes.
  CHECK(fs::exists(folder / "s/iter_0000008/optimizer-00002-of-00002.safetensors"));
}

TEST_CASE("LAMB, SGD and a Llama go on under another layout") {
  for (const std::string more :
       {"--optimizer lamb ", "--optimizer sgd ",
        "--swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope "
        "--group-query-attention --num-query-groups 4 --kv-channels 6 "}) {
    CAPTURE(more);
    const Folder folder("resume_others");
    const std::string run = exact + more;
    const json whole = losses(run + "--train-iters 6 ", folder);
    const std::string places = run + "--save " + folder / "s --load " + folder / "s ";
    losses(places + tensor + "--train-iters 2 ", folder);
    losses(places + "--nproc-per-node 4 --use-distributed-optimizer --train-iters 4 ", folder);
    const json last = losses(places + "--train-iters 6 ", folder);
    for (size_t i = 0; i < 2; ++i)
      CHECK(last[i].get<double>() == doctest::Approx(whole[4 + i].get<double>()).epsilon(1e-11));
  }
}

TEST_CASE("a training over the labels of global batches goes on however they are divided") {
  const std::string common =
      "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --mock-data --precision fp64 --lr "
      "1e-3 "
      "--lr-decay-style constant --clip-grad 0.5 --device cpu --log-interval 2 --hidden-dropout 0 "
      "--attention-dropout 0 --global-batch-size 8 ";
  const std::string encoder = common + "--vocab-size 97 --seq-length 24 --mock-lengths 4:24 ";
  for (const std::string& run :
       {encoder + "--model bert-base ", encoder + "--model bert-base --task squad ",
        common + "--seq-length 16 --tokenizer-type NullTokenizer --vocab-size 17 --eod-mask-loss "
                 "--calculate-per-token-loss "}) {
    CAPTURE(run);
    const Folder folder("resume_labels");
    const std::string whole_batch = run + "--micro-batch-size 8 ";
    const json whole = losses(whole_batch + "--train-iters 6 ", folder);
    const std::string places = fmt::format("--save {0} --load {0} ", folder / "s");
    losses(run + places + "--micro-batch-size 1 --nproc-per-node 2 --train-iters 2 ", folder);
    losses(run + places +
               "--micro-batch-size 1 --nproc-per-node 4 --use-distributed-optimizer "
               "--train-iters 4 ",
           folder);
    const json last = losses(run + places + "--micro-batch-size 2 --train-iters 6 ", folder);
    for (size_t i = 0; i < 2; ++i)
      CHECK(last[i].get<double>() == doctest::Approx(whole[4 + i].get<double>()).epsilon(1e-11));
    // The same division has the same bits.
    fs::remove_all(folder / "s");
    losses(whole_batch + places + "--exit-interval 3 --train-iters 6 ", folder);
    const json rest = losses(whole_batch + places + "--train-iters 6 ", folder);
    CHECK(rest == json(whole.begin() + 3, whole.end()));
  }
}

TEST_CASE("the model that several ranks write is one process's, and ranks read their parts of it") {
  const Folder folder("export_layouts");
  const std::string run = exact + "--train-iters 2 ";
  losses(run + "--save-hf " + folder / "one ", folder);
  losses(run + many + "--save-hf " + folder / "hf --save " + folder / "s ", folder);
  CHECK(read_text(folder / "hf/model.safetensors") ==
        read_text(folder / "s/iter_0000002/model.safetensors"));
  const SafetensorsFile one(folder / "one/model.safetensors"), hf(folder / "hf/model.safetensors");
  REQUIRE(one.tensors().size() == hf.tensors().size());
  for (const auto& named : one.tensors()) {
    const auto& tensor_of_one = named.second;
    const auto& other = hf.tensors().at(named.first);
    CAPTURE(named.first);
    REQUIRE(other.bytes == tensor_of_one.bytes);
    std::vector<double> a(other.bytes / 8), b(a.size());
    std::memcpy(a.data(), tensor_of_one.data, other.bytes);
    std::memcpy(b.data(), other.data, other.bytes);
    double difference = 0;
    for (size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::abs(a[i] - b[i]));
    CHECK(difference < 1e-9);
  }
  const std::string from =
      "--mock-data --precision fp64 --seq-length 16 --micro-batch-size 2 "
      "--global-batch-size 8 --lr 1e-3 --device cpu --train-iters 1 "
      "--hidden-dropout 0 --attention-dropout 0 --load-hf " +
      folder / "hf ";
  const double alone = losses(from, folder)[0].get<double>();
  for (const std::string& layout : {many, tensor, stages})
    CHECK(losses(from + layout, folder)[0].get<double>() == doctest::Approx(alone).epsilon(1e-11));
}

TEST_CASE("a part that is missing ends all ranks before they allocate, with one sentence") {
  const Folder folder("missing_part");
  const std::string run = exact + many + "--save " + folder / "s ";
  losses(run + "--train-iters 2 ", folder);
  const std::string part = folder / "s/iter_0000002/optimizer-00003-of-00004.safetensors";
  fs::remove(part);
  const Ended ended = tally_train(run + "--train-iters 4 --load " + folder / "s");
  CHECK(ended.code == 2);
  CHECK(count(ended.err, "tally-train: error: ") == 1);
  CHECK(contains(ended.err, "--load: '" + part + "' cannot be read: No such file or directory"));
}
