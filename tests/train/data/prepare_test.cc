// From text to a dataset: documents, chunks, inputs of all kinds, faults, being killed.
#include "src/data/commands/prepare.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <random>

#include "src/data/commands/progress.h"
#include "src/data/text/json_document.h"
#include "src/data/text/table_reader.h"
#include "src/data/tokenizers/tokenizer_json.h"
#include "src/data/tokens/dataset.h"
#include "tests/train/data/small_vocabulary.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

// The documents of a dataset made with the byte tokenizer, as text; the end-of-document token is
// shown as $.
std::vector<std::string> documents_of(const std::string& prefix) {
  const IndexedDataset dataset(prefix);
  std::vector<std::string> documents;
  for (int64_t i = 0; i < dataset.sequences(); ++i) {
    std::vector<int32_t> tokens(static_cast<size_t>(dataset.length(i)));
    dataset.read(i, 0, dataset.length(i), tokens.data());
    std::string text;
    for (int32_t token : tokens) text += token == 256 ? '$' : static_cast<char>(token);
    documents.push_back(text);
  }
  return documents;
}
using Documents = std::vector<std::string>;

PrepareSummary prepare_bytes(const TempDir& dir, PrepareOptions options) {
  options.prefixes = {dir / "out"};
  return prepare(*make_byte_tokenizer(), options);
}

PrepareOptions inputs(std::vector<std::string> paths) {
  PrepareOptions options;
  options.inputs = std::move(paths);
  return options;
}

std::string write_gzip(const TempDir& dir, const std::string& name, const std::string& text) {
  gzFile file = gzopen((dir / name).c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return dir / name;
}

// Runs the command line; returns its exit code.
int run_main(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "prepare");
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  return prepare_main(static_cast<int>(arguments.size()), argv.data());
}

}  // namespace

TEST_CASE("a text file is a document, byte for byte; empty files are none") {
  const TempDir dir;
  auto options = inputs(
      {dir.write("a.txt", "one\n\ntwo\r\n"), dir.write("b.txt", ""), dir.write("c.txt", "\xFF")});
  options.append_eod = true;
  const PrepareSummary summary = prepare_bytes(dir, options);
  CHECK(documents_of(dir / "out") == Documents{"one\n\ntwo\r\n$", "\xFF$"});
  CHECK(summary.documents == 2);
  CHECK(summary.tokens == 13);
  CHECK(summary.input_bytes == 11);
}

TEST_CASE("blank lines separate documents when asked") {
  const TempDir dir;
  auto options =
      inputs({dir.write("a.txt", "\n \n  a\nb\n\n \t\nc\n\n\n d \n"), dir.write("b.txt", "e")});
  options.split_on_blank_lines = true;
  prepare_bytes(dir, options);
  CHECK(documents_of(dir / "out") == Documents{"  a\nb", "c", " d ", "e"});
}

TEST_CASE("the cutting of blocks never shows: every block size gives the same documents") {
  const std::string text = "\n  x\ny\n\n\nzz\n \n  \nw";
  const auto tokenizer = make_byte_tokenizer();
  for (size_t block = 1; block <= text.size(); ++block) {
    Documents documents = {""};
    DocumentSplitter splitter([&](std::string_view part) { return tokenizer->safe_cut(part); },
                              [&](Chunk&& chunk) {
                                for (const Piece& piece : chunk.pieces) {
                                  documents.back() +=
                                      chunk.text.substr(piece.begin, piece.end - piece.begin);
                                  if (piece.ends_document) documents.emplace_back();
                                }
                              },
                              3);
    splitter.start("a", DocumentRule::blank_lines);
    for (size_t at = 0; at < text.size(); at += block) splitter.append(text.substr(at, block));
    splitter.finish();
    CHECK(documents == Documents{"  x\ny", "zz", "w", ""});
  }
}

