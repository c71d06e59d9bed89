// The data that a run evaluates on: parts of a dataset, separate datasets, the test data.
#include <algorithm>
#include <functional>
#include <regex>

#include "tests/train/train/tiny_run.h"

namespace {

// Three texts in which the letters come with different probability, of 40 documents each.
struct Corpora : Folder {
  explicit Corpora(const std::string& name) : Folder(name) {
    const std::string letters = "abcdefghijklmnopqrstuvwxyz";
    for (size_t text = 0; text < 3; ++text) {
      const std::string file = *this / std::string(1, letters[text]);
      std::ofstream out(file + ".txt");
      for (size_t document = 0; document < 40; ++document) {
        for (size_t i = 0; i < 60; ++i)
          out << letters[(i * i + document * (text + 2)) % (8 + 8 * text)];
        out << "\n\n";
      }
      out.close();
      REQUIRE(tally_train("prepare --tokenizer-type bytes --append-eod "
                          "--split-documents-on-blank-lines --input " +
                          file + ".txt --output " + file)
                  .code == 0);
    }
  }
};

// The loss of "validation loss at WHERE", with all its digits.
std::string loss_at(const std::string& out, const std::string& where) {
  std::smatch found;
  const std::regex line(" validation loss at " + where + R"( \| lm loss value: (\S+) )");
  return std::regex_search(out, found, line) ? found[1].str() : "none at " + where;
}

}  // namespace

