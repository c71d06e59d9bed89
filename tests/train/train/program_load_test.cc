// The parts of a checkpoint that a run reads and writes: --finetune, --no-load-optim,
// --no-save-optim, and what is said where the checkpoint differs from the run.
#include <cmath>
#include <cstring>

#include "tests/train/train/tiny_run.h"

namespace {

const std::string run = mock + "--log-interval 1 ";

json losses(const Folder& folder) {
  return read_json(folder / "r.json")["steps"]["loss"];
}

}  // namespace

TEST_CASE("--finetune begins at iteration 0 with the weights of a checkpoint") {
  const Folder folder("finetune");
  const std::string saved = folder / "s";
  REQUIRE(tally_train(run + "--train-iters 4 --save " + saved).code == 0);
  const Ended ended = tally_train(run + "--train-iters 3 --finetune --load " + saved + " --save " +
                                  folder / "t --record " + folder / "r.json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.out, "  weights    " + saved + "/iter_0000004\n"));
  CHECK_FALSE(contains(ended.out, "resumed"));
  CHECK(contains(ended.out, " iteration        3/       3 | consumed samples:           12 |"));
  CHECK(read_text(folder / "t/latest_checkpointed_iteration.txt") == "3\n");
  // The same as with the weights alone, read as a model of Hugging Face.
  const json tuned = losses(folder);
  REQUIRE(tally_train(run + "--train-iters 4 --save-hf " + folder / "hf").code == 0);
  REQUIRE(tally_train("--mock-data --device cpu --tokenizer-type bytes --seq-length 32 --lr 1e-3 "
                      "--micro-batch-size 2 --global-batch-size 4 --train-iters 3 --load-hf " +
                      folder / "hf --record " + folder / "r.json")
              .code == 0);
  CHECK(losses(folder) == tuned);

  const Ended replaces =
      tally_train(run + "--train-iters 3 --finetune --load " + saved + " --save " + saved);
  CHECK(replaces.code == 2);
  CHECK(contains(replaces.err, "--save: '" + saved + "' holds checkpoints"));
  const Ended missing = tally_train(run + "--train-iters 3 --finetune --load " + folder / "none");
  CHECK(missing.code == 2);
  CHECK(missing.err == "tally-train: error: --finetune: --load " + folder / "none" +
                           " holds no checkpoint to take weights from\n");
}

TEST_CASE("a run that did no step records no rate") {
  const Folder folder("no_step");
  const std::string steps = run + "--train-iters 2 --save " + folder / "s ";
  REQUIRE(tally_train(steps).code == 0);
  const std::string record = " --record " + folder / "r.json";
  for (const std::string& more :
       {"--load " + folder / "s", "--skip-train --load " + folder / "s"}) {
    CAPTURE(more);
    const Ended ended = tally_train(steps + more + record);
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    CHECK(contains(ended.out,
                   "completed: 0 steps after 2 of an earlier run: no step was measured, "
                   "so that there are no rates\n"));
    const json results = read_json(folder / "r.json")["results"];
    for (const auto& [name, value] : results.items())
      if (name.find("per_second") != std::string::npos ||
          name.find("per_iteration") != std::string::npos)
        if (name != "tokens_per_iteration") CHECK_MESSAGE(value.is_null(), name);
  }
}

TEST_CASE("weights that are not numbers are named, whatever reads them") {
  const Folder folder("nan");
  const std::string model = folder / "m", file = model + "/model.safetensors";
  REQUIRE(tally_train(run + "--train-iters 1 --save-hf " + model).code == 0);
  std::string bytes = read_text(file);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const json names = json::parse(bytes.substr(sizeof header, header));
  const float nan = NAN;
  const size_t begin = names["transformer.h.1.ln_2.weight"]["data_offsets"][0];
  std::memcpy(bytes.data() + sizeof header + header + begin + 2 * sizeof nan, &nan, sizeof nan);
  std::ofstream(file, std::ios::binary) << bytes;
  write_text(folder / "text.txt", "a text that is long enough");
  const std::string of = "--device cpu --tokenizer-type bytes --load-hf " + model;
  for (const std::string& words :
       {of + " --mock-data --seq-length 32 --train-iters 2",
        of + " --mock-data --seq-length 32 --train-iters 2 --nproc-per-node 2 "
             "--pipeline-model-parallel-size 2",
        "evaluate " + of + " --text " + folder / "text.txt"}) {
    CAPTURE(words);
    const Ended ended = tally_train(words);
    CHECK(ended.code == 2);
    CHECK_MESSAGE(contains(ended.err, "--load-hf: the weights in '" + model +
                                          "' are not all numbers: element 2 of "
                                          "'transformer.h.1.ln_2.weight' is NaN or infinite"),
                  ended.err);
  }
}

TEST_CASE("--no-save-optim and --no-load-optim: weights and counters without the optimizer") {
  const Folder folder("optim");
  const std::string saved = folder / "s", place = saved + "/iter_0000002/";
  const std::string longer =
      run + "--train-iters 4 --load " + saved + " --record " + folder / "r.json ";
  REQUIRE(tally_train(run + "--train-iters 2 --no-save-optim --save " + saved).code == 0);
  CHECK_FALSE(fs::exists(place + "optimizer.safetensors"));
  CHECK(read_json(place + "state.json")["optimizer"] == false);
  const Ended refused = tally_train(longer);
  CHECK(refused.code == 2);
  CHECK(
      refused.err ==
      "tally-train: error: --load: '" + saved +
          "/iter_0000002' has no optimizer's state (it was saved with --no-save-optim): give "
          "--no-load-optim to resume with its weights alone, or --finetune to start at iteration 0 "
          "with them\n");
  const Ended ended = tally_train(longer + "--no-load-optim --save " + saved);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.out, "  resumed    after 2 steps, from " + saved +
                                ", without its optimizer's state\n"));
  CHECK(losses(folder).size() == 2);
  const json state = read_json(saved + "/iter_0000004/state.json");
  CHECK(state["consumed_samples"] == 16);
  CHECK(state["optimizer_steps"] == 2);
  CHECK(state["skipped_iterations"] == 0);
  CHECK(state["optimizer"] == true);
  CHECK(tally_train("evaluate --device cpu --tokenizer-type bytes --text " TALLY_SOURCE_DIR
                    "/README.md --load " +
                    place)
            .code == 0);
  // Where the state is there, it is what makes the difference.
  REQUIRE(tally_train(run + "--train-iters 2 --save " + folder / "whole").code == 0);
  const std::string resume =
      run + "--train-iters 4 --record " + folder / "r.json --load " + folder / "whole ";
  REQUIRE(tally_train(resume).code == 0);
  const json with = losses(folder);
  REQUIRE(tally_train(resume + "--no-load-optim").code == 0);
  CHECK(losses(folder)[0] == with[0]);
  CHECK(losses(folder)[1] != with[1]);
}

