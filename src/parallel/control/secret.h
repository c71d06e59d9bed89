// Random numbers that nobody can guess, and proofs that somebody knows a secret.
#pragma once

#include <cstddef>
#include <string>

namespace tally::train {

// Random bytes from the kernel (getrandom). Throws CommunicationError where it gives none.
std::string random_bytes(size_t count);
// HMAC-SHA256 (RFC 2104, FIPS 198-1) of `text` under `secret`, by OpenSSL: 32 bytes. Nobody finds
// `secret` or the proof of another text in it.
std::string proof_of(const std::string& secret, const std::string& text);
// Compares in a time that does not depend on where the two differ.
bool same_bytes(const std::string& a, const std::string& b);

}  // namespace tally::train
