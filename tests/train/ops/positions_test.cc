// Embeddings and rotary embeddings at given positions, on the CPU, against their formulas.
#include <doctest/doctest.h>

#include <cmath>

#include "src/device/philox.h"
#include "src/ops/attention/attention.h"
#include "src/ops/embedding/embedding.h"
#include "tests/train/ops/numbers.h"

using namespace tally::train;

namespace {

constexpr int64_t batch = 3, tokens = 7, vocabulary = 11, places = 9, columns = 10;

// As documents give them, and one row that counts on past the sequence's length.
std::vector<int32_t> positions{0, 1, 2, 0, 0, 1, 2,  //
                               0, 1, 2, 3, 4, 5, 6,  //
                               2, 3, 4, 5, 6, 7, 8};
std::vector<int32_t> ids{3, 0, 10, 3, 5, 5, 1, 7, 7, 7, 7, 7, 7, 7, 0, 1, 2, 3, 4, 5, 6};

const Tensor place_tensor(positions.data(), DType::i32, {batch, tokens});
const Tensor id_tensor(ids.data(), DType::i32, {batch, tokens});

double mask_of(double dropout, uint64_t seed, size_t element) {
  if (dropout == 0) return 1;
  return dropout_keeps(seed, element, dropout_threshold(dropout)) ? dropout_scale(dropout) : 0;
}

}  // namespace

TEST_CASE("embeddings take the rows of the given positions") {
  const auto stream = make_stream(Device{});
  const Numbers wte({vocabulary, columns}, 1), wpe({places, columns}, 2);
  const Numbers dout({batch, tokens, columns}, 3);
  for (const double dropout : {0.0, 0.25}) {
    Numbers out = zeros({batch, tokens, columns}), want = out;
    Numbers dwte({vocabulary, columns}, 4), dwpe({places, columns}, 5);  // sums are added to
    Numbers want_dwte = dwte, want_dwpe = dwpe;
    embedding_forward(*stream, {id_tensor, place_tensor}, {wte, wpe}, {dropout, 9}, Out(out));
    embedding_backward(*stream, {id_tensor, place_tensor}, dout, {dropout, 9},
                       {Out(dwte), Out(dwpe)});
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t c = 0; c < columns; ++c) {
        const size_t at = i * columns + c, token = static_cast<size_t>(ids[i]) * columns + c,
                     place = static_cast<size_t>(positions[i]) * columns + c;
        const double mask = mask_of(dropout, 9, at);
        want[at] = (wte[token] + wpe[place]) * mask;
        want_dwte[token] += dout[at] * mask;
        want_dwpe[place] += dout[at] * mask;
      }
    }
    CHECK(relative_error(out.values(), want.values()) < 1e-14);
    CHECK(relative_error(dwte.values(), want_dwte.values()) < 1e-14);
    CHECK(relative_error(dwpe.values(), want_dwpe.values()) < 1e-14);
  }
}

// Su et al. 2021, "RoFormer", equation 15, with the halves of a head as pairs: the pair (x_i, x_i+n)
// is a complex number, turned by the angle position * base^(-i / n).
TEST_CASE("rotary turns the pairs of Q and K by the given position") {
  const auto stream = make_stream(Device{});
  const int64_t heads = 2, width = 12;
  for (const double fraction : {1.0, 0.5}) {
    const auto half = static_cast<size_t>(static_cast<double>(width) * fraction / 2);
    const Numbers before({batch, tokens, 3, heads, width}, 1);
    Numbers qkv = before, want = before;
    rotary_embedding(*stream, Out(qkv), {place_tensor, heads, {100}, fraction}, false);
    for (size_t row = 0; row < want.size() / width; ++row) {
      const size_t token = row / (3 * heads), part = row / heads % 3;
      if (part == 2) continue;  // V
      for (size_t i = 0; i < half; ++i) {
        const double angle =
            positions[token] * std::pow(100, -static_cast<double>(i) / static_cast<double>(half));
        double &x = want[row * width + i], &y = want[row * width + i + half];
        const double turned = x * std::cos(angle) - y * std::sin(angle);
        y = x * std::sin(angle) + y * std::cos(angle);
        x = turned;
      }
    }
    CHECK(relative_error(qkv.values(), want.values()) < 1e-14);
    rotary_embedding(*stream, Out(qkv), {place_tensor, heads, {100}, fraction}, true);
    CHECK(relative_error(qkv.values(), before.values()) < 1e-14);
  }
}

TEST_CASE("rotary turns every head of Q and K, however many K has") {
  const auto stream = make_stream(Device{});
  const int64_t heads = 4, groups = 2, width = 12, all = heads + 2 * groups;
  Numbers qkv({batch, tokens, all, width}, 1);
  const Numbers before = qkv;
  rotary_embedding(*stream, Out(qkv), {place_tensor, groups, {100}, 1}, false);
  for (size_t row = 0; row < qkv.size() / width; ++row) {
    const size_t token = row / all, head = row % all;
    const double x = before[row * width + 1], y = before[row * width + 1 + width / 2];
    const double angle = positions[token] * std::pow(100, -1.0 / 6);
    const double turned = x * std::cos(angle) - y * std::sin(angle);
    CHECK(qkv[row * width + 1] == doctest::Approx(head < heads + groups ? turned : x));
  }
}

TEST_CASE("positions that count each row are those that are not given") {
  const auto stream = make_stream(Device{});
  std::vector<int32_t> counting;
  for (int64_t i = 0; i < batch * tokens; ++i) counting.push_back(static_cast<int32_t>(i % tokens));
  const Tensor given(counting.data(), DType::i32, {batch, tokens});
  const Numbers wte({vocabulary, columns}, 1), wpe({places, columns}, 2);
  Numbers a = zeros({batch, tokens, columns}), b = a;
  embedding_forward(*stream, {id_tensor, given}, {wte, wpe}, {}, Out(a));
  embedding_forward(*stream, {id_tensor}, {wte, wpe}, {}, Out(b));
  CHECK(a.values() == b.values());
  Numbers qkv({batch, tokens, 3, 1, 8}, 3), other = qkv;
  rotary_embedding(*stream, Out(qkv), {given, 1, {10000}, 1}, false);
  rotary_embedding(*stream, Out(other), {{}, 1, {10000}, 1}, false);
  CHECK(qkv.values() == other.values());
}
