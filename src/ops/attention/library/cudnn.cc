// The only file that includes cuDNN's front end, which takes most of a minute to compile.
#include "src/ops/attention/library/cudnn.h"

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
  id_offset,
  id_lengths,
  id_packed_offsets,
  id_plain_offsets,
  id_stats_offsets
};

constexpr int64_t seed_bytes =
    cudnn_seed_bytes;  // seed and offset of dropout, at the start of the workspace

// cuDNN's view of documents: a batch of them, as long as the longest, in ragged tensors.
int64_t batch_of(const AttentionShape& a) {
  return a.documents ? a.most_documents : a.batch;
}
int64_t tokens_of(const AttentionShape& a) {
  return a.documents ? a.longest : a.tokens;
}
// The bytes before cuDNN's own workspace.
int64_t head_bytes(const AttentionShape& a) {
  return seed_bytes + (a.documents ? document_table_bytes(a) : 0);
}

struct Pair {
  std::shared_ptr<fe::graph::Graph> forward, backward;
  int64_t workspace = -1;  // the larger one of the two; negative: not served
};

// Makes the tensors of a graph. Tensors of the same strides share a table of offsets.
struct Builder {
  const AttentionShape& a;
  fe::graph::Graph& graph;
  int64_t packed_row = a.row(), plain_row = a.heads * a.head_dim;
  TensorHandle lengths, packed_offsets, plain_offsets, stats_offsets;  // null without documents

  Builder(const AttentionShape& shape, fe::graph::Graph& of) : a(shape), graph(of) {
    if (!a.documents) return;
    lengths = table("lengths", id_lengths, batch_of(a), fe::DataType_t::INT32);
    packed_offsets = offsets("packed offsets", id_packed_offsets);
    plain_offsets = offsets("plain offsets", id_plain_offsets);
    stats_offsets = offsets("offsets of statistics", id_stats_offsets);
  }

