// Flags of the run: data, output, device, processes.
#include "src/config/flag_group.h"

namespace tally::train {
namespace {

void declare_data(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Data");
  g.list("--data-path", &f->data.paths, "PREFIX",
         "Dataset made by 'tally-train prepare' or Megatron-LM: PREFIX.bin and PREFIX.idx; several "
         "are blended when each has its weight before it: 0.7 A 0.3 B; of encoders: HDF5 files or "
         "folders of them (pretrain), a table of texts (classify), SQuAD's JSON (squad)");
  g.list("--train-data-path", &f->train_paths, "PREFIX",
         "Dataset to train on, all of it, instead of --data-path and --split");
  g.list("--valid-data-path", &f->valid_paths, "PREFIX",
         "Dataset to evaluate on, all of it, with --train-data-path");
  g.list("--test-data-path", &f->test_paths, "PREFIX",
         "Dataset to evaluate on at the end of training, all of it, with --train-data-path");
  g.toggle(
      "--eod-mask-loss", &f->data.eod_mask_loss,
      "What follows the end of a document does not count for the loss; each micro batch's loss "
      "is the mean over the tokens that count, as in Megatron-LM");
  g.toggle(
      "--calculate-per-token-loss", &f->per_token_loss,
      "With --eod-mask-loss, a step's loss is the mean over the tokens that count in its global "
      "batch, whatever --micro-batch-size and the number of processes; other runs do so anyway");
  g.toggle("--reset-position-ids", &f->data.reset_position_ids,
           "Positions start again at 0 after the end of a document");
  g.toggle("--reset-attention-mask", &f->data.reset_attention_mask,
           "Tokens attend to their own document only");
  g.toggle("--mock-data", &f->data.mock, "Random tokens instead of a dataset, for measuring");
  g.text("--split", &f->data.split, "A,B,C",
         "Weights of training, validation and test documents; evaluate reads them all");
  g.text("--tokenizer-type", &f->tokenizer, "NAME",
         "GPT2BPETokenizer (default), HuggingFaceTokenizer or bytes, of encoders "
         "BertWordPieceLowerCase (default) or BertWordPieceCase; decides the vocabulary's size. "
         "NullTokenizer: none, with --vocab-size");
  g.text("--vocab-file", &f->data.vocab_file, "FILE",
         "vocab.json of GPT2BPETokenizer, or a tokenizer.json alone, the one of "
         "HuggingFaceTokenizer; training only copies it next to what it saves. Of encoders: the "
         "vocab.txt that texts are tokenized with");
  g.text("--merge-file", &f->data.merge_file, "FILE", "merges.txt of GPT2BPETokenizer, likewise");
}

void declare_output(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Output, checkpoints, evaluation");
  g.number("--log-interval", &f->log_interval, 1, "Steps between log lines");
  g.text("--log-format", &f->log_format, "NAME",
         "jupiter: the log line of the JUPITER benchmark's Megatron-LM, in seconds; megatron: that "
         "of today's Megatron-LM, in milliseconds (docs/record.md)");
  g.toggle("--log-throughput", &f->log_throughput,
           "With --log-format megatron: TFLOP/s/GPU in the log line; the other format always has "
           "its TFLOPs");
  g.text("--record", &f->record, "FILE",
         "Write a JSON record of the run (docs/record.md); replaces no file but an older record");
  g.text(
      "--save", &f->save, "DIR",
      "Write checkpoints to DIR: at the end, when asked to stop, and every --save-interval; a DIR "
      "that holds checkpoints is refused unless --load resumes from them");
  g.number("--save-interval,--persistent-save-interval", &f->save_interval, 1,
           "Steps between checkpoints");
  g.text(
      "--load", &f->load, "DIR",
      "Resume from the newest checkpoint in DIR, or from DIR where it is an iter_ folder; an empty "
      "DIR starts from scratch");
  g.text(
      "--load-hf", &f->load_hf, "DIR",
      "Start from a GPT-2, Llama, BERT or DistilBERT of Hugging Face: model.safetensors (or its "
      "shards) and config.json, "
      "which sets the model's sizes; vocab.json and merges.txt, or tokenizer.json, where DIR has "
      "them (docs/real-weights.md)");
  g.text("--save-hf", &f->save_hf, "DIR",
         "Write the trained model to DIR as transformers reads it, at the end and when asked to "
         "stop: model.safetensors in the run's precision, config.json, and the tokenizer's files "
         "where they are known; a DIR that holds a model is refused unless --load resumes its "
         "training");
  g.toggle("--finetune", &f->finetune,
           "Start at iteration 0 with the weights of --load's checkpoint, without its counters and "
           "its optimizer's state");
  g.toggle("--no-load-optim", &f->no_load_optimizer,
           "Resume from --load's weights and counters without its optimizer's state: moments, bias "
           "correction and loss scale start anew; the learning rate follows the samples");
  g.toggle("--no-save-optim", &f->no_save_optimizer,
           "Leave the optimizer's state out of checkpoints: a third of the size or less; only "
           "--no-load-optim, --finetune and evaluate read them");
  g.toggle("--exit-on-missing-checkpoint", &f->exit_on_missing_checkpoint,
           "With --load: a DIR without a checkpoint is an error");
  g.number("--eval-interval", &f->eval_interval, 1,
           "Steps between evaluations on the validation split (default: none, or 1000 with "
           "--eval-iters)");
  g.number("--eval-iters", &f->eval_iterations, 0,
           "Global batches of an evaluation (default: 100 with --eval-interval or --skip-train)");
  g.toggle("--skip-train", &f->skip_train,
           "Evaluate --eval-iters global batches of the validation data and of --test-data-path, "
           "and end; nothing is trained or saved");
}

void declare_evaluation(CLI::App* app, Flags* f) {
  FlagGroup g(app, "tally-train evaluate");
  g.text("--text", &f->text, "FILE",
         "Evaluate on this plain text, gzip'd or not, as one document, instead of --data-path");
  g.number("--stride", &f->stride, 1,
           "Tokens from the start of one block of --seq-length to the next one's; every token but "
           "the text's first is scored once, in the first block that reaches it, so that a smaller "
           "stride gives more context (default: --seq-length)");
  g.text("--eval-mode", &f->eval_mode, "NAME",
         "How several processes come to one metric: reduce (each scores its own samples, and the "
         "counts are added; default) or gather (rank 0 scores the predictions of all, and the "
         "metric is broadcast)");
  g.text(
      "--predictions", &f->predictions, "FILE",
      "Write the predictions of --task classify (a JSON object a line) or squad (one JSON object "
      "of answers, as SQuAD's evaluation scripts read it)");
}

void declare_device(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Device");
  g.text("--device", &f->device, "NAME", "auto (a GPU when there is one), cpu, cuda or cuda:N");
  g.toggle("--reference", &f->reference,
           "Train the autograd reference model, the slow oracle of the tests");
  g.toggle("--no-cuda-graph", &f->no_cuda_graph,
           "Launch every kernel of a step instead of a recorded graph");
  g.text(
      "--no-fusion", &f->no_fusion, "LIST",
      "Optimizations of the step to turn off, separated by commas: residual, bias-sums, qkv-bias, "
      "overwrite, gelu, gelu-derivative, bias, overlap, deferred-update, float64, attention, head, "
      "or all");
  g.toggle("--no-bias-gelu-fusion", &f->no_gelu_fusion,
           "Same as --no-fusion gelu: GELU runs as a kernel of its own; GPT's stays the tanh "
           "approximation, where Megatron-LM computes erf without its fusion");
  g.toggle("--deterministic,--deterministic-mode", &f->deterministic,
           "Same bits in every run on the same machine; on Hopper GPUs needed for a resumed run to "
           "repeat "
           "the first bit for bit");
}

void declare_parallel(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Parallelism");
  g.number("--tensor-model-parallel-size", &f->tensor_parallel, 1,
           "Processes that share each layer, on one node (tensor parallelism)");
  g.number("--pipeline-model-parallel-size", &f->pipeline_parallel, 1,
           "Stages of neighbouring layers, each on processes of its own (pipeline parallelism)");
  g.number("--context-parallel-size", &f->context_parallel, 1,
           "Processes that share each sequence; this version takes 1");
  g.number("--expert-model-parallel-size", &f->expert_parallel, 1,
           "Processes that share the experts of a layer; there are none, so that it takes 1");
  g.number(
      "--num-layers-per-virtual-pipeline-stage", &f->virtual_pipeline_layers, 1,
      "Layers of a chunk: every stage has several, and the interleaved schedule goes round them");
  g.toggle("--sequence-parallel", &f->sequence_parallel,
           "The tensor parallel processes divide the tokens of norms and dropout, too");
  g.toggle("--use-distributed-optimizer", &f->distributed_optimizer,
           "Split the optimizer's state over the data parallel processes (ZeRO 1)");
  g.text("--data-parallel-sharding-strategy", &f->sharding_strategy, "NAME",
         "What the data parallel processes split: no_shard, optim (as --use-distributed-optimizer) "
         "or optim_grads (gradients as well, ZeRO 2)");
  g.text("--rehearse", &f->rehearse, "TPxPPxDP[:STAGE]",
         "Do the work of one rank of this layout on one device, without the other ranks, and print "
         "the time and the memory that it takes (docs/distributed.md)");
  g.text("--network", &f->network, "GB/s,us[,GB/s,us]",
         "With --rehearse: predict the step over a network of this rate and time a message; the "
         "second pair is within a node, for tensor parallelism");
  g.number("--ddp-bucket-size", &f->gradient_bucket, 0,
           "Gradients that data parallel processes add at a time during the backward pass; 0: "
           "all after it (default: 25000000, and 0 where NVLink connects the GPUs of all replicas "
           "but copy engines do not carry the gradients)");
  g.toggle("--no-peer-memory", &f->no_peer_memory,
           "NCCL carries all messages between GPUs that NVLink connects; else they map each "
           "other's memory, copy engines carry gradients, and kernels the messages of tensor "
           "parallelism (docs/distributed.md)");
  g.number("--check-weight-hash-across-dp-replicas-interval", &f->weight_check_interval, 1,
           "Steps between checks that all processes have the same weights (default: at the start "
           "only)");
}

}  // namespace

void declare_launch_flags(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Processes (docs/distributed.md)");
  g.number("--nproc-per-node", &f->processes, 1,
           "Start this many processes on this host, one a GPU; under srun with one task a node, on "
           "every node");
  g.text("--master-addr", &f->launch.address, "HOST",
         "Where rank 0 is (default: MASTER_ADDR, this host, or the first of Slurm's hosts)");
  g.number("--master-port", &f->port, 1,
           "Port that rank 0 listens on (default: MASTER_PORT, or made of the job's number)",
           65535);
  g.text("--master-addr-suffix", &f->launch.address_suffix, "TEXT",
         "Appended to the first label of the host name that Slurm gives, where that names a faster "
         "interface: i makes node3i.site of node3.site");
  g.text("--rendezvous-token-file", &f->launch.token_file, "FILE",
         "File of mode 600 with the random text by which the processes know each other (default: "
         "TALLY_RENDEZVOUS_TOKEN; needed where no launcher gives one and rank 0 is not at "
         "127.0.0.1)");
  g.text("--network-interface", &f->launch.interface, "NAME",
         "Interface for messages between hosts, as ib0 (NCCL_SOCKET_IFNAME where that is not set)");
  g.text("--distributed-backend", &f->launch.backend, "NAME",
         "What carries gradients: nccl (GPUs), mpi or sockets (CPUs; gloo is the same) (default: "
         "nccl on "
         "GPUs; else mpi where an MPI launcher started the processes, sockets where none did)");
  g.number(
      "--distributed-timeout-minutes", &f->launch.timeout_minutes, 0.001,
      "How long processes wait for each other: at the start and in an operation (10 where it is "
      "not given), for a host that does not answer (1), for a process that is stopped (0.1)",
      60.0 * 24 * 366);
  g.toggle("--prefix-output", &f->launch.prefix,
           "Begin every line of output with the process's rank: [rank3]:");
}

void declare_run_flags(CLI::App* app, Flags* flags) {
  declare_data(app, flags);
  declare_output(app, flags);
  declare_evaluation(app, flags);
  declare_device(app, flags);
  declare_parallel(app, flags);
  declare_launch_flags(app, flags);
}

}  // namespace tally::train
