// A run of a small model from outside, its folder and what it wrote.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/train/train/program.h"

namespace fs = std::filesystem;
using nlohmann::json;

inline const std::string tiny =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --micro-batch-size 2 "
    "--global-batch-size 4 --tokenizer-type bytes --device cpu --lr 1e-3 ";
inline const std::string mock = tiny + "--mock-data ";

// A folder of its own, gone afterwards.
struct Folder {
  explicit Folder(const std::string& name)
      : path(fs::temp_directory_path() / fmt::format("tally_program_test_{}_{}", name, getpid())) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

inline std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}
inline void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
inline json read_json(const fs::path& path) {
  return json::parse(read_text(path));
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