TEST_CASE("LAMB and SGD: a training that was interrupted ends with the same bytes") {
  const Folder folder("optimizers");
  for (const std::string kind : {"lamb", "sgd"}) {
    const std::string steps = run + "--bf16 --lr-decay-iters 6 --optimizer " + kind + " --save ";
    const std::string whole = folder / kind, broken = whole + "_broken";
    REQUIRE(tally_train(steps + whole + " --train-iters 6").code == 0);
    REQUIRE(tally_train(steps + broken + " --train-iters 3").code == 0);
    const Ended ended = tally_train(steps + broken + " --train-iters 6 --load " + broken);
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    for (const std::string name : {"model.safetensors", "optimizer.safetensors"})
      CHECK((read_text(whole + "/iter_0000006/" + name) ==
             read_text(broken + "/iter_0000006/" + name)));
  }
  const std::string place = folder / "sgd", state = place + "/iter_0000006";
  const Ended refused =
      tally_train(run + "--bf16 --lr-decay-iters 6 --train-iters 7 --load " + place);
  CHECK(refused.code == 2);
  CHECK(
      refused.err ==
      "tally-train: error: --load: '" + state +
          "' has the state of --optimizer sgd, and this run's optimizer is adam: give --optimizer "
          "sgd, --no-load-optim to resume with its weights alone, or --finetune to start at "
          "iteration 0 with them\n");
}

