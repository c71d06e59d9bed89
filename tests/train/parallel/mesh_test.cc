// The groups of a mesh, against those that Megatron-LM's documentation lists.
#include "src/parallel/collectives/mesh.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace tally::train;

namespace {

using Groups = std::set<std::vector<int>>;

Groups groups_of(const MeshShape& shape, MeshGroup group) {
  Groups all;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const std::vector<int> ranks = ranks_of(shape, group, rank);
    if (!ranks.empty()) all.insert(ranks);
  }
  return all;
}

// The example in the comment of initialize_model_parallel(): 16 GPUs, 2 for tensor parallelism and 4
// for the pipeline.
TEST_CASE("a mesh has Megatron-LM's groups") {
  const MeshShape shape{2, 4, 2};
  CHECK(groups_of(shape, MeshGroup::tensor) ==
        Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  for (const MeshGroup data : {MeshGroup::samples, MeshGroup::replicas})
    CHECK(groups_of(shape, data) ==
          Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(groups_of(shape, MeshGroup::pipeline) ==
        Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
  CHECK(groups_of(shape, MeshGroup::model) ==
        Groups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}});
  CHECK(groups_of(shape, MeshGroup::embedding) == Groups{{0, 12}, {1, 13}, {2, 14}, {3, 15}});
}

TEST_CASE("every rank has a place of its own, and is in one group of each kind") {
  for (const int tensor : {1, 2, 3, 4}) {
    for (const int pipeline : {1, 2, 3}) {
      for (const int data : {1, 2, 5}) {
        const MeshShape shape{tensor, pipeline, data};
        for (int rank = 0; rank < shape.size(); ++rank) {
          CHECK(rank_of(shape, position_of(shape, rank)) == rank);
          const auto count = [&](MeshGroup g) {
            return static_cast<int>(ranks_of(shape, g, rank).size());
          };
          CHECK(count(MeshGroup::tensor) == tensor);
          CHECK(count(MeshGroup::samples) == data);
          CHECK(count(MeshGroup::replicas) == data);
          CHECK(count(MeshGroup::pipeline) == pipeline);
          CHECK(count(MeshGroup::model) == tensor * pipeline);
          const int stage = position_of(shape, rank).stage;
          const bool end = stage == 0 || stage + 1 == pipeline;
          CHECK(count(MeshGroup::embedding) == (end ? std::min(2, pipeline) : 0));
        }
      }
    }
  }
}

TEST_CASE("a mesh of one rank is alone in every group") {
  const auto world = make_single_communicator();
  const Mesh mesh(*world, MeshShape{});
  CHECK(mesh.tensor().size() == 1);
  CHECK(mesh.samples().size() == 1);
  CHECK(mesh.replicas().size() == 1);
  CHECK(mesh.pipeline().size() == 1);
  CHECK(mesh.model().size() == 1);
  REQUIRE(mesh.embedding() != nullptr);
  CHECK(mesh.embedding()->size() == 1);
  CHECK((mesh.first_stage() && mesh.last_stage()));
  CHECK_THROWS_AS(Mesh(*world, MeshShape{2, 1, 1}), CommunicationError);
}

}  // namespace
