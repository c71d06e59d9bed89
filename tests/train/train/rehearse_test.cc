// A rehearsal's messages and the step that follows from it.
#include "src/train/commands/rehearse.h"

#include <doctest/doctest.h>

#include "src/parallel/collectives/mesh.h"
#include "src/parallel/collectives/rehearsal.h"

using namespace tally::train;
using doctest::Approx;

// Patarasuk and Yuan 2009: a ring sends 2 (n - 1) / n of what is summed, in 2 (n - 1) steps.
TEST_CASE("what a rank sends by rings") {
  Messages m{"tensor", MessageKind::all_reduce, 4, 3, 1200};
  CHECK(m.bytes_sent() == Approx(1800));
  CHECK(m.steps() == 18);
  m.kind = MessageKind::all_gather;
  CHECK(m.bytes_sent() == Approx(900));
  CHECK(m.steps() == 9);
  m.kind = MessageKind::send;
  CHECK(m.bytes_sent() == 1200);
  CHECK(m.steps() == 3);
  m.kind = MessageKind::receive;  // the other rank sends it
  CHECK(m.bytes_sent() == 0);
  CHECK(m.steps() == 0);
}

TEST_CASE("one rank of many: its place in every group, and what it would have sent") {
  const auto stream = make_stream(Device{});
  RehearsalLedger ledger;
  const MeshShape shape{2, 4, 3};
  const auto world = make_rehearsal_communicator(rank_of(shape, {1, 2, 0}), shape.size(), &ledger);
  const Mesh mesh(*world, shape);
  CHECK(mesh.tensor().size() == 2);
  CHECK(mesh.tensor().rank() == 1);
  CHECK(mesh.pipeline().size() == 4);
  CHECK(mesh.pipeline().rank() == 2);
  CHECK(mesh.samples().size() == 3);
  CHECK(mesh.replicas().size() == 3);
  CHECK(mesh.embedding() == nullptr);

  std::vector<double> part{1, 2}, whole(4, 0.0);
  const Tensor mine(part.data(), DType::f64, {2}), all(whole.data(), DType::f64, {4});
  mesh.tensor().all_gather(*stream, mine, all);
  CHECK(whole == std::vector<double>{1, 2, 1, 2});  // finite numbers in the others' places
  part = {5, 6};
  mesh.tensor().all_gather(*stream, mine, all);
  CHECK(whole == std::vector<double>{1, 2, 1, 2});  // a real one takes none of this rank's time
  std::vector<double> weights{1, 2, 3, 4};          // drawn for both ranks: norms stay norms
  mesh.tensor().all_gather(*stream, Tensor(weights.data() + 2, DType::f64, {2}),
                           Tensor(weights.data(), DType::f64, {4}));
  CHECK(weights == std::vector<double>{1, 2, 3, 4});
  // Nobody else has cast its part. Zeros would take less power.
  std::vector<uint8_t> casts{0, 0, 7, 8};
  const auto gather_casts = [&](DType format) {
    mesh.tensor().all_gather(*stream, Tensor(casts.data() + 2, format, {2}),
                             Tensor(casts.data(), format, {4}));
  };
  gather_casts(DType::e4m3);
  CHECK(casts == std::vector<uint8_t>{7, 8, 7, 8});
  casts = {7, 8, 1, 2};
  gather_casts(DType::e4m3);
  CHECK(casts == std::vector<uint8_t>{7, 8, 1, 2});
  gather_casts(DType::e5m2);  // what is finite in one format may be none in the other
  CHECK(casts == std::vector<uint8_t>{1, 2, 1, 2});
  mesh.replicas().all_reduce(*stream, mine);
  const std::vector<Messages> messages = ledger.messages();
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].group == "data");
  CHECK(messages[0].bytes == 16);
  CHECK(messages[1].group == "tensor");
  CHECK(messages[1].calls == 6);
  CHECK(messages[1].bytes == 96 + 12);
}

// Narayanan et al., arXiv:2104.04473: the bubble is (p - 1) / m of the ideal time, of v chunks
// (p - 1) / (v m).
TEST_CASE("the step of a rehearsal") {
  RehearsedStep s;
  s.micro_batch = 0.010;
  s.update = 0.005;
  s.micro_batches = 16;
  s.bubble = 7;
  CHECK(s.without_messages() == Approx(0.235));
  CHECK(s.with_messages() == s.without_messages());
  s.micro_batch_messages = 0.001;
  s.step_messages = 0.1;
  CHECK(s.with_messages() == Approx(0.235 + 0.023 + 0.1));
}
