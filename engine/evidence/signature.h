// A detached signature beside an archive, by OpenSSH (ssh-keygen -Y, SSHSIG), which every site has.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace tally {

// Signs `file` with the SSH key in the file `key`, or with the key of an agent where that is the
// public one. Writes `file`.sig. ssh-keygen may ask for the key's passphrase.
Status sign_file(const std::string& file, const std::string& key);

struct Signature {
  bool good = false;
  std::string text;  // of ssh-keygen: by whom, or why not
};
// `signers`: a file of allowed signers (ssh-keygen(1)). Empty: any key counts, and `text` names it.
Status check_signature(const std::string& file, const std::string& signature,
                       const std::string& signers, Signature* out);

}  // namespace tally