  TensorHandle packed(const char* name, Id id, int64_t heads) const {
    return graph.tensor(attributes(name, id, heads, packed_row).set_ragged_offset(packed_offsets));
  }
  TensorHandle plain(const char* name, Id id) const {
    return graph.tensor(attributes(name, id, a.heads, plain_row).set_ragged_offset(plain_offsets));
  }
  fe::graph::Tensor_attributes attributes(const char* name, Id id, int64_t heads,
                                          int64_t row) const {
    return fe::graph::Tensor_attributes()
        .set_name(name)
        .set_uid(id)
        .set_dim({batch_of(a), heads, tokens_of(a), a.head_dim})
        .set_stride({tokens_of(a) * row, a.head_dim, row, 1});
  }
  // The strides of documents' tokens one after the other, each with the statistics of all heads.
  std::vector<int64_t> stats_strides() const {
    const int64_t sequence = a.heads * tokens_of(a);
    if (a.documents) return {sequence, 1, a.heads, 1};
    return {sequence, tokens_of(a), 1, 1};
  }
  TensorHandle stats() const {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name("stats")
                            .set_uid(id_stats)
                            .set_dim({batch_of(a), a.heads, tokens_of(a), 1})
                            .set_stride(stats_strides())
                            .set_ragged_offset(stats_offsets)
                            .set_data_type(fe::DataType_t::FLOAT));
  }
  TensorHandle table(const char* name, Id id, int64_t count, fe::DataType_t type) const {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_uid(id)
                            .set_dim({count, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(type));
  }
  TensorHandle offsets(const char* name, Id id) const {
    return table(name, id, batch_of(a) + 1, fe::DataType_t::INT64);
  }
  TensorHandle scalar(const char* name, Id id) const {
    return table(name, id, 1, fe::DataType_t::INT64);
  }
  void output(const TensorHandle& t, Id id, int64_t heads, int64_t row) const {
    t->set_output(true)
        .set_uid(id)
        .set_dim({batch_of(a), heads, tokens_of(a), a.head_dim})
        .set_stride({tokens_of(a) * row, a.head_dim, row, 1})
        .set_ragged_offset(row == packed_row ? packed_offsets : plain_offsets);
  }
  // Sets the mask and the dropout of both directions.
  template <typename Attributes>
  void set_common(Attributes* options) const {
    options->set_attn_scale(static_cast<float>(a.scale));
    if (a.causal()) {
      options->set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
          .set_diagonal_band_right_bound(0);
    }
    if (a.documents) options->set_padding_mask(true).set_seq_len_q(lengths).set_seq_len_kv(lengths);
    if (a.dropout > 0) {
      options->set_dropout(static_cast<float>(a.dropout), scalar("seed", id_seed),
                           scalar("offset", id_offset));
    }
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
  auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
  b.set_common(&options);
  const auto [out, stats] =
      graph->sdpa(b.packed("q", id_q, a.heads), b.packed("k", id_k, a.kv_heads()),
                  b.packed("v", id_v, a.kv_heads()), options);
  b.output(out, id_out, a.heads, b.plain_row);
  stats->set_output(true).set_data_type(fe::DataType_t::FLOAT).set_uid(id_stats);
  if (a.documents) {
    stats->set_dim({batch_of(a), a.heads, tokens_of(a), 1})
        .set_stride(b.stats_strides())
        .set_ragged_offset(b.stats_offsets);
  }
  return graph;
}

std::shared_ptr<fe::graph::Graph> backward_graph(const AttentionShape& a, DType dtype,
                                                 bool repeatable) {
  auto graph = new_graph(dtype);
  const Builder b{a, *graph};
  auto options = fe::graph::SDPA_backward_attributes().set_name("attention_backward");
  b.set_common(&options);
  options.set_deterministic_algorithm(repeatable);
  if (a.documents) {
    const int64_t most = batch_of(a) * tokens_of(a);
    options.set_max_total_seq_len_q(most).set_max_total_seq_len_kv(most);
  }
  const auto [dq, dk, dv] =
      graph->sdpa_backward(b.packed("q", id_q, a.heads), b.packed("k", id_k, a.kv_heads()),
                           b.packed("v", id_v, a.kv_heads()), b.plain("out", id_out),
                           b.plain("dout", id_dout), b.stats(), options);
  b.output(dq, id_dq, a.heads, b.packed_row);
  b.output(dk, id_dk, a.kv_heads(), b.packed_row);
  b.output(dv, id_dv, a.kv_heads(), b.packed_row);
  return graph;
}

// The tokens of documents may differ from call to call.
std::string key_of(const ComputeOptions& o, const AttentionShape& a, DType dtype) {
  return fmt::format("{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}", a.documents, batch_of(a), tokens_of(a),
                     a.heads, a.kv_heads(), a.head_dim, a.causal(), a.scale, a.dropout,
                     dtype_name(dtype), o.deterministic);
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
    at[id_dout] = const_cast<void*>(gradients.dout.data);
    at[id_dq] = gradients.dq.data;
    at[id_dk] = gradients.dk.data;
    at[id_dv] = gradients.dv.data;
    run(c.stream, *pair(c, a.shape, a.dtype).backward, a, at, "attention_backward");
  }

 private:
  // cuDNN knows no memory that is only read.
  static std::unordered_map<int64_t, void*> inputs(const AttentionArgs& a) {
    return {{id_q, const_cast<void*>(a.q.data)},
            {id_k, const_cast<void*>(a.k.data)},
            {id_v, const_cast<void*>(a.v.data)},
            {id_out, a.out.data},
            {id_stats, a.stats.data}};
  }

  void run(CudaStream& s, fe::graph::Graph& graph, const AttentionArgs& a,
           std::unordered_map<int64_t, void*>& at, const char* op) {
    auto* workspace = static_cast<char*>(a.workspace.data);
    if (a.shape.dropout > 0) {
      write_seed(s, workspace, a.seed);
      at[id_seed] = workspace;
      at[id_offset] = workspace + sizeof(int64_t);
    }
    if (a.shape.documents) {
      const DocumentTable table = write_documents(s, a.shape, a.cu_seqlens, workspace + seed_bytes);
      at[id_lengths] = table.lengths;
      at[id_packed_offsets] = table.packed;
      at[id_plain_offsets] = table.plain;
      at[id_stats_offsets] = table.stats;
    }
    auto status = graph.execute(handle_, at, workspace + head_bytes(a.shape));
    if (status.is_bad()) throw DeviceError(fmt::format("{}: cuDNN: {}", op, status.get_message()));
  }

  Pair& pair(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
    const CudaStream& s = c.stream;
    const std::string key = key_of(c.options, shape, dtype);
    const auto it = pairs_.find(key);
    if (it != pairs_.end()) return it->second;
    Pair& made = pairs_[key];
    if (size_of(dtype) != 2 || s.capability() < 80) return made;
    if (shape.documents && (shape.most_documents == 0 || shape.longest == 0)) return made;
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
    made.workspace = needed + head_bytes(shape);
    return made;
  }

  cudnnHandle_t handle_ = nullptr;
  std::map<std::string, Pair> pairs_;
};

CudnnAttention* frontend_of(CudaStream& s) {
  return &s.state<Frontend>([] { return std::make_shared<Frontend>(); });
}

const bool found = [] {
  find_cudnn = frontend_of;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda
