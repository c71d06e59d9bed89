// The token of a run: a secret that its ranks share, and by which they know each other (door.h).
#pragma once

#include <optional>
#include <string>

namespace tally::train {

// The variable that has it: a parent tally-train sets it for its ranks.
inline constexpr const char* token_variable = "TALLY_RENDEZVOUS_TOKEN";

// Where a rank gets it from. Neither: the run has none.
struct TokenSource {
  std::string text;         // the token itself
  std::string file;         // the file that has it
  bool zero_makes = false;  // rank 0 makes `file` before it listens, and removes it after the start
};

// Both sides of a connection must know the same.
struct Credential {
  std::string token;    // empty: a run that has none. Then only processes of this user come in
  std::string run;      // RendezvousOptions::run
  std::string purpose;  // of the port
};

// 256 random bits in hexadecimal digits.
std::string new_token();
// Throws LaunchError when the text of `where` is too short for a secret.
void check_token(const std::string& text, const std::string& where);
// The token in a file, without white space at its ends; nullopt where the file does not exist.
// Throws LaunchError, also for a file that others may read or write.
std::optional<std::string> read_token(const std::string& file);

// A file of mode 0600 with a new token, while this lives. Replaces one that a run that was killed
// has left. Throws LaunchError.
class TokenFile {
 public:
  explicit TokenFile(std::string path);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  const std::string& token() const { return token_; }

 private:
  const std::string path_;
  const std::string token_ = new_token();
};

}  // namespace tally::train