TEST_CASE("a checkpoint of another precision is named with the flag to set") {
  const Folder folder("differs");
  const std::string saved = folder / "s", more = run + "--train-iters 3 --load " + saved;
  REQUIRE(tally_train(run + "--train-iters 2 --save " + saved).code == 0);
  CHECK_FALSE(contains(tally_train(more).err, "note: --"));
  const Ended ended = tally_train(more + " --bf16");
  CHECK(ended.code == 0);
  CHECK(contains(ended.err,
                 "note: --precision: the checkpoint was trained in fp32, and this run trains in "
                 "bf16: give --precision fp32 to train as before\n"));
}

TEST_CASE("a training goes on with another padding of the vocabulary, and back") {
  const Folder folder("padding");
  const std::string exact =
      run + "--precision fp64 --lr-decay-style constant --record " + folder / "r.json ";
  REQUIRE(tally_train(exact + "--train-iters 6").code == 0);
  const json whole = losses(folder);
  const std::string narrow = "--make-vocab-size-divisible-by 1 ", save = "--save " + folder / "s ";
  const std::string load = "--load " + folder / "s ";
  REQUIRE(tally_train(exact + save + "--train-iters 2").code == 0);
  const Ended first = tally_train(exact + save + load + narrow + "--train-iters 4");
  REQUIRE_MESSAGE(first.code == 0, first.err);
  CHECK_FALSE(contains(first.err, "note: --"));
  json resumed = losses(folder);
  REQUIRE(tally_train(exact + load + "--train-iters 6").code == 0);
  for (const json& loss : losses(folder)) resumed.push_back(loss);
  REQUIRE(resumed.size() == 4);
  for (size_t i = 0; i < 4; ++i)
    CHECK(resumed[i].get<double>() == doctest::Approx(whole[i + 2].get<double>()).epsilon(1e-12));
}

TEST_CASE("--save and --save-hf do not share a folder") {
  const Folder folder("shared");
  for (const std::string name : {"s", "s/", "x/../s"}) {
    CAPTURE(name);
    const Ended ended =
        tally_train(run + "--train-iters 1 --save " + folder / "s --save-hf " + folder / name);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(contains(ended.err, "--save-hf: '" + folder / name + "' is --save's folder, too"));
    CHECK(fs::is_empty(folder.path));
  }
}

TEST_CASE("untied embeddings: trained like the reference, saved, and taken from the checkpoint") {
  const Folder folder("untied");
  const std::string exact = mock +
                            "--train-iters 3 --hidden-dropout 0 --attention-dropout 0 "
                            "--untie-embeddings-and-output-weights --precision fp64 --record " +
                            folder / "r.json ";
  REQUIRE(tally_train(exact + "--save-hf " + folder / "hf").code == 0);
  const json ours = losses(folder);
  REQUIRE(tally_train(exact + "--reference").code == 0);
  const json reference = losses(folder);
  REQUIRE(ours.size() == 3);
  for (size_t i = 0; i < 3; ++i)
    CHECK(ours[i].get<double>() == doctest::Approx(reference[i].get<double>()).epsilon(1e-9));
  CHECK(read_json(folder / "hf/config.json")["tie_word_embeddings"] == false);
  CHECK(contains(read_text(folder / "hf/model.safetensors"), "lm_head.weight"));

  const std::string more =
      "--mock-data --device cpu --seq-length 32 --tokenizer-type bytes --train-iters 1 --record " +
      folder / "r.json --load-hf ";
  REQUIRE(tally_train(more + folder / "hf").code == 0);
  CHECK(read_json(folder / "r.json")["configuration"]["model"]["tied_embeddings"] == false);
  REQUIRE(tally_train(run + "--train-iters 1 --save-hf " + folder / "tied").code == 0);
  const Ended ended = tally_train(more + folder / "tied --untie-embeddings-and-output-weights");
  CHECK(ended.code == 2);
  CHECK(ended.err ==
        "tally-train: error: --untie-embeddings-and-output-weights: contradicts " +
            folder /
                "tied/config.json, which says that the output layer has the embedding's "
                "weights: leave it out\n");
}

