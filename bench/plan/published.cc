#include "bench/plan/published.h"

namespace tally::train {
namespace {

// Programs of their time: attention in separate kernels. Selective recomputation computes attention
// again.
constexpr ProgramTraits unfused{AttentionKind::unfused, false, true, true, true};
constexpr ProgramTraits flash{AttentionKind::flash, false, false, true, true};
constexpr ProgramTraits tally{};

const std::string dgx = "--fp16 --vocab-size 51200 --seq-length 2048 --plan-gpus-per-node 8 ";

std::string model(int layers, int hidden, int heads) {
  return "--num-layers " + std::to_string(layers) + " --hidden-size " + std::to_string(hidden) +
         " --num-attention-heads " + std::to_string(heads) + " ";
}

std::string layout(int tensor, int pipeline, int gpus, int batch, int micro_batch = 1) {
  return "--tensor-model-parallel-size " + std::to_string(tensor) +
         " --pipeline-model-parallel-size " + std::to_string(pipeline) + " --plan-gpus " +
         std::to_string(gpus) + " --global-batch-size " + std::to_string(batch) +
         " --micro-batch-size " + std::to_string(micro_batch) + " ";
}

const std::string full = "--recompute-granularity full ";
const std::string both = "--sequence-parallel --recompute-granularity selective ";

PublishedTable weak_scaling() {
  const auto row = [](const char* name, const std::string& sizes, const std::string& where,
                      double tflops) {
    return PublishedRow{name, dgx + full + sizes + where, tflops, Unit::tflops};
  };
  const auto interleaved = [](int layers) {
    return "--num-layers-per-virtual-pipeline-stage " + std::to_string(layers) + " ";
  };
  return {"weak scaling on A100",
          "Narayanan et al. 2021, arXiv:2104.04473, table 1; layouts of Megatron-LM's "
          "examples/sc21/run_table_1.sh",
          "A100-80GB",
          unfused,
          6,
          {row("1.7B, 32 GPUs", model(24, 2304, 24), layout(1, 1, 32, 512, 16), 137),
           row("3.6B, 64 GPUs", model(30, 3072, 32), layout(2, 1, 64, 512, 16), 138),
           row("7.5B, 128 GPUs", model(36, 4096, 32), layout(4, 1, 128, 512, 16), 142),
           row("18.4B, 256 GPUs", model(40, 6144, 48), layout(8, 1, 256, 1024, 8), 135),
           row("39.1B, 512 GPUs", model(48, 8192, 64), layout(8, 2, 512, 1536, 4), 138),
           row("76.1B, 1024 GPUs", model(60, 10240, 80),
               layout(8, 4, 1024, 1792, 2) + interleaved(5), 140),
           row("145.6B, 1536 GPUs", model(80, 12288, 96),
               layout(8, 8, 1536, 2304, 2) + interleaved(5), 148),
           row("310B, 1920 GPUs", model(96, 16384, 128), layout(8, 16, 1920, 2160) + interleaved(3),
               155),
           row("530B, 2520 GPUs", model(105, 20480, 128),
               layout(8, 35, 2520, 2520) + interleaved(1), 163),
           row("1008B, 3072 GPUs", model(128, 25600, 160), layout(8, 64, 3072, 3072), 163)}};
}

PublishedTable strong_scaling() {
  const std::string large = dgx + full + model(96, 12288, 96);
  const std::string larger = dgx + full + model(105, 20480, 128);
  return {
      "strong scaling on A100",
      "Narayanan et al. 2021, arXiv:2104.04473, table 2 (84, 43, 23 days for 300 billion tokens)",
      "A100-80GB",
      unfused,
      0,
      {{"175B, 384 GPUs", large + layout(8, 12, 384, 1536), 153, Unit::tflops},
       {"175B, 768 GPUs", large + layout(8, 12, 768, 1536), 149, Unit::tflops},
       {"175B, 1536 GPUs", large + layout(8, 12, 1536, 1536), 141, Unit::tflops},
       {"530B, 560 GPUs", larger + layout(8, 35, 560, 2240), 171, Unit::tflops},
       {"530B, 1120 GPUs", larger + layout(8, 35, 1120, 2240), 167, Unit::tflops},
       {"530B, 2240 GPUs", larger + layout(8, 35, 2240, 2240), 159, Unit::tflops}}};
}

PublishedTable recomputation() {
  const std::string layer = dgx + model(48, 6144, 64) + layout(8, 1, 8, 4, 4);
  const std::string large = dgx + model(96, 12288, 96) + layout(8, 8, 64, 64) +
                            "--num-layers-per-virtual-pipeline-stage 4 ";
  const std::string larger = dgx + model(105, 20480, 128) + layout(8, 35, 280, 280) +
                             "--num-layers-per-virtual-pipeline-stage 1 ";
  const std::string largest = dgx + model(128, 25600, 160) + layout(8, 64, 512, 512);
  const std::string sequence = "--sequence-parallel ";
  const std::string selective = "--recompute-granularity selective ";
  return {"recomputation on A100",
          "Korthikanti et al. 2022, arXiv:2205.05198, tables 4 and 5",
          "A100-80GB",
          unfused,
          0,
          {{"22B layer, forward", layer, 7.7, Unit::forward},
           {"22B layer, backward", layer, 11.9, Unit::backward},
           {"22B layer, forward, SP", layer + sequence, 7.2, Unit::forward},
           {"22B layer, backward, SP", layer + sequence, 11.8, Unit::backward},
           {"22B layer, backward, full", layer + full, 19.5, Unit::backward},
           {"22B layer, backward, selective", layer + selective, 13.2, Unit::backward},
           {"22B layer, backward, SP and selective", layer + both, 13.1, Unit::backward},
           {"22B, full", layer + full, 1.42, Unit::step},
           {"22B, SP and selective", layer + both, 1.10, Unit::step},
           {"175B, full", large + full, 18.13, Unit::step},
           {"175B, SP and selective", large + both, 13.75, Unit::step},
           {"530B, full", larger + full, 49.05, Unit::step},
           {"530B, SP and selective", larger + both, 37.83, Unit::step},
           {"1T, full", largest + full, 94.42, Unit::step},
           {"1T, SP and selective", largest + both, 71.49, Unit::step}}};
}

PublishedTable mt_nlg() {
  const std::string large = dgx + full + model(105, 20480, 128);
  return {"MT-NLG on A100",
          "Smith et al. 2022, arXiv:2201.11990, section 2.4",
          "A100-80GB",
          unfused,
          0,
          {{"530B, 2240 GPUs", large + layout(8, 35, 2240, 1920), 60.1, Unit::step},
           {"530B, 2800 GPUs", large + layout(8, 35, 2800, 1920), 50.2, Unit::step},
           {"530B, 3360 GPUs", large + layout(8, 35, 3360, 1920), 44.4, Unit::step}}};
}

// At the benchmark's commit of Megatron-LM, selective recomputation does nothing with flash
// attention.
PublishedTable jupiter() {
  const std::string common =
      "--seq-length 2048 --position-embedding-type rope --sequence-parallel "
      "--use-distributed-optimizer ";
  return {"JUPITER benchmark on JUWELS Booster",
          "the benchmark's description: tokens/s of its two models",
          "A100-40GB",
          flash,
          0,
          {{"13B, 32 GPUs", common + "--fp16 " + model(40, 5120, 32) + layout(2, 4, 32, 1024),
            60777.68, Unit::tokens},
           {"175B, 384 GPUs", common + "--fp16 " + model(96, 12288, 96) + layout(8, 8, 384, 96),
            36055.39, Unit::tokens}}};
}

PublishedTable ours() {
  const std::string common = "--bf16 --hidden-dropout 0 --attention-dropout 0 ";
  const auto gpt2 = [&](const char* name, const char* size, int batch, double rate) {
    return PublishedRow{name,
                        common + "--model " + size + " --micro-batch-size " + std::to_string(batch),
                        rate, Unit::tokens};
  };
  return {"our own on one H200",
          "bench/RESULTS.md, records 2026-11-23-46f8c12 and 2026-11-23-c772183-gpt2",
          "H200",
          tally,
          0,
          {{"16 layers of 13B, B4",
            common + "--seq-length 2048 --micro-batch-size 4 " + model(16, 5120, 40), 18316,
            Unit::tokens},
           gpt2("GPT-2 124M B64", "124M", 64, 672729),
           gpt2("GPT-2 355M B32", "355M", 32, 246399),
           gpt2("GPT-2 774M B16", "774M", 16, 109868),
           gpt2("GPT-2 1.5B B16", "1.5B", 16, 57181)}};
}

PublishedTable ours_in_fp32() {
  const auto row = [](const char* name, const std::string& flags, double rate) {
    return PublishedRow{name, "--precision fp32 --model " + flags, rate, Unit::tokens};
  };
  return {"our own on one H200, fp32",
          "bench/RESULTS.md, record 2026-11-23-c4f584e-hf",
          "H200",
          tally,
          0,
          {row("124M B8 T1024, fp32", "124M --micro-batch-size 8", 68108),
           row("355M B6 T512, fp32", "355M --micro-batch-size 6 --seq-length 512", 24622)}};
}

}  // namespace

std::vector<PublishedTable> published_tables() {
  return {jupiter(), recomputation(), strong_scaling(), weak_scaling(),
          mt_nlg(),  ours(),          ours_in_fp32()};
}

}  // namespace tally::train
