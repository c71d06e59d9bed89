// A small driver for the fuzz targets where there is no libFuzzer: replays the corpus, then
// mutations of it for a while. Deterministic for a given seed; prints the input it is at when
// something goes wrong.
//   readers_fuzz SECONDS CORPUS_DIRECTORY [SEED]
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kLargest = size_t{1} << 16;

// What is being tried, for the handler of a crash.
std::string current;

void on_crash(int) {
  static const char text[] = "\nthe input that did it is in fuzz-crash.bin\n";
  [[maybe_unused]] ssize_t put = write(2, text, sizeof text - 1);
  if (FILE* file = fopen("fuzz-crash.bin", "wb")) {
    fwrite(current.data(), 1, current.size(), file);
    fclose(file);
  }
  _exit(1);
}

void run(const std::string& input) {
  current = input;
  alarm(10);  // one input may not take longer
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// One to four changes: bits, cuts, repeats, pieces of other inputs, words of the languages, numbers
// at the limits of their types.
std::string mutated(const std::vector<std::string>& corpus, std::mt19937& random) {
  static const char* const words[] = {
      "${",  "}",     "$",   "!include ", "<<: *a",    "&a ", "[", "]", "{", ": ",  "\n  - ",
      "(?:", "){,3}", "\\x", "<!--",      "<![CDATA[", "&#x", "+", "|", "^", "\xff"};
  const auto below = [&](size_t n) { return n == 0 ? size_t{0} : random() % n; };
  std::string text = corpus[below(corpus.size())];
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const size_t at = 1 + below(text.size());
    const size_t length = std::min(below(16), text.size() - std::min(at, text.size()));
    const std::string& other = corpus[below(corpus.size())];
    static const char limits[] = "\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\0\0\0\0\0\x80";
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1U << below(8)));
        break;
      case 1:
        if (at < text.size()) text.erase(at, length);
        break;
      case 2:
        if (at < text.size()) text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(std::min(at, text.size()), words[below(std::size(words))]);
        break;
      case 4:
        for (size_t i = 0, from = below(16); i < length && i < 8; ++i)
          text[at + i] = limits[(from + i) % 16];
        break;
      default:
        text.insert(std::min(at, text.size()), other.substr(below(other.size()), length));
    }
  }
  if (text.size() > kLargest) text.resize(kLargest);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s SECONDS CORPUS_DIRECTORY [SEED]\n", argv[0]);
    return 2;
  }
  signal(SIGALRM, on_crash);
  signal(SIGABRT, on_crash);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2])) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    run(corpus.back());
  }
  if (corpus.empty()) {
    fprintf(stderr, "no corpus in %s\n", argv[2]);
    return 2;
  }
  std::mt19937 random(argc > 3 ? static_cast<unsigned>(strtoul(argv[3], nullptr, 10)) : 1);
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::milliseconds(static_cast<int>(1000 * strtod(argv[1], nullptr)));
  long long tries = 0;
  for (; std::chrono::steady_clock::now() < end; ++tries) run(mutated(corpus, random));
  printf("%zu inputs, %lld mutations\n", corpus.size(), tries);
  return 0;
}
