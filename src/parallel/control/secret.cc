#include "src/parallel/control/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <cerrno>

#include "src/parallel/control/errors.h"

namespace tally::train {

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t at = 0; at < count;) {
    const ssize_t n = getrandom(bytes.data() + at, count - at, 0);
    if (n < 0 && errno != EINTR) throw CommunicationError("the system provides no random numbers");
    if (n > 0) at += static_cast<size_t>(n);
  }
  return bytes;
}

std::string proof_of(const std::string& secret, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(),
           &size) == nullptr)
    throw CommunicationError("OpenSSL has no HMAC-SHA256 here");
  return {reinterpret_cast<const char*>(out.data()), size};
}

bool same_bytes(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tally::train
