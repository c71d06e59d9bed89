#include "engine/evidence/signature.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"

namespace tally {
namespace {

// Signatures are for archives of tally: one for something else does not count.
constexpr const char* kNamespace = "tally-evidence";

// The output of a command, errors included. Its exit code; -1: it cannot be started.
int output_of_command(const std::string& command, std::string* text) {
  FILE* pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  if (pipe == nullptr) return -1;
  std::array<char, 4096> piece{};
  while (const size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
    text->append(piece.data(), got);
  const int status = ::pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Status find_keygen(std::string* program) {
  *program = find_program({"ssh-keygen"}, {"/usr/bin", "/usr/local/bin"});
  if (!program->empty()) return Status::ok();
  return Status::error("signatures need ssh-keygen (OpenSSH 8.2 or later), which is not there");
}

}  // namespace

Status sign_file(const std::string& file, const std::string& key) {
  std::string program, text;
  TRY(find_keygen(&program));
  // ssh-keygen would ask whether it may replace a signature.
  if (::unlink((file + ".sig").c_str()) != 0 && errno != ENOENT)
    return file_error(file + ".sig", "cannot replace", errno);
  const std::string command = shell_quote(program) + " -Y sign -f " + shell_quote(key) + " -n " +
                              kNamespace + " " + shell_quote(file);
  if (output_of_command(command, &text) == 0) return Status::ok();
  return Status::error("not signed: " + std::string(strip(text)));
}

Status check_signature(const std::string& file, const std::string& signature,
                       const std::string& signers, Signature* out) {
  std::string program;
  TRY(find_keygen(&program));
  const std::string keygen = shell_quote(program) + " -Y ";
  const std::string of = " -n " + std::string(kNamespace) + " -s " + shell_quote(signature);
  const std::string input = " < " + shell_quote(file);
  if (signers.empty()) {
    out->good = output_of_command(keygen + "check-novalidate" + of + input, &out->text) == 0;
    out->text = strip(out->text);
    return Status::ok();
  }
  std::string principals;
  const std::string find = keygen + "find-principals -f " + shell_quote(signers) + " -s " +
                           shell_quote(signature) + input;
  if (output_of_command(find, &principals) != 0) {
    out->text = "no signer of " + signers + " has made it: " + std::string(strip(principals));
    return Status::ok();
  }
  const std::string who = principals.substr(0, principals.find('\n'));
  out->good = output_of_command(keygen + "verify -f " + shell_quote(signers) + " -I " +
                                    shell_quote(who) + of + input,
                                &out->text) == 0;
  out->text = strip(out->text);
  return Status::ok();
}

}  // namespace tally