TEST_CASE("a rehearsal prints the notes of the configuration, once") {
  const std::string llama =
      "--swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope "
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 16 --vocab-size 60 "
      "--device cpu --mock-data --train-iters 1 ";
  const Ended trained = tally_train(llama), rehearsed = tally_train(llama + "--rehearse 1x1x2");
  CHECK(rehearsed.code == 0);
  const size_t note = trained.err.find("tally-train: note: ");
  REQUIRE(note != std::string::npos);
  const std::string line = trained.err.substr(note, trained.err.find('\n', note) + 1 - note);
  CHECK(contains(line, "dropout"));
  CHECK(rehearsed.err == line);
}

TEST_CASE("a damaged checkpoint is exit code 2, whichever file it is and whoever finds it") {
  const Folder folder("damaged");
  for (const std::string processes : {"", "--nproc-per-node 2 --use-distributed-optimizer "}) {
    CAPTURE(processes);
    const std::string saved = folder / (processes.empty() ? "one" : "two");
    REQUIRE(tally_train(run + processes + "--train-iters 2 --save " + saved).code == 0);
    const std::string resume = run + processes + "--train-iters 4 --record " + folder / "r.json" +
                               " --load " + saved + " ";
    const Ended whole = tally_train(resume);
    CHECK(whole.code == 0);
    const json right = losses(folder);
    for (const auto& entry : fs::directory_iterator(saved + "/iter_0000002")) {
      CAPTURE(entry.path().string());
      const std::string good = read_text(entry.path());
      const bool weights = entry.path().filename() == "model.safetensors";
      for (const size_t at : {size_t{3}, good.size() / 2, good.size() - 2}) {
        CAPTURE(at);
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 4);
        write_text(entry.path(), bad);
        // A resumed run takes no number from the weights.
        if (weights && at > 3) {
          CHECK(tally_train(resume).code == 0);
          CHECK(losses(folder) == right);
        }
        for (const std::string how : {"", "--no-load-optim ", "--finetune "}) {
          const bool optimizer = contains(entry.path().filename().string(), "optimizer");
          if ((weights && at > 3 && how.empty()) || (optimizer && !how.empty())) continue;
          CAPTURE(how);
          const Ended ended = tally_train(resume + how);
          CHECK(ended.code == 2);
          CHECK(contains(ended.err, "--load: '" + entry.path().string() + "' "));
          CHECK_FALSE(contains(ended.out, "iteration        3/"));
        }
      }
      write_text(entry.path(), good);
    }
    CHECK_FALSE(contains(whole.err, "checksums"));
  }
}

TEST_CASE("checkpoints of version 0.2.0, which have no checksums, are loaded with a note") {
  // tests/golden/checkpoints_0.2.0/make.sh: flags and numbers are those of that version.
  const std::string golden = std::string(TALLY_SOURCE_DIR) + "/tests/golden/checkpoints_0.2.0/";
  const std::string flags =
      "--num-layers 1 --hidden-size 8 --num-attention-heads 2 --seq-length 8 --tokenizer-type "
      "bytes "
      "--device cpu --mock-data --micro-batch-size 1 --global-batch-size 4 --lr 1e-2 "
      "--log-interval 1 --train-iters 6 ";
  std::istringstream lines(read_text(golden + "losses.txt"));
  int loaded = 0;
  for (std::string line; std::getline(lines, line); ++loaded) {
    std::istringstream words(line);
    std::string name, loss;
    words >> name;
    const Ended ended = tally_train(flags + "--load " + golden + name);
    CHECK(ended.code == 0);
    while (words >> loss) CHECK(contains(ended.out, "lm loss: " + loss + " |"));
    const std::string folder = golden + name + "/iter_0000003", note = " has no checksums";
    CHECK(contains(ended.err, "--load: " + folder + note));
    CHECK(contains(tally_train(flags + "--load-hf " + folder).err, "--load-hf: " + folder + note));
    const std::string evaluate =
        "evaluate --device cpu --tokenizer-type bytes --seq-length 8 --text " TALLY_SOURCE_DIR
        "/CITATION.cff ";
    CHECK(contains(tally_train(evaluate + "--load " + golden + name).err,
                   "--load: " + folder + note));
    CHECK(
        contains(tally_train(evaluate + "--load-hf " + folder).err, "--load-hf: " + folder + note));
  }
  CHECK(loaded == 3);
}