TEST_CASE("chunks of a long document give the tokens of the whole, whatever the workers") {
  const TempDir dir;
  const SmallVocabulary v(dir);
  const auto tokenizer = make_gpt2_tokenizer(v.vocab_file, v.merge_file);
  std::mt19937 random(3);
  const char* kWords[] = {
      "low",  " lower", "'ll", "\n", "  ", " 12", "\xE4\xB8\xAD\xE6\x96\x87", "\xF0\x9F\x98\x80",
      "aaaa", "!?",     "\xFF"};
  std::string text;
  while (text.size() < 5'000'000) text += kWords[random() % std::size(kWords)];
  text += std::string(3'000'000, 'a');  // longer than a chunk, and no place to cut
  const std::vector<int32_t> expected = tokenizer->encode(text);
  const std::string file = dir.write("long.txt", text);
  for (int workers : {1, 3}) {
    auto options = inputs({file});
    options.prefixes = {dir / "out"};
    options.workers = workers;
    const PrepareSummary summary = prepare(*tokenizer, options);
    CHECK(summary.documents == 1);
    CHECK(summary.replaced > 1000);
    const IndexedDataset dataset(dir / "out");
    std::vector<int32_t> got(static_cast<size_t>(dataset.length(0)));
    dataset.read(0, 0, dataset.length(0), got.data());
    CHECK((got == expected));
  }
}

TEST_CASE("JSON lines, gzip'd or not; several keys make several datasets") {
  const TempDir dir;
  const std::string lines =
      "{\"text\": \"a\\nb\", \"title\": \"T\"}\n\n{\"title\": \"\", \"text\": \"\\u00e9\"}";
  auto options = inputs({dir.write("a.jsonl", lines), write_gzip(dir, "b.json.gz", lines)});
  options.workers = 2;
  prepare_bytes(dir, options);
  CHECK(documents_of(dir / "out") == Documents{"a\nb", "\xC3\xA9", "a\nb", "\xC3\xA9"});
  options.keys = {"text", "title"};
  options.prefixes = {dir / "x", dir / "y"};
  prepare(*make_byte_tokenizer(), options);
  CHECK(documents_of(dir / "y") == Documents{"T", "T"});
}

TEST_CASE("faults in the input: one sentence with file and line, and nothing is written") {
  const TempDir dir;
  const auto fault = [&](const std::string& path) {
    return error_of([&] { prepare_bytes(dir, inputs({path})); });
  };
  const auto json = [&](const std::string& text) { return fault(dir.write("a.jsonl", text)); };
  CHECK(json("{\"text\":\"a\"}\n{\"text\":").find("a.jsonl':2: this line is not a JSON object") !=
        std::string::npos);
  CHECK(json("[{\"text\":\"a\"}]").find("a.jsonl':1: this line is not a JSON object") !=
        std::string::npos);
  CHECK(json("{\"a\":1}").find("has no key \"text\": name the key of the text with --json-keys") !=
        std::string::npos);
  CHECK(json("{\"text\":1}").find("the value of \"text\" is a number") != std::string::npos);
  CHECK(json("").find("holds no text at all") != std::string::npos);
  CHECK(fault(dir / "none").find("none' cannot be read: No such file or directory") !=
        std::string::npos);
  CHECK(fault(dir / "").find("Is a directory") != std::string::npos);
  CHECK(fault(dir.write("a.txt.zst", "x")).find("unpack it and pipe it") != std::string::npos);
  CHECK(fault(dir.write("a.txt.gz", "plain")).find("holds no gzip data") != std::string::npos);
  CHECK(fault(dir.write("utf16.txt", std::string("\xFF\xFE"
                                                 "a\0",
                                                 4)))
            .find("UTF-16") != std::string::npos);
  std::string packed = TempDir::read_path(write_gzip(dir, "b.gz", std::string(100000, 'x') + "y"));
  packed.resize(packed.size() - 12);
  CHECK(fault(dir.write("cut.gz", packed)).find("its end is missing") != std::string::npos);
  CHECK(dir.names().find("out") == std::string::npos);
}

