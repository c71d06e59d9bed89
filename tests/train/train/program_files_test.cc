// The program's files: datasets, folders of checkpoints and of models, records.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "tests/train/data/small_vocabulary.h"
#include "tests/train/train/tiny_run.h"

TEST_CASE("a missing dataset, and no command") {
  Ended ended = tally_train(tiny + "--train-iters 1 --data-path /none/corpus");
  CHECK(ended.code == 2);
  CHECK(contains(ended.err, "/none/corpus"));
  CHECK(ended.out.empty());
  ended = tally_train("");
  CHECK(ended.code == 2);
  CHECK(ended.err == "tally-train: error: no flags were given: 'tally-train --help' lists them\n");
  ended = tally_train("evaluat");
  CHECK(ended.code == 2);
  CHECK(
      ended.err ==
      "tally-train: error: 'evaluat' is not a command: train, evaluate, links, prepare, tokenize, "
      "convert, complete, "
      "reference\n");
}

TEST_CASE("a dataset that is shorter than one sample") {
  const Folder folder("short");
  const auto train = [&](size_t tokens) {
    std::ofstream(folder / "text.txt") << std::string(tokens, 'x');
    REQUIRE(tally_train("prepare --tokenizer-type bytes --input " + folder / "text.txt" +
                        " --output " + folder / "text")
                .code == 0);
    return tally_train(tiny + "--train-iters 1 --split 1 --data-path " + folder / "text");
  };
  const Ended ended = train(32);
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(contains(ended.err, folder / "text: --split 1 leaves 32 tokens for training, and one "
                                     "sample of --seq-length 32 needs 33: lower --seq-length"));
  CHECK(train(33).code == 0);
}

TEST_CASE("a record replaces an older one, and no other file") {
  const Folder folder("replaced");
  std::ofstream(folder / "corpus.txt") << std::string(1000, 'x');
  REQUIRE(tally_train("prepare --tokenizer-type bytes --input " + folder / "corpus.txt" +
                      " --output " + folder / "corpus")
              .code == 0);
  const std::string data = read_text(folder / "corpus.bin");
  const std::string run = tiny + "--train-iters 1 --data-path " + folder / "corpus" + " --split 1";
  const Ended ended = tally_train(run + " --record " + folder / "corpus.bin");
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(contains(ended.err, "--record: '" + folder / "corpus.bin' exists but is not a record"));
  CHECK((read_text(folder / "corpus.bin") == data));
  std::ofstream(folder / "r.json").close();  // an empty file is nobody's loss
  REQUIRE(tally_train(run + " --save " + folder / "s --record " + folder / "r.json").code == 0);
  REQUIRE(tally_train(run + " --record " + folder / "r.json").code == 0);
  const std::string evaluate = "evaluate --device cpu --tokenizer-type bytes --load " +
                               folder / "s --text " + folder / "corpus.txt" + " --record ";
  CHECK(tally_train(evaluate + folder / "corpus.bin").code == 2);
  CHECK((read_text(folder / "corpus.bin") == data));
  CHECK(tally_train(evaluate + folder / "r.json").code == 0);
  CHECK(read_json(folder / "r.json")["command_line"][1] == "evaluate");
  CHECK(tally_train("train " + run + " --record " + folder / "r.json").code == 0);
  CHECK(read_json(folder / "r.json")["command_line"][1] == "train");
}

