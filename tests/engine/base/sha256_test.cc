#include "engine/base/sha256.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using tally::Sha256;
using tally::sha256_of;

TEST_CASE("sha256: FIPS 180-4's examples") {
  CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_of(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256: pieces of any size are the same text") {
  const std::string text(300, 'x');
  for (const size_t piece : {1, 7, 55, 56, 63, 64, 65, 128}) {
    Sha256 sum;
    for (size_t at = 0; at < text.size(); at += piece)
      sum.add(text.data() + at, std::min(piece, text.size() - at));
    CHECK(sum.hex() == sha256_of(text));
  }
}