TEST_CASE("a line far into a big file is named rightly") {
  const TempDir dir;
  std::string lines;
  for (int i = 0; i < 200000; ++i) lines += "{\"text\":\"some words here\"}\n";
  auto options = inputs({dir.write("a.jsonl", lines + "{}\n")});
  options.workers = 3;
  CHECK(error_of([&] { prepare_bytes(dir, options); }).find("a.jsonl':200001: ") !=
        std::string::npos);
}

TEST_CASE("the command line: exit codes and names of the output") {
  const TempDir dir;
  const std::string text = dir.write("a.txt", "hello");
  CHECK(run_main({"--input", text, "--output", dir / "o", "--tokenizer-type", "bytes"}) == 0);
  CHECK(documents_of(dir / "o") == Documents{"hello"});
  CHECK(run_main({"--input", text, "--output-prefix", dir / "p", "--tokenizer-type", "bytes",
                  "--append-eod"}) == 0);
  CHECK(documents_of(dir / "p_text_document") == Documents{"hello$"});
  CHECK(run_main({"--output", dir / "o", "--tokenizer-type", "bytes"}) == 2);
  CHECK(run_main({"--input", text, "--tokenizer-type", "bytes"}) == 2);
  CHECK(run_main({"--input", text, "--output", dir / "o"}) == 2);  // no vocabulary
  CHECK(run_main({"--input", text, "--output", dir / "o", "--tokenizer-type", "words"}) == 2);
  CHECK(run_main({"--input", text, "--output", dir / "o", "--workers", "0"}) == 2);
  CHECK(run_main({"--input", text, "--output", dir / "o", "--wrokers", "1"}) == 2);
  CHECK(run_main({"--input", dir / "none", "--output", dir / "o", "--tokenizer-type", "bytes"}) ==
        2);
  CHECK(run_main({"--input", text, "--output", "/proc/none/o", "--tokenizer-type", "bytes"}) == 1);
  CHECK(run_main({"--help"}) == 0);
}

TEST_CASE("the command line: what cannot be read as text is bad input, exit code 2") {
  const TempDir dir;
  std::string packed = TempDir::read_path(write_gzip(dir, "whole.gz", std::string(100000, 'x')));
  packed.resize(packed.size() - 12);
  for (const std::string& input :
       {dir.write("empty.txt", ""), dir.write("bad.jsonl", "{\"text\":\n"),
        dir.write("cut.gz", packed), dir.write("utf16.txt", std::string("\xFF\xFEh\0", 4)),
        dir.write("a.zst", "x")}) {
    CAPTURE(input);
    CHECK(run_main({"--input", input, "--output", dir / "o", "--tokenizer-type", "bytes"}) == 2);
  }
  CHECK(dir.names().find("o.") == std::string::npos);
}

TEST_CASE("what is read is not written over") {
  const TempDir dir;
  const std::string text = dir.write("corpus.bin", "hello");
  for (const char* name : {"corpus.idx.tmp", "corpus.lengths.tmp"}) {
    dir.write(name, "hello");
    CHECK(run_main({"--input", dir / name, "--output", dir / "corpus", "--tokenizer-type",
                    "bytes"}) == 2);
    CHECK(dir.read(name) == "hello");
  }
  CHECK(run_main({"--input", dir / "./corpus.bin", "--output", dir / "corpus", "--tokenizer-type",
                  "bytes"}) == 2);
  CHECK(dir.read("corpus.bin") == "hello");
  std::filesystem::create_symlink(text, dir / "link_text_document.idx");
  CHECK(run_main({"--input", text, "--output-prefix", dir / "link", "--tokenizer-type", "bytes"}) ==
        2);
  CHECK(run_main({"--input", text, "--output", dir / "other", "--tokenizer-type", "bytes"}) == 0);
}

