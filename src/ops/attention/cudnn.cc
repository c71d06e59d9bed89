// The only file that includes cuDNN's front end, which takes most of a minute to compile.
#include "src/ops/attention/cudnn.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <unordered_map>

#include "src/device/cuda/check.h"

namespace tally::train::cuda {
namespace {

namespace fe = cudnn_frontend;
using TensorHandle = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Id : int64_t {
  id_q = 1,
  id_k,
  id_v,
  id_out,
  id_stats,
  id_dout,
  id_dq,
  id_dk,
  id_dv,
  id_seed,
  id_offset
};

constexpr int64_t seed_bytes = 256;  // seed and offset of dropout, at the start of the workspace

struct Pair {
  std::shared_ptr<fe::graph::Graph> forward, backward;
  int64_t workspace = -1;  // of the larger of the two; negative: not served
};

struct Builder {
  const AttentionShape& a;
  fe::graph::Graph& graph;

  TensorHandle packed(const char* name, Id id, int64_t heads) const {
    return graph.tensor(attributes(name, id, heads, a.row()));
  }
  TensorHandle plain(const char* name, Id id) const {
    return graph.tensor(attributes(name, id, a.heads, a.heads * a.head_dim));
  }
  fe::graph::Tensor_attributes attributes(const char* name, Id id, int64_t heads,
                                          int64_t row) const {
    return fe::graph::Tensor_attributes()
        .set_name(name)
        .set_uid(id)
        .set_dim({a.batch, heads, a.tokens, a.head_dim})
        .set_stride({a.tokens * row, a.head_dim, row, 1});
  }
  TensorHandle scalar(const char* name, Id id) const {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_uid(id)
                            .set_dim({1, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(fe::DataType_t::INT64));
  }
  void output(const TensorHandle& t, Id id, int64_t heads, int64_t row) const {
    t->set_output(true)
        .set_uid(id)
        .set_dim({a.batch, heads, a.tokens, a.head_dim})
        .set_stride({a.tokens * row, a.head_dim, row, 1});
  }
};

std::shared_ptr<fe::graph::Graph> new_graph(DType dtype) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

std::shared_ptr<fe::graph::Graph> forward_graph(const AttentionShape& a, DType dtype) {
  auto graph = new_graph(dtype);
  const Builder b{a, *graph};
  auto options = fe::graph::SDPA_attributes()
                     .set_name("attention")
                     .set_generate_stats(true)
                     .set_attn_scale(static_cast<float>(a.scale));
  if (a.causal()) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  }
  if (a.dropout > 0) {
    options.set_dropout(static_cast<float>(a.dropout), b.scalar("seed", id_seed),
                        b.scalar("offset", id_offset));
  }
  const auto [out, stats] =
      graph->sdpa(b.packed("q", id_q, a.heads), b.packed("k", id_k, a.kv_heads()),
                  b.packed("v", id_v, a.kv_heads()), options);
  b.output(out, id_out, a.heads, a.heads * a.head_dim);
  stats->set_output(true).set_data_type(fe::DataType_t::FLOAT).set_uid(id_stats);
  return graph;
}

std::shared_ptr<fe::graph::Graph> backward_graph(const AttentionShape& a, DType dtype,
                                                 bool repeatable) {
  auto graph = new_graph(dtype);
  const Builder b{a, *graph};
  auto options = fe::graph::SDPA_backward_attributes()
                     .set_name("attention_backward")
                     .set_attn_scale(static_cast<float>(a.scale));
  if (a.causal()) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  }
  if (a.dropout > 0) {
    options.set_dropout(static_cast<float>(a.dropout), b.scalar("seed", id_seed),
                        b.scalar("offset", id_offset));
  }
  options.set_deterministic_algorithm(repeatable);
  const auto stats = graph->tensor(fe::graph::Tensor_attributes()
                                       .set_name("stats")
                                       .set_uid(id_stats)
                                       .set_dim({a.batch, a.heads, a.tokens, 1})
                                       .set_stride({a.heads * a.tokens, a.tokens, 1, 1})
                                       .set_data_type(fe::DataType_t::FLOAT));
  const auto [dq, dk, dv] =
      graph->sdpa_backward(b.packed("q", id_q, a.heads), b.packed("k", id_k, a.kv_heads()),
                           b.packed("v", id_v, a.kv_heads()), b.plain("out", id_out),
                           b.plain("dout", id_dout), stats, options);
  b.output(dq, id_dq, a.heads, a.row());
  b.output(dk, id_dk, a.kv_heads(), a.row());
  b.output(dv, id_dv, a.kv_heads(), a.row());
  return graph;
}

std::string key_of(const ComputeOptions& o, const AttentionShape& a, DType dtype) {
  return fmt::format("{}/{}/{}/{}/{}/{}/{}/{}/{}/{}", a.batch, a.tokens, a.heads, a.kv_heads(),
                     a.head_dim, a.causal(), a.scale, a.dropout, dtype_name(dtype),
                     o.deterministic);
}

class Frontend final : public CudnnAttention {
 public:
  ~Frontend() override {
    pairs_.clear();
    if (handle_) cudnnDestroy(handle_);
  }

