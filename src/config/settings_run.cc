// Settings of the device and of the processes.
#include "src/config/flags.h"
#include "src/config/resolve_parts.h"
#include "src/config/settings.h"

namespace tally::train {
namespace {

std::vector<std::string> names_of_fusions() {
  std::vector<std::string> names;
  for (const auto& [name, on] : fusion_names) names.emplace_back(name);
  return names;
}

void turn_off(const std::string& flag, const std::string& names, Fusions* fusions) {
  std::istringstream words(names);
  for (std::string word; std::getline(words, word, ',');) {
    bool found = false;
    for (const auto& [name, on] : fusion_names) {
      if (word != name && word != "all") continue;
      fusions->*on = false;
      found = true;
    }
    if (!found)
      refuse_value(flag,
                   fmt::format("'{}' is not known: {}, all", word, listed(names_of_fusions())));
  }
}

std::vector<std::string> those_off(const Fusions& fusions) {
  std::vector<std::string> names;
  for (const auto& [name, on] : fusion_names)
    if (!(fusions.*on)) names.emplace_back(name);
  return names;
}

void check_device(const std::string& flag, const std::string& given) {
  const std::string name = lower(given);
  const std::string index = name.rfind("cuda:", 0) == 0 ? name.substr(5) : "";
  const bool numbered =
      !index.empty() && index.size() < 4 &&
      std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (name != "auto" && name != "cpu" && name != "cuda" && !numbered)
    refuse_value(flag, fmt::format("'{}' is not known: auto, cpu, cuda, cuda:N", given));
}

}  // namespace

void add_device_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  Config& c = f.config;
  t.group("Device");
  t.text("--device", &c.device, "NAME", "auto (a GPU when there is one), cpu, cuda or cuda:N",
         check_device)
      .offers({"auto", "cpu", "cuda"});
  t.turns_on("--reference", &c.reference,
             "Train the autograd reference model, the slow oracle of the tests")
      .record("reference");
  t.turns_off("--no-cuda-graph", &c.cuda_graph,
              "Launch every kernel of a step instead of a recorded graph")
      .record("cuda_graph")
      .called("cuda_graph (--no-cuda-graph turns it off)");
  t.parsed("--no-fusion", "LIST",
           fmt::format("Optimizations of the step to turn off, separated by commas: {}, or all",
                       listed(names_of_fusions())),
           [&c](const std::string& flag, const std::string& names) {
             turn_off(flag, names, &c.policy.fusions);
           })
      .record("no_fusion", those_off(c.policy.fusions));
  t.turns_on("--no-bias-gelu-fusion", &f.no_gelu_fusion,
             "Same as --no-fusion gelu: GELU runs as a kernel of its own; GPT's stays the tanh "
             "approximation, where Megatron-LM computes erf without its fusion");
  t.turns_on("--deterministic,--deterministic-mode", &c.policy.deterministic,
             "Same bits in every run on the same machine; on Hopper GPUs needed for a resumed run "
             "to repeat the first bit for bit")
      .record("deterministic");
}

namespace {

void add_sharding_settings(SettingTable& t, Flags& f) {
  Config& c = f.config;
  t.turns_on("--use-distributed-optimizer", &c.distributed_optimizer,
             "Divide the optimizer's state among the data parallel processes (ZeRO 1)")
      .record("parallel.distributed_optimizer");
  t.choice("--data-parallel-sharding-strategy", &f.sharding, "NAME",
           {{"no_shard", ShardingStrategy::none},
            {"optim", ShardingStrategy::state},
            {"optim_grads", ShardingStrategy::gradients},
            {"optim_grads_params", ShardingStrategy::weights, false}},
           "State that data parallel processes divide: no_shard, optim (as "
           "--use-distributed-optimizer) or optim_grads (gradients as well, ZeRO 2)")
      .record("parallel.shard_gradients", c.shard_gradients);
}

void add_message_settings(SettingTable& t, Config& c) {
  t.number("--ddp-bucket-size", &c.gradient_bucket, 0,
           "Gradients that data parallel processes add at a time during the backward pass; 0: "
           "all after it (default: 25000000, and 0 where NVLink connects the GPUs of all replicas "
           "but copy engines do not carry the gradients)")
      .record("parallel.ddp_bucket_size");
  t.turns_off("--no-peer-memory", &c.peer_memory,
              "NCCL carries all messages between GPUs that NVLink connects; else they map each "
              "other's memory, copy engines carry gradients, and kernels the messages of tensor "
              "parallelism (docs/distributed.md)")
      .record("parallel.peer_memory")
      .called("peer_memory (--no-peer-memory turns it off)");
  t.number("--check-weight-hash-across-dp-replicas-interval", &c.weight_check_interval, 1,
           "Steps between checks that all processes have the same weights (default: at the start "
           "only)")
      .record("parallel.check_weight_hash_across_dp_replicas_interval");
}

}  // namespace