TEST_CASE(
    "records and predictions: a link stays, and a FIFO and the standard output are written to") {
  const Folder folder("named_files");
  fs::create_directories(folder / "other");
  const std::string link = folder / "stdout", out = folder / "out.txt";
  fs::create_symlink("/proc/self/fd/1", link);
  REQUIRE(tally_train(mock + "--train-iters 1 --record " + link, "exec >" + out + ";").code == 0);
  CHECK(fs::is_symlink(link));
  std::string text = read_text(out);
  CHECK(contains(text, "completed: 1 step"));
  CHECK(contains(text, R"("schema": "tally-train-record/1")"));
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 3);

  const std::string sizes =
      "--num-layers 1 --hidden-size 16 --num-attention-heads 2 --vocab-size 60 --seq-length 16 "
      "--micro-batch-size 2 --device cpu --mock-data --train-iters 1 --tokenizer-type "
      "NullTokenizer ";
  REQUIRE(tally_train("--model bert-base --task classify " + sizes + "--save-hf " + folder / "m")
              .code == 0);
  const std::string evaluate =
      "evaluate --device cpu --mock-data --mock-samples 4 --seq-length 16 --micro-batch-size 2 "
      "--tokenizer-type NullTokenizer --load-hf " +
      folder / "m --predictions ";
  const std::string predictions = folder / "p";
  fs::create_symlink("other/p.jsonl", predictions);
  for (int i = 0; i < 2; ++i) {
    const Ended ended = tally_train(evaluate + predictions);
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    CHECK(fs::is_symlink(predictions));
    CHECK(contains(read_text(folder / "other/p.jsonl"), R"({"sample":3)"));
    CHECK(std::distance(fs::directory_iterator(folder / "other"), {}) == 1);
  }
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int fd = open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(fd >= 0);
  CHECK(tally_train(evaluate + pipe).code == 0);
  CHECK(fs::is_fifo(pipe));
  text.assign(1 << 16, ' ');
  CHECK(read(fd, text.data(), text.size()) > 0);
  CHECK(contains(text, R"({"sample":3)"));
  close(fd);
}

TEST_CASE("a record that cannot be written is found before training") {
  const Ended ended = tally_train(mock + "--train-iters 1 --record /proc/none/r.json");
  CHECK(ended.code == 2);
  CHECK(contains(ended.err, "/proc/none/r.json: the record cannot be written"));
}

TEST_CASE("folders of checkpoints are looked at before training") {
  const Folder folder("folders");
  std::ofstream(folder / "file").put(0);
  Ended ended = tally_train(mock + "--train-iters 1 --save " + folder / "file");
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(contains(ended.err, "--save: checkpoints cannot be written under '" + folder / "file'"));

  // Where even root cannot write: no model is trained and then lost.
  ended = tally_train(mock + "--train-iters 1 --save-hf /proc/zz");
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(contains(ended.err, "--save-hf: the model cannot be written to '/proc/zz'"));

  const std::string saved = folder / "saved";
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + saved).code == 0);
  ended = tally_train(mock + "--train-iters 2 --num-layers 3 --load " + saved);
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(contains(ended.err, "--num-layers: 3 contradicts " + saved + "/iter_0000001/config.json"));
}

TEST_CASE("a run resumes with the model of its checkpoint, whatever else fits its shapes") {
  const Folder folder("model");
  const std::string saved = folder / "s", config = saved + "/iter_0000002/config.json";
  const std::string rotary =
      mock + "--position-embedding-type rope --train-iters 2 --save " + saved;
  REQUIRE(tally_train(rotary + " --rotary-percent 0.5").code == 0);
  // 4 heads, epsilon 1e-5 and a base of 10,000 are the model's.
  const std::string go_on = "--mock-data --device cpu --train-iters 3 --seq-length 32 --load " +
                            saved + " --record " + folder / "r.json ";
  const auto refused = [&](const std::string& flags, const std::string& message) {
    CAPTURE(flags);
    const Ended ended = tally_train(go_on + flags);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK_MESSAGE(contains(ended.err, message), ended.err);
  };
  const std::string against = " contradicts " + config + ", which says ";
  refused("--num-attention-heads 8", "--num-attention-heads: 8" + against + "4");
  refused("--norm-epsilon 1e-6", "--layernorm-epsilon: 1e-06" + against + "1e-05");
  refused("--rotary-percent 1", "--rotary-percent: 1" + against + "0.5");
  refused("--rotary-base 500", "--rotary-base: 500" + against + "10000");
  refused("--position-embedding-type learned_absolute", "--position-embedding-type:" + against);
  refused("--model gpt2", "--model: gpt2" + against + "2 layers");
  refused("--tokenizer-type GPT2BPETokenizer", "--tokenizer-type: GPT2BPETokenizer has 50257");
  const Ended ended = tally_train(go_on);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.out, "  resumed    after 2 steps"));
  const json model = read_json(folder / "r.json")["configuration"]["model"];
  CHECK(model["num_attention_heads"] == 4);
  CHECK(model["rotary_percent"] == 0.5);
  CHECK(model["vocab_size"] == 257);
  const std::string text = read_text(config);
  std::ofstream(config) << text.substr(0, text.size() / 2);
  refused("", "--load: '" + config + "' is damaged: it has ");
  // As version 0.2.0 saved.
  fs::remove(saved + "/iter_0000002/manifest.json");
  json state = read_json(saved + "/iter_0000002/state.json");
  state.erase("checksums");
  std::ofstream(saved + "/iter_0000002/state.json") << state;
  refused("", "--load: '" + config + "' is not valid JSON");
  fs::remove(config);
  refused("", "--load: '" + config + "' cannot be read");
}