TEST_CASE("a dataset each for training, validation and test") {
  const Corpora corpora("separate");
  const std::string separate = tiny + "--train-data-path " + corpora / "a --valid-data-path 0.5 " +
                               corpora / "b 0.5 " + corpora / "c --test-data-path " + corpora / "c";
  const Ended ended =
      tally_train(separate + " --train-iters 4 --eval-interval 2 --eval-iters 2 --save " +
                  corpora / "s --record " + corpora / "r.json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.out, "  data       " + corpora / "a: 40 documents"));
  CHECK(contains(ended.out, "; validation: 0.5 x " + corpora / "b: 40 documents"));
  CHECK(contains(ended.out, "; test: " + corpora / "c: 40 documents"));
  const std::string test = loss_at(ended.out, "the end of training for test data");
  CHECK(test.find("none") == std::string::npos);
  const json record = read_json(corpora / "r.json");
  CHECK(record["configuration"]["data"]["split"].is_null());
  CHECK(record["configuration"]["data"]["valid_weights"] == json({0.5, 0.5}));
  const json& evaluations = record["results"]["evaluations"];
  REQUIRE(evaluations.size() == 3);
  CHECK(evaluations[1]["split"] == "validation");
  CHECK(evaluations[2]["split"] == "test");

  // The checkpoint's losses again, without training; nothing is written.
  const auto before = read_text(corpora / "s/latest_checkpointed_iteration.txt");
  const std::string load = " --skip-train --eval-iters 2 --load " + corpora / "s ";
  const Ended again = tally_train(separate + load + "--save " + corpora / "t");
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(contains(again.err, "note: --save has no effect with --skip-train: nothing changes\n"));
  CHECK(loss_at(again.out, "iteration 4 on test set") == test);
  CHECK(loss_at(again.out, "iteration 4 on validation set").find("none") == std::string::npos);
  CHECK_FALSE(contains(again.out, " iteration        1/"));
  CHECK_FALSE(fs::exists(corpora / "t"));
  CHECK(read_text(corpora / "s/latest_checkpointed_iteration.txt") == before);

  // A whole dataset for validation is what --split 0,1 makes of it, and no other one.
  const auto validation = [&](const std::string& data) {
    return loss_at(tally_train(tiny + load + data).out, "iteration 4 on validation set");
  };
  const std::string of_c = validation("--valid-data-path " + corpora / "c");
  CHECK(of_c == test);
  CHECK(of_c == validation("--split 0,1 --data-path " + corpora / "c"));
  CHECK(of_c != validation("--valid-data-path " + corpora / "b"));
}

TEST_CASE("--skip-train finds what training's evaluation found") {
  const Corpora corpora("skip");
  const std::string data = tiny + "--split 8,2 --data-path " + corpora / "b --eval-iters 3 ";
  const Ended trained =
      tally_train(data + "--train-iters 2 --eval-interval 2 --save " + corpora / "s");
  REQUIRE_MESSAGE(trained.code == 0, trained.err);
  const std::string loss = loss_at(trained.out, "iteration 2");
  CHECK(loss.find("none") == std::string::npos);
  for (const std::string extra : {"", "--train-samples 100 ", "--reference "}) {
    CAPTURE(extra);
    const Ended skipped = tally_train(data + extra + "--skip-train --load " + corpora / "s");
    REQUIRE_MESSAGE(skipped.code == 0, skipped.err);
    const std::string found = loss_at(skipped.out, "iteration 2 on validation set");
    CHECK(std::stod(found) == doctest::Approx(std::stod(loss)).epsilon(1e-6));
    CHECK(contains(skipped.out,
                   "\ncompleted: 0 steps after 2 of an earlier run: no step was measured, so that "
                   "there are no rates\n"));
  }
}

TEST_CASE("datasets of their own: what does not fit is named with its flag") {
  const Corpora corpora("separate_errors");
  const auto refused = [&](const std::string& flags, const std::string& message) {
    CAPTURE(flags);
    const Ended ended = tally_train(tiny + "--train-iters 1 " + flags);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK_MESSAGE(contains(ended.err, message), ended.err);
  };
  refused("--train-data-path /none/x", "'/none/x.idx'");
  refused("--seq-length 4000 --train-data-path " + corpora / "a",
          "--train-data-path " + corpora /
                                     "a: has 2440 tokens, and one sample of --seq-length "
                                     "4000 needs 4001: lower --seq-length");
}

TEST_CASE("a growing global batch: the record's steps, and a run that is resumed amid it") {
  const Folder folder("rampup");
  const std::string run =
      "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --micro-batch-size "
      "2 "
      "--global-batch-size 6 --rampup-batch-size 2 2 12 --train-samples 26 --tokenizer-type bytes "
      "--device cpu --lr 1e-3 --mock-data --log-interval 2 ";
  const Ended whole = tally_train(run + "--record " + folder / "r.json");
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  CHECK(contains(whole.out, "  ramp-up    2 samples a step at first, 2 more at a time until 12 "));
  CHECK(contains(whole.out, " iteration        6/       7 | consumed samples:           20 |"));
  const json record = read_json(folder / "r.json");
  CHECK(record["steps"]["global_batch_size"] == json({2, 2, 2, 4, 4, 6, 6}));
  CHECK(record["configuration"]["training"]["rampup_batch_size"] == json({2, 2, 12}));
  const std::string parts = run + "--save " + folder / "s --load " + folder / "s";
  REQUIRE(tally_train(parts + " --exit-interval 4").code == 0);
  REQUIRE(tally_train(parts + " --record " + folder / "second.json").code == 0);
  const json& losses = record["steps"]["loss"];
  CHECK(read_json(folder / "second.json")["steps"]["loss"] ==
        json({losses[4], losses[5], losses[6]}));
}

TEST_CASE("--eod-mask-loss: what follows the end of a document does not count") {
  const Corpora corpora("eod");
  const std::string run = tiny +
                          "--train-iters 3 --hidden-dropout 0 --attention-dropout 0 --precision "
                          "fp64 --split 8,2 --eval-interval 3 --eval-iters 2 --data-path " +
                          corpora / "a --record " + corpora / "r.json ";
  const auto results = [&](const std::string& flags) {
    const Ended ended = tally_train(run + flags);
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    const json record = read_json(corpora / "r.json");
    json losses = record["steps"]["loss"];
    losses.push_back(record["results"]["evaluations"][0]["loss"]);
    return losses;
  };
  const json all = results(""), masked = results("--eod-mask-loss");
  const json reference = results("--eod-mask-loss --reference");
  REQUIRE(masked.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(masked[i].get<double>() == doctest::Approx(reference[i].get<double>()).epsilon(1e-9));
    CHECK(masked[i] != all[i]);
  }
  // Positions and attention that end with the document, learned and rotary.
  for (const std::string positions : {"", " --position-embedding-type rope"}) {
    std::vector<json> different;
    for (const std::string flags : {"", "--reset-position-ids", "--reset-attention-mask",
                                    "--reset-position-ids --reset-attention-mask"}) {
      CAPTURE(flags + positions);
      const json ours = results(flags + positions);
      const json slow = results(flags + positions + " --reference");
      for (size_t i = 0; i < 4; ++i)
        CHECK(ours[i].get<double>() == doctest::Approx(slow[i].get<double>()).epsilon(1e-9));
      // Rotary positions are relative, so that within a document it makes no difference where they
      // begin.
      const bool same_as_before = !positions.empty() && flags.size() > 30;
      if (same_as_before) {
        for (size_t i = 0; i < 4; ++i)
          CHECK(ours[i].get<double>() ==
                doctest::Approx(different.back()[i].get<double>()).epsilon(1e-9));
      } else {
        for (const json& other : different) CHECK(ours != other);
      }
      different.push_back(ours);
    }
  }
}

TEST_CASE("a new encoder's vocabulary that is larger than --vocab-file's is noted") {
  const Folder folder("vocabulary");
  std::ofstream(folder / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  const std::string run =
      "--model bert-base --num-layers 1 --hidden-size 8 --num-attention-heads 2 --seq-length 16 "
      "--micro-batch-size 2 --train-iters 1 --mock-data --device cpu --vocab-file " +
      folder / "vocab.txt";
  const Ended larger = tally_train(run + " --vocab-size 40");
  CHECK(larger.code == 0);
  CHECK(contains(larger.err, folder / "vocab.txt" +
                                 " has 7 tokens, and the model's vocabulary 40: --vocab-size 7 "
                                 "makes them equal"));
  CHECK_FALSE(contains(tally_train(run + " --vocab-size 7").err, "makes them equal"));
}

namespace {

// An indexed dataset of one document, as Megatron writes it.
void write_dataset(const std::string& prefix, const std::vector<uint16_t>& tokens) {
  const auto put = [](std::ofstream& out, const auto& value) {
    out.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::ofstream bin(prefix + ".bin", std::ios::binary), idx(prefix + ".idx", std::ios::binary);
  for (const uint16_t token : tokens) put(bin, token);
  idx.write("MMIDIDX\0\0", 9);
  put(idx, uint64_t{1});
  put(idx, uint8_t{8});
  put(idx, uint64_t{1});
  put(idx, uint64_t{2});
  put(idx, static_cast<int32_t>(tokens.size()));
  for (const int64_t number : {0, 0, 1}) put(idx, number);
}

// The means of the losses of steps first, first + 1, ..., last that have one.
double mean_of(const json& losses, size_t first, size_t last) {
  double sum = 0, count = 0;
  for (size_t k = first; k <= last; ++k) {
    if (losses[k].is_null()) continue;
    sum += losses[k].get<double>();
    ++count;
  }
  return sum / count;
}

}  // namespace

TEST_CASE("a step in which no label counts has no loss, and is in no mean") {
  const Folder folder("unlabelled");
  constexpr uint16_t end = 256;
  write_dataset(folder / "none", std::vector<uint16_t>(2000, end));
  // Stretches of text amid ends of documents, so that a sample has labels or none.
  std::vector<uint16_t> tokens(2000, end);
  for (size_t k = 0; k < tokens.size(); ++k)
    if (k % 200 < 60) tokens[k] = static_cast<uint16_t>('a' + k * k % 26);
  write_dataset(folder / "some", tokens);
  const std::string run =
      "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --device cpu "
      "--tokenizer-type bytes --lr 1e-3 --precision fp64 --hidden-dropout 0 --attention-dropout 0 "
      "--micro-batch-size 1 --log-interval 1000 --eod-mask-loss --record " +
      folder / "r.json ";
  for (const std::string& how :
       {std::string(), std::string("--calculate-per-token-loss "), std::string("--reference "),
        std::string("--nproc-per-node 2 --global-batch-size 2 "),
        std::string("--nproc-per-node 2 --pipeline-model-parallel-size 2 "),
        std::string("--nproc-per-node 2 --tensor-model-parallel-size 2 ")}) {
    CAPTURE(how);
    const Ended none = tally_train(run + how + "--train-iters 3 --data-path " + folder / "none");
    INFO(none.err);
    CHECK(none.code == 0);
    const json nothing = read_json(folder / "r.json");
    CHECK(nothing["steps"]["loss"] == json({nullptr, nullptr, nullptr}));
    CHECK(nothing["results"]["final_loss"].is_null());
    CHECK_FALSE(contains(none.out, "lm loss"));
    CHECK(contains(none.out, ", loss unknown"));
    CHECK(contains(none.out, "; 3 of 3 steps have no loss, because their samples lack labels"));

    const Ended some =
        tally_train(run + how + "--epochs 1 --split 1 --data-path " + folder / "some");
    INFO(some.err);
    CHECK(some.code == 0);
    const json record = read_json(folder / "r.json");
    const json& losses = record["steps"]["loss"];
    const auto missing = std::count(losses.begin(), losses.end(), json(nullptr));
    CHECK(missing > 0);
    CHECK(missing < static_cast<int64_t>(losses.size()) - 1);
    const double mean = mean_of(losses, 0, losses.size() - 1);
    CHECK(record["results"]["epochs"][0]["loss"].get<double>() == doctest::Approx(mean));
    CHECK(contains(some.out, fmt::format("lm loss: {:.3E}", mean).substr(0, 12)));
    CHECK(contains(some.out, fmt::format("; {} of {} steps have no loss", missing, losses.size())));
  }
}

TEST_CASE(
    "a run that is resumed with other data says so, and with the same data by another name not") {
  const Corpora corpora("resumed");
  fs::create_directory(corpora / "link");
  for (const char* file : {"a.bin", "a.idx"})
    fs::create_symlink(corpora / file, corpora / "link/" + file);
  const auto run = [&](const std::string& data, const std::string& folder) {
    return tally_train(tiny + "--log-interval 1 " + data + folder);
  };
  const auto copy = [&](const std::string& from, const std::string& to) {
    for (const char* end : {".bin", ".idx"})
      fs::copy_file(corpora / (from + end), corpora / (to + end),
                    fs::copy_options::overwrite_existing);
  };
  const auto notes = [&](
                         const std::string& first, const std::string& then,
                         const std::function<void()>& between = [] {}) {
    CAPTURE(first + " -> " + then);
    fs::remove_all(corpora / "s");
    const Ended saved = run(first + " --train-iters 1", " --save " + corpora / "s");
    REQUIRE_MESSAGE(saved.code == 0, saved.err);
    between();
    const Ended resumed = run(then + " --train-iters 2", " --load " + corpora / "s");
    REQUIRE_MESSAGE(resumed.code == 0, resumed.err);
    return contains(resumed.err, "the samples are others, or in another order");
  };
  const std::string a = "--split 90,10,0 --data-path " + corpora / "a";
  const std::string ab = "--data-path 0.7 " + corpora / "a" + " 0.3 " + corpora / "b";
  CHECK_FALSE(notes(a, a));
  CHECK_FALSE(notes(a, "--split 90,10,0 --data-path " + corpora / "link/a"));
  CHECK_FALSE(notes(a, "--split 9,1,0 --data-path " + corpora / "./a"));
  CHECK_FALSE(notes(ab, "--data-path 7 " + corpora / "a" + " 3 " + corpora / "link/../b"));
  CHECK_FALSE(notes(a, "--split 90,10,0 --data-path 3 " + corpora / "a"));
  CHECK(notes(a, "--split 50,50,0 --data-path " + corpora / "a"));
  CHECK(notes(a, "--split 90,10,0 --data-path " + corpora / "b"));
  CHECK(notes(ab, "--data-path 6 " + corpora / "a" + " 4 " + corpora / "b"));
  CHECK(notes(a, "--mock-data"));
  // Another text under the name, of the same number of tokens.
  copy("a", "x");
  const std::string x = "--data-path " + corpora / "x";
  CHECK(notes(x, x, [&] { copy("b", "x"); }));

  // The columns of a table.
  std::ofstream(corpora / "v.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  std::ofstream table(corpora / "t.csv");
  table << "text,other,label,kind\n";
  for (int row = 0; row < 12; ++row)
    table << (row % 2 == 0 ? "a b" : "b") << "," << (row % 3 == 0 ? "b" : "a") << "," << row % 2
          << "," << row / 6 << "\n";
  table.close();
  const std::string bert =
      "--model bert-base --num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 8 "
      "--device cpu --lr 1e-3 --micro-batch-size 4 --task classify --vocab-file " +
      corpora / "v.txt" + " --data-path " + corpora / "t.csv";
  for (const auto& [more, differs] :
       std::vector<std::pair<std::string, bool>>{{"", false},
                                                 {" --label-column label", false},
                                                 {" --label-column kind", true},
                                                 {" --text-column other", true},
                                                 {" --pair-column other", true}}) {
    fs::remove_all(corpora / "s");
    REQUIRE(tally_train(bert + " --train-iters 1 --save " + corpora / "s").code == 0);
    const Ended resumed = tally_train(bert + more + " --train-iters 2 --load " + corpora / "s");
    INFO(more);
    REQUIRE_MESSAGE(resumed.code == 0, resumed.err);
    CHECK(contains(resumed.err, "the samples are others") == differs);
  }
}
