// The token of a run: a secret that its ranks share, and by which they know each other (door.h).
#pragma once

#include <optional>
#include <string>

#include "src/parallel/control/tcp.h"

namespace tally::train {

// The variable that has it: a parent tally-train sets it for its ranks.
inline constexpr const char* token_variable = "TALLY_RENDEZVOUS_TOKEN";

// The source of a rank's token. Neither: rank 0 makes one for the processes of its user on its host
// (listen_for_user).
struct TokenSource {
  std::string text;         // the token itself
  std::string file;         // the file that has it
  bool zero_makes = false;  // rank 0 makes `file` before it listens, and removes it after the start
  bool none() const { return text.empty() && file.empty(); }
};

// Both sides of a connection must know the same.
struct Credential {
  std::string token;
  std::string run;      // RendezvousOptions::run
  std::string purpose;  // the port's purpose
};

// 256 random bits in hexadecimal digits.
std::string new_token();
// Throws LaunchError when the text of `where` is too short for a secret.
void check_token(const std::string& text, const std::string& where);
// The token in a file, without white space at its ends; nullopt where the file does not exist.
// Throws LaunchError, also for a file that others may read or write.
std::optional<std::string> read_token(const std::string& file);

// The socket at which rank 0 hands out a token that nobody has given it. It is an abstract Unix
// socket, which no other host reaches, and the kernel says whose process is at its other end.
// `address`: rank 0's numeric address and port, "127.0.0.1:29500". Throws CommunicationError; an
// address in use is said to be so.
Socket listen_for_user(const std::string& address);
// Whether the process at the other end of such a connection is one of this user.
bool is_of_this_user(const Socket& connected);
// The token from a listener that a process of this user has at `address`. Throws
// CommunicationError, also when nobody or somebody else listens there.
std::string ask_for_token(const std::string& address, Deadline deadline);

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