TEST_CASE("two runs at once do not write to one folder of checkpoints") {
  const Folder folder("two");
  const std::string save = " --save " + folder / "s";
  Ended second;
  const Ended first =
      tally_train(mock + "--train-iters 1000000 --log-interval 1" + save, "",
                  [&](const std::string& out, int pid) {
                    if (second.code != -1 || !contains(out, " iteration        1/")) return;
                    second = tally_train(mock + "--train-iters 1" + save);
                    CHECK(contains(second.err, fmt::format("(process {} on ", pid)));
                    kill(pid, SIGTERM);
                  });
  CHECK(first.code == 4);
  CHECK(second.code == 2);
  CHECK(second.out.empty());
  CHECK(contains(second.err, "--save: another run writes its checkpoints to '" + folder / "s'"));
  for (const auto& entry : fs::directory_iterator(folder / "s"))
    CHECK(entry.path().filename().string()[0] != '.');
}

TEST_CASE("checkpoints are never silently replaced or ignored") {
  const Folder folder("kept");
  const std::string saved = folder / "s";
  const std::string run = mock + "--log-interval 1 --train-iters ";
  REQUIRE(tally_train(run + "2 --save " + saved).code == 0);
  const auto refused = [&](const std::string& flags, const std::string& message) {
    CAPTURE(flags);
    const Ended ended = tally_train(run + flags);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(contains(ended.err, message));
  };
  const std::string holds = "--save: '" + saved + "' holds checkpoints (the newest of iteration 2)";
  refused("1 --save " + saved, holds);
  REQUIRE(tally_train(run + "1 --save " + folder / "other").code == 0);
  refused("3 --save " + saved + " --load " + folder / "other", holds);
  CHECK(read_text(saved + "/latest_checkpointed_iteration.txt") == "2\n");
  // One checkpoint's own folder says which.
  const Ended ended =
      tally_train(run + "3 --save " + saved + " --load " + saved + "/iter_0000002/");
  CHECK(ended.code == 0);
  CHECK(contains(ended.out, "  resumed    after 2 steps"));
  CHECK(read_text(saved + "/latest_checkpointed_iteration.txt") == "3\n");
  fs::remove(saved + "/latest_checkpointed_iteration.txt");
  refused("4 --save " + saved + " --load " + saved,
          "--load: '" + saved + "' holds checkpoints and");
  const Ended evaluated =
      tally_train("evaluate --device cpu --tokenizer-type bytes --text /dev/null --load " + saved);
  CHECK(evaluated.code == 2);
  CHECK(contains(evaluated.err, "--load: '" + saved + "' holds checkpoints and"));
}

TEST_CASE("a checkpoint that is damaged or of another precision is found before training") {
  const Folder folder("damaged");
  const std::string saved = folder / "s", place = saved + "/iter_0000001/";
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + saved).code == 0);
  const auto refused = [&](const std::string& message, const std::string& flags = "") {
    const Ended ended = tally_train(mock + "--train-iters 2 --load " + saved + " --record " +
                                    folder / "r.json " + flags);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK_MESSAGE(contains(ended.err, message), ended.err);
    CHECK_FALSE(fs::exists(folder / "r.json"));
  };
  refused("--load: '" + place + "optimizer.safetensors' does not fit this run: 'master.", "--fp64");
  refused("--seq-length: 16 differs from the checkpoint's 32", "--seq-length 16");
  for (const std::string name : {"optimizer.safetensors", "state.json"}) {
    CAPTURE(name);
    const std::string whole = read_text(place + name);
    fs::resize_file(place + name, whole.size() / 2);
    refused("--load: '" + place + name + "' ");
    fs::remove(place + name);
    refused("--load: '" + place + name + "' cannot be read");
    std::ofstream(place + name, std::ios::binary) << whole;
  }
  CHECK(tally_train(mock + "--train-iters 2 --load " + saved).code == 0);
}