void add_parallel_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  Config& c = f.config;
  t.group("Parallelism");
  t.follows("parallel.world_size", c.world_size, "the number of processes");
  t.number("--tensor-model-parallel-size", &c.tensor_parallel, 1,
           "Processes that share each layer, on one node (tensor parallelism)")
      .record("parallel.tensor");
  t.number("--pipeline-model-parallel-size", &c.pipeline_parallel, 1,
           "Stages of neighbouring layers, each on processes of its own (pipeline parallelism)")
      .record("parallel.pipeline");
  t.follows("parallel.data", c.data_parallel, "the number of replicas");
  t.number("--context-parallel-size", &f.context_parallel, 1,
           "Processes that share each sequence; this version takes 1");
  t.number("--expert-model-parallel-size", &f.expert_parallel, 1,
           "Processes that share the experts of a layer; there are none, so that it takes 1");
  t.number("--num-layers-per-virtual-pipeline-stage", &c.virtual_pipeline_layers, 1,
           "Layers of a chunk: every stage has several, and the interleaved schedule goes round "
           "them")
      .record("parallel.virtual_pipeline_layers");
  t.turns_on("--sequence-parallel", &c.sequence_parallel,
             "The tensor parallel processes divide the tokens of norms and dropout, too")
      .record("parallel.sequence");
  add_sharding_settings(t, f);
  t.text("--rehearse", &f.rehearse, "TPxPPxDP[:STAGE]",
         "Do the work of one rank of this layout on one device, without the other ranks, and print "
         "the time and the memory that it takes (docs/distributed.md)");
  t.text("--network", &f.network, "GB/s,us[,GB/s,us]",
         "With --rehearse: predict the step over a network of this rate and time a message; the "
         "second pair is within a node, for tensor parallelism");
  add_message_settings(t, c);
}

void add_launch_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  LaunchOptions& l = f.launch;
  t.group("Processes (docs/distributed.md)");
  t.number("--nproc-per-node", &f.processes, 1,
           "Start this many processes on this host, one a GPU; under srun with one task a node, on "
           "every node");
  t.text("--master-addr", &l.address, "HOST",
         "Address of rank 0 (default: MASTER_ADDR, this host, or the first of Slurm's hosts)");
  t.number("--master-port", &f.port, 1,
           "Port that rank 0 listens on (default: MASTER_PORT, or made of the job's number)",
           65535);
  t.text("--master-addr-suffix", &l.address_suffix, "TEXT",
         "Appended to the first label of the host name that Slurm gives, where that names a faster "
         "interface: i makes node3i.site of node3.site");
  t.text("--rendezvous-token-file", &l.token_file, "FILE",
         "File of mode 600 with the random text by which the processes know each other (default: "
         "TALLY_RENDEZVOUS_TOKEN; needed where no launcher gives one and rank 0 is not at "
         "127.0.0.1)");
  t.text("--network-interface", &l.interface, "NAME",
         "Interface for messages between hosts, as ib0 (NCCL_SOCKET_IFNAME where that is not set)");
  t.choice("--distributed-backend", &l.backend, "NAME",
           {{"nccl", "nccl"}, {"mpi", "mpi"}, {"sockets", "sockets"}, {"gloo", "sockets", false}},
           "Library that carries gradients: nccl (GPUs), mpi or sockets (CPUs; gloo is the same) "
           "(default: "
           "nccl on GPUs; else mpi where an MPI launcher started the processes, sockets where none "
           "did)")
      .record("parallel.distributed_backend", text_or_null(f.config.distributed_backend));
  t.number(
      "--distributed-timeout-minutes", &l.timeout_minutes, 0.001,
      "Minutes that processes wait for each other: at the start and in an operation (10 where it "
      "is not given), for a host that does not answer (1), for a process that is stopped "
      "(0.1)",
      60.0 * 24 * 366);
  t.turns_on("--prefix-output", &l.prefix,
             "Begin every line of output with the process's rank: [rank3]:");
}

}  // namespace tally::train
