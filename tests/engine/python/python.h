// Asks the python3 of PATH, the reference for regular expressions, numbers and formats.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace tally::testing {

// Runs a script with `input` as a file argument; its standard output, split at lines. Empty when
// there is no python3: callers then fail, since Tally itself needs one for `mode: python`.
inline std::vector<std::string> run_python(const std::string& script, const std::string& input) {
  std::string base = "/tmp/tally-test-" + std::to_string(::getpid());
  std::ofstream(base + ".py") << script;
  std::ofstream(base + ".in", std::ios::binary) << input;
  std::string command = "python3 " + base + ".py " + base + ".in";
  std::vector<std::string> lines;
  if (FILE* pipe = ::popen(command.c_str(), "r")) {
    std::string text;
    std::array<char, 65536> buffer{};
    size_t got = 0;
    while ((got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
      text.append(buffer.data(), got);
    }
    ::pclose(pipe);
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
  }
  std::remove((base + ".py").c_str());
  std::remove((base + ".in").c_str());
  return lines;
}

inline std::string hex(const std::string& text) {
  std::string out;
  for (char c : text) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

}  // namespace tally::testing