TEST_CASE("two vocabularies in one folder that differ end every command, and nothing is written") {
  const TempDir dir;
  const SmallVocabulary v(dir);
  dir.write("text.txt", "lower low aa and some more words of a text\n");
  const std::string files = " --vocab-file " + v.vocab_file + " --merge-file " + v.merge_file;
  const std::string run =
      "--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 --micro-batch-size 1 "
      "--device cpu --lr 1e-3 --mock-data --tokenizer-type GPT2BPETokenizer ";
  REQUIRE(tally_train(run + files + " --vocab-size 262 --train-iters 1 --save " + dir / "s" +
                      " --save-hf " + dir / "m")
              .code == 0);
  const std::string model = dir / "m", checkpoint = dir / "s/iter_0000001";
  const auto write_whole = [&](const json& merges) {
    const json whole = {
        {"added_tokens", json::array()},
        {"normalizer", nullptr},
        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
        {"model", {{"type", "BPE"}, {"vocab", read_json(v.vocab_file)}, {"merges", merges}}}};
    for (const std::string& folder : {model, checkpoint})
      write_text(folder + "/tokenizer.json", whole.dump());
  };
  const std::string named = " --vocab-file " + model + "/vocab.json --merge-file " + model +
                            "/merges.txt ",
                    evaluate = "evaluate --device cpu --seq-length 8 --text " + dir / "text.txt" +
                               " --record " + dir / "new ",
                    saves = " --save " + dir / "new" + " --save-hf " + dir / "new2";
  const std::vector<std::string> commands{
      "prepare --input " + dir / "text.txt" + " --output " + dir / "new" + named,
      "tokenize --input " + dir / "text.txt" + " --vocab-file " + model + "/tokenizer.json",
      evaluate + "--load-hf " + model,
      evaluate + "--load " + dir / "s",
      run + "--train-iters 1 --load-hf " + model + saves,
      run + "--vocab-size 262 --train-iters 2 --load " + dir / "s" + saves};
  const json good = {"l o", "lo w", "e r", "Ġ low", "a a"};
  json other = good;
  std::swap(other[1], other[2]);
  for (const std::string& command : commands) {
    CAPTURE(command);
    write_whole(other);
    const auto before = dir.names();
    const Ended refused = tally_train(command);
    CAPTURE(refused.err);
    CHECK(refused.code == 2);
    CHECK(contains(refused.err, "are two vocabularies that differ: merge 2 is"));
    CHECK(contains(refused.err, "/merges.txt'"));
    CHECK(contains(refused.err, "/tokenizer.json'"));
    CHECK(refused.out.empty());
    CHECK(dir.names() == before);
    write_whole(good);
    CHECK(tally_train(command).code == 0);
    for (const char* made : {"new", "new2", "new.bin", "new.idx"}) fs::remove_all(dir / made);
  }
}

TEST_CASE("evaluate reports what it needs and what it does not support") {
  const Folder folder("evaluate");
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + folder / "s").code == 0);
  const auto refused = [&](const std::string& flags, const std::string& message) {
    const Ended ended =
        tally_train("evaluate --device cpu --tokenizer-type bytes --load " + folder / "s " + flags);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK_MESSAGE(contains(ended.err, message), ended.err);
  };
  refused("", "--text: is missing: name a plain text, or with --data-path a dataset made by");
  refused("--text " TALLY_SOURCE_DIR "/README.md --tensor-model-parallel-size 2 --nproc-per-node 2",
          "--tensor-model-parallel-size: 2: evaluate is parallel in data only: take 1");
  refused("--text " TALLY_SOURCE_DIR "/README.md --eval-mode gather",
          "--eval-mode: goes with --task classify and squad");
  refused("--text " TALLY_SOURCE_DIR "/README.md --predictions p.json",
          "--predictions: goes with --task classify and squad: leave it out");
}