namespace {

// Everything that reads a checkpoint's folder ends with this sentence. `folder`: as a user may write
// it.
void check_refused(const std::string& folder, const std::string& sentence) {
  const std::string evaluate =
      "evaluate --device cpu --tokenizer-type bytes --seq-length 8 --text " TALLY_SOURCE_DIR
      "/CITATION.cff ";
  for (const std::string& command :
       {run + "--train-iters 9 --load ", run + "--train-iters 9 --finetune --load ",
        run + "--train-iters 9 --no-load-optim --load ", run + "--train-iters 9 --load-hf ",
        evaluate + "--load ", evaluate + "--load-hf "}) {
    CAPTURE(command + folder);
    const Ended ended = tally_train(command + folder);
    CHECK(ended.code == 2);
    CHECK(contains(ended.err, sentence));
    CHECK_FALSE(contains(ended.out, "loss"));
  }
}

}  // namespace

TEST_CASE(
    "a checkpoint in the folder of another iteration is refused, however the folder is written") {
  const Folder folder("renamed");
  const std::string saved = folder / "s", renamed = saved + "/iter_0000010";
  REQUIRE(tally_train(run + "--train-iters 2 --save " + saved).code == 0);
  fs::rename(saved + "/iter_0000002", renamed);
  for (const char* end : {"", "/", "/../iter_0000010//."})
    check_refused(renamed + end, "is of iteration 2, and its folder's name is of iteration 10");
  // A link has a name, too; one without an iteration says nothing.
  fs::create_directory_symlink(renamed, folder / "iter_0000002");
  CHECK(tally_train(run + "--train-iters 3 --load " + folder / "iter_0000002/").code == 0);
  fs::create_directory_symlink(renamed, folder / "best");
  CHECK(tally_train(run + "--train-iters 3 --load " + folder / "best/").code == 0);
}

TEST_CASE("a checkpoint whose manifest is away is not taken for one of an earlier version") {
  const Folder folder("no_manifest");
  for (const std::string processes : {"", "--nproc-per-node 2 --use-distributed-optimizer "}) {
    CAPTURE(processes);
    const std::string saved = folder / (processes.empty() ? "one" : "two");
    REQUIRE(tally_train(run + processes + "--train-iters 2 --save " + saved).code == 0);
    const std::string manifest = saved + "/iter_0000002/manifest.json";
    const std::string good = read_text(manifest);
    fs::remove(manifest);
    if (!processes.empty()) {
      check_refused(saved + "/iter_0000002", "manifest.json");
      break;
    }
    check_refused(saved + "/iter_0000002",
                  "manifest.json', which has the checkpoint's checksums, is missing");
    fs::create_symlink("nowhere", manifest);
    check_refused(saved + "/iter_0000002",
                  "manifest.json', which has the checkpoint's checksums, is missing");
    fs::remove(manifest);
    write_text(manifest, R"({"format": 1, "dtype": "F32", "parameters": {}, "files": []})");
    check_refused(saved + "/iter_0000002", "is that of an earlier version");
    // A letter in the other case is a bit that flipped, although it is the same number.
    const size_t letter = good.find_first_of("abcdef", good.rfind("\"checksum\": \"") + 13);
    if (letter == std::string::npos) continue;  // digits alone
    std::string flipped = good;
    flipped[letter] = static_cast<char>(flipped[letter] ^ 0x20);
    write_text(manifest, flipped);
    check_refused(saved + "/iter_0000002", "manifest.json' is damaged");
  }
}