  int64_t workspace(const CudaCompute& c, const AttentionShape& shape, DType dtype) override {
    return pair(c, shape, dtype).workspace;
  }

  void forward(const CudaCompute& c, const AttentionArgs& a) override {
    std::unordered_map<int64_t, void*> at = inputs(a);
    run(c.stream, *pair(c, a.shape, a.dtype).forward, a, at, "attention_forward");
  }

  void backward(const CudaCompute& c, const AttentionArgs& a,
                const AttentionGradients& gradients) override {
    std::unordered_map<int64_t, void*> at = inputs(a);
    at[id_dout] = gradients.dout.data;
    at[id_dq] = gradients.dq.data;
    at[id_dk] = gradients.dk.data;
    at[id_dv] = gradients.dv.data;
    run(c.stream, *pair(c, a.shape, a.dtype).backward, a, at, "attention_backward");
  }

 private:
  static std::unordered_map<int64_t, void*> inputs(const AttentionArgs& a) {
    return {{id_q, a.q.data},
            {id_k, a.k.data},
            {id_v, a.v.data},
            {id_out, a.out.data},
            {id_stats, a.stats.data}};
  }

  void run(CudaStream& s, fe::graph::Graph& graph, const AttentionArgs& a,
           std::unordered_map<int64_t, void*>& at, const char* op) {
    void* workspace = a.workspace.data;
    if (a.shape.dropout > 0) {
      write_seed(s, workspace, a.seed);
      at[id_seed] = workspace;
      at[id_offset] = static_cast<char*>(workspace) + sizeof(int64_t);
    }
    auto status = graph.execute(handle_, at, static_cast<char*>(workspace) + seed_bytes);
    if (status.is_bad()) throw DeviceError(fmt::format("{}: cuDNN: {}", op, status.get_message()));
  }

  Pair& pair(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
    const CudaStream& s = c.stream;
    const std::string key = key_of(c.options, shape, dtype);
    const auto it = pairs_.find(key);
    if (it != pairs_.end()) return it->second;
    Pair& made = pairs_[key];
    if (size_of(dtype) != 2 || s.capability() < 80) return made;
    if (!handle_) {
      if (cudnnCreate(&handle_) != CUDNN_STATUS_SUCCESS) {
        handle_ = nullptr;
        return made;
      }
      if (cudnnSetStream(handle_, s.stream()) != CUDNN_STATUS_SUCCESS) return made;
    }
    made.forward = forward_graph(shape, dtype);
    made.backward = backward_graph(shape, dtype, c.options.deterministic);
    int64_t needed = 0;
    for (const auto& graph : {made.forward, made.backward}) {
      int64_t bytes = 0;
      if (graph->build(handle_, {fe::HeurMode_t::A}).is_bad() ||
          graph->get_workspace_size(bytes).is_bad()) {
        return made;  // cuDNN does not serve this shape
      }
      needed = std::max(needed, bytes);
    }
    made.workspace = needed + seed_bytes;
    return made;
  }

  cudnnHandle_t handle_ = nullptr;
  std::map<std::string, Pair> pairs_;
};

}  // namespace

CudnnAttention* cudnn_attention(CudaStream& s) {
  return &s.state<Frontend>([] { return std::make_shared<Frontend>(); });
}

}  // namespace tally::train::cuda