TEST_CASE("a flag with an empty value is refused, not ignored") {
  for (const char* flag : {"--save", "--record", "--load-hf", "--data-path", "--vocab-file"}) {
    CAPTURE(std::string(flag));
    const Ended ended = tally_train(mock + "--train-iters 1 " + flag + " ''");
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err ==
          fmt::format("tally-train: error: {}: is empty: give a value or leave it out\n", flag));
  }
}

TEST_CASE("an existing model is replaced only by a run that resumes its training") {
  const Folder folder("there");
  const std::string run = mock + "--save-hf " + folder / "model ";
  REQUIRE(tally_train(run + "--train-iters 2 --save " + folder / "s").code == 0);
  const std::string weights = read_text(folder / "model/model.safetensors");
  Ended ended = tally_train(run + "--train-iters 1");
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(contains(ended.err, "--save-hf: '" + folder / "model' already holds a model"));
  ended = tally_train("--mock-data --device cpu --seq-length 32 --train-iters 1 --load-hf " +
                      folder / "model --save-hf " + folder / "s/iter_0000002");
  CHECK(ended.code == 2);
  CHECK(contains(ended.err, "iter_0000002' is a checkpoint of --save"));
  CHECK((read_text(folder / "model/model.safetensors") == weights));
  ended = tally_train(run + "--train-iters 3 --load " + folder / "s");
  CHECK(ended.code == 0);
  CHECK((read_text(folder / "model/model.safetensors") != weights));
}

TEST_CASE("a checkpoint that cannot be written does not take the model with it") {
  const Folder folder("lost");
  bool lost = false;
  const Ended ended = tally_train(mock + "--train-iters 1000000 --log-interval 1 --save " +
                                      folder / "s --save-hf " + folder / "model",
                                  "", [&](const std::string& out, int pid) {
                                    if (lost || !contains(out, " iteration        1/")) return;
                                    lost = true;
                                    fs::remove_all(folder / "s");
                                    std::ofstream(folder / "s").put('x');
                                    kill(pid, SIGTERM);
                                  });
  CHECK(ended.code == 1);
  CHECK(contains(ended.err, "the checkpoint under '" + folder / "s' cannot be written"));
  CHECK(contains(ended.out, "saved the model in Hugging Face's format"));
  CHECK(fs::exists(folder / "model/model.safetensors"));
}

TEST_CASE("invalid model folders and texts are refused") {
  const Folder folder("evaluate");
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + folder / "s --save-hf " + folder / "model")
              .code == 0);
  std::ofstream(folder / "text.txt") << "a text that is long enough";
  const auto refused = [&](const std::string& flags, const std::string& message) {
    CAPTURE(flags);
    const Ended ended = tally_train("evaluate --device cpu " + flags);
    CHECK(ended.code == 2);
    CHECK_MESSAGE(contains(ended.err, message), ended.err);
  };
  const std::string text = " --tokenizer-type bytes --text " + folder / "text.txt";
  refused("--load-hf " + folder / "model/config.json" + text,
          "--load-hf: " + folder / "model/config.json is a file: name the folder that it is in");
  refused("--load-hf " + folder / "s" + text, "holds checkpoints of --save: give it to --load");
  const std::string model = "--load-hf " + folder / "model";
  refused(model + text + " --split 0,0,1", "--split: has a meaning in training only");
  refused(model + text + " --seq-length 33", "--seq-length: 33 is more than the 32 positions of ");
  refused(model + " --text " + folder / "text.txt",
          "has no vocab.json and merges.txt, and no tokenizer.json");
  refused(model + " --tokenizer-type bytes --text /none.txt", "--text: '/none.txt' cannot be read");
  std::ofstream(folder / "cut.gz") << "\x1f\x8b\x08";
  refused(model + " --tokenizer-type bytes --text " + folder / "cut.gz",
          "cut.gz' cannot be read: its end is missing");
  // The same text packed is the same text.
  REQUIRE(std::system(("gzip -k " + folder / "text.txt").c_str()) == 0);
  const std::string evaluate = "evaluate --device cpu " + model + " --tokenizer-type bytes --text ";
  const auto loss = [&](const std::string& name) {
    const Ended ended = tally_train(evaluate + folder / name);
    CHECK(ended.code == 0);
    return ended.out.substr(0, ended.out.find("tokens per second"));
  };
  CHECK(loss("text.txt") == loss("text.txt.gz"));
}