TEST_CASE("a checkpoint's weights are its own: an index of others in their place is refused") {
  const Folder folder("other_weights");
  const std::string saved = folder / "s", last = saved + "/iter_0000004";
  REQUIRE(tally_train(run + "--train-iters 4 --save-interval 2 --save " + saved).code == 0);
  fs::remove(last + "/model.safetensors");
  check_refused(last, "model.safetensors");
  fs::copy(saved + "/iter_0000002/model.safetensors", last + "/other.safetensors");
  const std::string bytes = read_text(last + "/other.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const json tensors = json::parse(bytes.substr(sizeof header, header));
  json index;
  for (const auto& [name, tensor] : tensors.items())
    if (name != "__metadata__") index["weight_map"][name] = "other.safetensors";
  write_text(last + "/model.safetensors.index.json", index.dump());
  check_refused(last, "model.safetensors");
}

TEST_CASE("an older checkpoint that is loaded beside a newer one is named") {
  const Folder folder("older");
  const std::string saved = folder / "s";
  REQUIRE(tally_train(run + "--train-iters 4 --save-interval 2 --save " + saved).code == 0);
  write_text(saved + "/latest_checkpointed_iteration.txt", "2\n");
  const Ended ended = tally_train(run + "--train-iters 4 --load " + saved);
  CHECK(ended.code == 0);
  CHECK(contains(ended.err, saved + "/iter_0000004 is newer"));
}

TEST_CASE("the record's exit code is the program's where bad input is found while it is loaded") {
  const Folder folder("bad_input");
  const std::string made =
      run + "--train-iters 2 --save " + folder / "s --save-hf " + folder / "hf";
  REQUIRE(tally_train(made).code == 0);
  // The end of each file is of its values.
  const auto damaged = [&](const std::string& from, const std::string& file) {
    const std::string copy = folder / "copy";
    fs::remove_all(copy);
    fs::copy(folder / from, copy, fs::copy_options::recursive);
    std::string bytes = read_text(copy + "/" + file);
    bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));  // NaN
    write_text(copy + "/" + file, bytes);
    return copy + " ";
  };
  const std::string text = folder / "text.txt";
  write_text(text, std::string(2000, 'x'));
  const std::string trains =
      "--device cpu --mock-data --tokenizer-type bytes --seq-length 32 "
      "--micro-batch-size 2 --global-batch-size 4 --train-iters 4 ";
  const std::vector<std::pair<std::string, std::string>> commands{
      {"s", run + "--train-iters 4 --load "},
      {"s", run + "--train-iters 4 --skip-train --eval-iters 1 --load "},
      {"hf", trains + "--load-hf "},
      {"hf", "evaluate --device cpu --tokenizer-type bytes --seq-length 32 --text " + text +
                 " --load-hf "}};
  for (const auto& [from, command] : commands)
    for (const std::string file : {"model.safetensors", "optimizer.safetensors"})
      for (const std::string ranks : {"", "--nproc-per-node 2 ", "--nproc-per-node 2 "}) {
        // Which file a run takes its numbers from.
        const bool resumes = from == "s" && !contains(command, "--skip-train");
        if (file != (resumes ? "optimizer.safetensors" : "model.safetensors")) continue;
        CAPTURE(command);
        CAPTURE(file);
        CAPTURE(ranks);
        fs::remove(folder / "r.json");
        const std::string inside = from == "s" ? "iter_0000002/" + file : file;
        const Ended ended =
            tally_train(command + damaged(from, inside) + ranks + "--record " + folder / "r.json");
        INFO(ended.err);
        CHECK(ended.code == 2);
        if (!fs::exists(folder / "r.json")) continue;  // found before the run began
        const json record = read_json(folder / "r.json");
        CHECK(record["outcome"] == "error");
        if (!contains(command, "evaluate")) CHECK(record["exit_code"] == ended.code);
        CHECK(contains(record["message"], folder / "copy"));
      }
}
