#include "src/data/text/text_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace tally::train {

TextInput::TextInput(const std::string& path)
    : path_(path), name_(path == "-" ? "standard input" : "'" + path + "'") {
  const auto fail = [&](int error) {
    throw BadInput(fmt::format("{} cannot be read: {}", name_, std::strerror(error)));
  };
  for (const char* packed : {".zst", ".xz", ".bz2", ".zip", ".7z"}) {
    if (path.ends_with(packed)) {
      throw BadInput(fmt::format(
          "{} is compressed in a way that is not read here (gzip is): unpack it and pipe it into "
          "--input -",
          name_));
    }
  }
  const int fd = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(errno);
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    close(fd);
    fail(EISDIR);
  }
  file_ = gzdopen(fd, "rb");
  if (file_ == nullptr) {
    close(fd);
    fail(ENOMEM);
  }
  gzbuffer(file_, 1 << 18);
}

TextInput::~TextInput() {
  gzclose_r(file_);
}

bool TextInput::read(size_t bytes, std::string* block) {
  block->resize(bytes);
  const int got = gzread(file_, block->data(), static_cast<unsigned>(bytes));
  int code = Z_OK;
  const char* why = gzerror(file_, &code);
  if (got < 0 || code == Z_BUF_ERROR) {
    if (code == Z_ERRNO) why = std::strerror(errno);
    if (code == Z_BUF_ERROR) why = "its end is missing";
    throw BadInput(fmt::format("{} cannot be read: {} (was it copied whole?)", name_, why));
  }
  block->resize(static_cast<size_t>(got));
  if (!started_) check_beginning(*block);
  started_ = true;
  return got > 0;
}

void TextInput::check_beginning(const std::string& block) const {
  if (path_.ends_with(".gz") && gzdirect(file_) == 1 && !block.empty()) {
    throw BadInput(fmt::format(
        "{} is named .gz and holds no gzip data: rename it, or download it again", name_));
  }
  if (block.size() >= 2 &&
      (block.compare(0, 2, "\xFF\xFE") == 0 || block.compare(0, 2, "\xFE\xFF") == 0)) {
    throw BadInput(fmt::format(
        "{} is UTF-16 text, and UTF-8 is needed: convert it with iconv -f UTF-16 -t UTF-8", name_));
  }
}

int64_t TextInput::position() const {
  return gzoffset(file_);
}

std::string why_no_file(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return "";
  if (S_ISDIR(status.st_mode)) return "it is a directory";
  struct statfs system {};
  const bool open_pipe = S_ISFIFO(status.st_mode) && statfs(path.c_str(), &system) == 0 &&
                         system.f_type == PIPEFS_MAGIC;
  return open_pipe ? "" : "it is not a regular file";
}

int64_t input_size(const std::string& path) {
  struct stat status {};
  const int rc = path == "-" ? fstat(STDIN_FILENO, &status) : stat(path.c_str(), &status);
  return rc == 0 && S_ISREG(status.st_mode) ? static_cast<int64_t>(status.st_size) : 0;
}

bool is_json_name(const std::string& path) {
  std::string_view name = path;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json");
}

}  // namespace tally::train