TEST_CASE("evaluate: a record that cannot be written is found first, a failure replaces success") {
  const Folder folder("evaluate_record");
  REQUIRE(tally_train(mock + "--train-iters 1 --save-hf " + folder / "model").code == 0);
  std::ofstream(folder / "text.txt") << "a text that is long enough";
  const std::string evaluate = "evaluate --device cpu --tokenizer-type bytes --text " +
                               folder / "text.txt --load-hf " + folder / "model --record ";
  const Ended unwritten = tally_train(evaluate + "/proc/none/r.json");
  CHECK(unwritten.code == 2);
  CHECK(unwritten.out.empty());
  CHECK(contains(unwritten.err, "--record: "));
  REQUIRE(tally_train(evaluate + folder / "r.json").code == 0);
  const json good = read_json(folder / "r.json");
  CHECK(good["outcome"] == "completed");
  CHECK(good["message"].is_null());
  CHECK(good["results"]["loss"].is_number());
  // A text of 26 bytes takes no second: it is evaluated often enough.
  const json& measured = good["results"]["measured"];
  const double seconds = measured["seconds"];
  const double passes = measured["passes"];
  CHECK(seconds >= 1);
  CHECK(passes > 1);
  CHECK(good["results"]["seconds"] == doctest::Approx(seconds / passes));
  CHECK(good["results"]["tokens_per_second"] == doctest::Approx(25 * passes / seconds));
  // The end of the file holds a tensor's values: the largest number of float32 first, then no number.
  const fs::path weights = folder / "model/model.safetensors";
  const auto fill_end = [&](const std::string& value) {
    std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(weights)) - 256);
    for (int i = 0; i < 64; ++i) file << value;
  };
  for (const bool numbers : {true, false}) {
    fill_end(numbers ? "\xff\xff\x7f\x7f" : "\xff\xff\xff\xff");
    for (const std::string ranks : {"", " --nproc-per-node 2"}) {
      CAPTURE(numbers);
      CAPTURE(ranks);
      const Ended failed = tally_train(evaluate + folder / "r.json" + ranks);
      CHECK_MESSAGE(failed.code == (numbers ? 5 : 2), failed.err);
      const json record = read_json(folder / "r.json");
      CHECK(record["outcome"] == (numbers ? "failed_check" : "error"));
      CHECK(contains(record["message"].get<std::string>(),
                     numbers ? "the loss is not finite" : "is NaN or infinite"));
      CHECK(record["ended"].is_string());
      CHECK(record["results"].is_null());
    }
  }
}

TEST_CASE("a dataset that is cut short while it is trained on is one sentence, and a record") {
  const Folder folder("cut");
  std::ofstream(folder / "text.txt") << std::string(200000, 'x');
  REQUIRE(tally_train("prepare --tokenizer-type bytes --input " + folder / "text.txt --output " +
                      folder / "text")
              .code == 0);
  for (const std::string ranks : {"", " --nproc-per-node 2"}) {
    CAPTURE(ranks);
    const uintmax_t size = fs::file_size(folder / "text.bin");
    bool cut = false;
    const Ended ended =
        tally_train(tiny + "--train-iters 1000000 --log-interval 1 --split 1 --data-path " +
                        folder / "text" + ranks + " --record " + folder / "r.json",
                    "", [&](const std::string& out, int) {
                      if (cut || !contains(out, " iteration        1/")) return;
                      fs::resize_file(folder / "text.bin", 4096);
                      cut = true;
                    });
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(contains(ended.err, "'" + folder / "text.bin' was cut short while it was read, from "));
    const json record = read_json(folder / "r.json");
    CHECK(record["outcome"] == "error");
    CHECK(contains(record["message"], "text.bin' was cut short while it was read"));
    fs::resize_file(folder / "text.bin", size);
  }
}