TEST_CASE(
    "links to a dataset's files stay; what is no file is refused before anything is written") {
  const TempDir dir, disk;
  const std::string text = dir.write("text.txt", "abc");
  for (const char* suffix : {".bin", ".idx"})
    std::filesystem::create_symlink(disk / (std::string("data") + suffix),
                                    dir / (std::string("out") + suffix));
  for (int i = 0; i < 2; ++i) {  // made, then replaced
    prepare_bytes(dir, inputs({text}));
    CHECK(documents_of(dir / "out") == Documents{"abc"});
    CHECK(std::filesystem::is_symlink(dir / "out.bin"));
    CHECK(std::filesystem::is_symlink(dir / "out.idx"));
    CHECK(disk.names() == "data.bin data.idx ");
    CHECK(dir.names() == "out.bin out.idx text.txt ");
  }
  for (const char* suffix : {".bin", ".idx"}) {
    const TempDir pipes;
    const std::string pipe = pipes / (std::string("out") + suffix);
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(error_of([&] { prepare_bytes(pipes, inputs({text})); }) ==
          "'" + pipe + "' is not a file, and a dataset is written to files: choose another output");
    CHECK(std::filesystem::is_fifo(pipe));
    CHECK(pipes.names() == std::string("out") + suffix + " ");
  }
}

TEST_CASE("files that ranks read are regular files: nobody waits for a FIFO's other end") {
  const TempDir dir;
  for (const char* name : {"q.tsv", "q.csv", "q.jsonl", "q.json"}) {
    const std::string pipe = dir / name;
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    const std::string why = "'" + pipe + "' cannot be read: it is not a regular file";
    CHECK(error_of([&] { read_table(pipe, TableFormat::automatic, {"text"}); }) == why);
    CHECK(error_of([&] { read_json_file(pipe); }) == why);
    CHECK(error_of([&] { read_tokenizer_file(pipe, "--vocab-file"); }) == "--vocab-file " + why);
  }
  // What a shell's <(...) gives has a writer.
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  REQUIRE(write(fds[1], "text\nabc\n", 9) == 9);
  close(fds[1]);
  const auto rows = read_table("/dev/fd/" + std::to_string(fds[0]), TableFormat::tsv, {"text"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0][0].text == "abc");
  close(fds[0]);
}

TEST_CASE("killed in the middle: the old dataset is as it was, and the next one succeeds") {
  const TempDir dir;
  auto options = inputs({dir.write("a.txt", "old")});
  prepare_bytes(dir, options);
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    close(fds[1]);
    try {
      prepare_bytes(dir, inputs({"-"}));  // waits for more input until it is killed
    } catch (...) {
    }
    _exit(0);
  }
  close(fds[0]);
  // More than the pipe, a block and a chunk hold: when it is all taken, the child is at work.
  const std::string block(1 << 20, 'n');
  for (int i = 0; i < 8; ++i)
    REQUIRE(write(fds[1], block.data(), block.size()) == static_cast<ssize_t>(block.size()));
  CHECK(dir.names().find("out.bin.tmp") != std::string::npos);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(fds[1]);
  REQUIRE(WIFSIGNALED(status));
  CHECK(documents_of(dir / "out") == Documents{"old"});
  prepare_bytes(dir, inputs({dir.write("b.txt", "new")}));
  CHECK(documents_of(dir / "out") == Documents{"new"});
  CHECK(dir.names().find(".tmp") == std::string::npos);
}

TEST_CASE("the progress line") {
  CHECK(progress_line(50'000'000, 200'000'000, 2, 3, 1234) ==
        "[######..................]  25%  50.0 MB of 200.0 MB  25.0 MB/s  3 documents  1234 tokens "
        " 0:06 left");
  CHECK(progress_line(999, 0, 0, 0, 0) == "999 B  0 B/s  0 documents  0 tokens");
  CHECK(bytes_text(999'950) == "1.0 MB");
}
