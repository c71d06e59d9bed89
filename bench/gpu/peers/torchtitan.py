#!/usr/bin/env python3
"""Layers of Llama 3.1 8B in torchtitan 0.3.0 over the GPUs of this host: a peer of tally-train on several GPUs.

Run it under torchrun with torchtitan's and spmd_types' folders (and torchao's for --float8) in PYTHONPATH. From
torchtitan come the model and its configuration (untied head, scaled rotary positions, float32 masters, Q, K and V in
one GEMM), parallelize_llama (torch.compile a block, FSDP2 with bf16 parameters and float32 reductions), the compiled
loss, the float8 converter (the blocks' linear layers; the head stays in bf16, as ours does), fused AdamW,
clipping at 1.0 and its rhythm of garbage collection. Its Trainer wants a tokenizer, a data set, checkpoints and
logging; the loop below makes the same calls in the same order without them: fixed random tokens that are already on the
GPU, a constant learning rate, no metrics. CUDA graphs around the forward and backward pass, which torchtitan 0.3.0 turns
on by default, are on with --cuda-graphs alone.

--attention: sdpa is torchtitan's own ScaledDotProductAttention, cuDNN's kernels first; flex is its models' default.
--loss: whole takes the logits of all positions at once; chunked, its models' default, in eight parts: less memory, but
the head's gradient is added up in float32 eight times. --reshard: default frees a block's gathered weights after its
forward pass (ZeRO 3); never keeps them until its backward pass (ZeRO 2), which sends less.
--float8 takes several recipes, which are measured one after the other in one process; "none" is bf16. Prints one JSON
line each: the median of the steps' times on the GPU, tokens/s of all GPUs and of one, peak memory, the last loss.
"""
import argparse
import contextlib
import dataclasses
import gc
import importlib.metadata
import os
import statistics
import sys
import time
import unittest.mock

# As torchtitan's run_train.sh sets it.
os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
# This file is named like the package that it imports.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != HERE] + [HERE]

import torch
import torch.distributed.fsdp
import torch._utils


def arguments():
    a = argparse.ArgumentParser()
    a.add_argument("--model", default="8B", help="a flavor of torchtitan's llama3; debugmodel: a tiny one")
    a.add_argument("--layers", type=int, default=16)
    a.add_argument("--batch", type=int, default=1, help="sequences a GPU")
    a.add_argument("--tokens", type=int, default=8192)
    a.add_argument("--steps", type=int, default=20)
    a.add_argument("--warmup", type=int, default=5)
    a.add_argument("--float8", nargs="+", default=["none"],
                   choices=["none", "tensorwise", "rowwise", "rowwise_with_gw_hp"], help="torchao's recipes")
    a.add_argument("--attention", default="sdpa", choices=["sdpa", "flex"])
    a.add_argument("--recompute", default="none", choices=["none", "selective", "full"])
    a.add_argument("--loss", default="whole", choices=["whole", "chunked"])
    a.add_argument("--reshard", default="default", choices=["default", "never"])
    a.add_argument("--cuda-graphs", action="store_true")
    a.add_argument("--no-compile", action="store_true")
    a.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: for tests; float8 is emulated")
    return a.parse_args()


def shard_head_alone():
    """For the chunked loss: PyTorch 2.11's FSDP unit of the last norm and the head wants both in one forward pass.

    The chunked loss calls the norm with the model and the head later (pytorch/pytorch#180428). With the head as a unit
    of its own, the norm's 4096 numbers are in the model's unit.
    """
    from torchtitan.distributed import fsdp
    shard = fsdp.fully_shard
    fsdp.fully_shard = lambda unit, **options: shard(unit[-1] if isinstance(unit, list) else unit, **options)


def make_masks_as_before():
    """For flex attention: PyTorch 2.11 always keeps a mask's full blocks apart, and has no argument that says so."""
    from torchtitan.models.common import decoder
    make = decoder.create_attention_mask
    decoder.create_attention_mask = lambda *of, separate_full_blocks, **options: make(*of, **options)


def stand_in(device):
    """For what torchtitan imports and this run does not use; nothing that is computed changes.

    tyro parses torchtitan's command line. DataParallelMeshDims came to PyTorch after 2.11; it is passed to fully_shard in
    torchtitan's spmd_types backend alone, which is about tensor and context parallelism. The run takes the backend
    partial_dtensor, in which FSDP alone is PyTorch's fully_shard over one mesh.
    """
    sys.modules["tyro"] = unittest.mock.MagicMock()
    if not hasattr(torch.distributed.fsdp, "DataParallelMeshDims"):
        torch.distributed.fsdp.DataParallelMeshDims = type("DataParallelMeshDims", (), {})
    if device == "cpu":
        torch._utils._get_available_device_type = lambda: "cpu"


def model_config(a, recipe):
    from torchtitan.components.quantization import Float8LinearConverter
    from torchtitan.models.common.attention import ScaledDotProductAttention
    from torchtitan.models.llama3 import model_registry
    float8 = [] if recipe == "none" else [Float8LinearConverter.Config(
        recipe_name=recipe, filter_fqns=["lm_head"], model_compile_enabled=not a.no_compile, emulate=a.device == "cpu")]
    config = model_registry(a.model, converters=float8).model
    config.layers = config.layers[:a.layers]
    for layer in config.layers:
        layer.attention.rope = dataclasses.replace(layer.attention.rope, max_seq_len=a.tokens)
        if a.attention == "sdpa":
            layer.attention.inner_attention = ScaledDotProductAttention.Config()
    return config


class Peer:
    """What torchtitan's Trainer holds of a model, and its training step."""

    def __init__(self, a, recipe, dims, device):
        from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
        from torchtitan.components.optimizer import default_adamw
        from torchtitan.config import CompileConfig
        from torchtitan.distributed.cudagraph import wrap_with_cuda_graph
        config = model_config(a, recipe)
        compiling = CompileConfig(enable=not a.no_compile)
        self.model = self.parallel(a, config, dims, compiling)
        if device.type == "cpu":  # gloo has no sum with a factor
            for unit in self.model.modules():
                if isinstance(unit, torch.distributed.fsdp.FSDPModule):
                    unit.set_force_sum_reduction_for_comms(True)
        self.model.to_empty(device=device.type)
        with torch.no_grad():
            self.model.init_weights()
        self.model.train()
        loss = CrossEntropyLoss.Config(global_vocab_size=config.vocab_size)
        self.chunked = a.loss == "chunked"
        self.loss = (ChunkedLossWrapper.Config(loss_fn=loss) if self.chunked else loss).build(compile_config=compiling)
        if self.chunked:
            self.loss.set_lm_head(self.model.lm_head)
            self.model._skip_lm_head = True
        self.optimizers = default_adamw(lr=3e-4).build(model_parts=[self.model])
        self.new_gradients = not a.cuda_graphs
        self.pass_once = wrap_with_cuda_graph(self.forward_backward) if a.cuda_graphs else self.forward_backward
        ids = torch.randint(0, config.vocab_size, (dims.world_size, a.batch, a.tokens + 1),
                            generator=torch.Generator().manual_seed(1))[torch.distributed.get_rank()].to(device)
        self.ids, self.labels = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
        self.labels_of_all = torch.tensor(dims.world_size * self.labels.numel(), device=device)
        self.positions = torch.arange(a.tokens, device=device).expand(a.batch, -1) if a.attention == "flex" else None

    @staticmethod
    def parallel(a, config, dims, compiling):
        from torchtitan.config import ParallelismConfig, TrainingConfig
        from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
        from torchtitan.models.llama3 import parallelize_llama
        recompute = {"none": None, "selective": SelectiveAC.Config(), "full": FullAC.Config()}[a.recompute]
        with torch.device("meta"):
            model = config.build()
        return parallelize_llama(
            model, parallel_dims=dims, training=TrainingConfig(local_batch_size=a.batch, seq_len=a.tokens),
            parallelism=ParallelismConfig(spmd_backend=dims.spmd_backend, fsdp_reshard_after_forward=a.reshard),
            compile_config=compiling, ac_config=recompute, dump_folder="")

    def extra(self):
        """Flex attention's mask, which Trainer makes anew from the positions of each batch."""
        if self.positions is None:
            return {}
        return {"positions": self.positions, "attention_masks": self.model.get_attention_masks(positions=self.positions)}

    def forward_backward(self, ids, labels, labels_of_all, extra):
        logits_or_last = self.model(ids, **extra)
        # The chunks' backward passes of the head are not the step's last: FSDP keeps the order in which it gathers ahead.
        self.model.set_is_last_backward(not self.chunked)
        loss, _ = self.loss(logits_or_last, labels, labels_of_all)
        del logits_or_last
        self.model.set_is_last_backward(True)
        loss.backward()
        return loss

    def step(self):
        from torchtitan.distributed.utils import clip_grad_norm_
        self.optimizers.zero_grad(set_to_none=self.new_gradients)
        loss = self.pass_once(self.ids, self.labels, self.labels_of_all, self.extra())
        clip_grad_norm_(list(self.model.parameters()), 1.0, foreach=True)
        self.optimizers.step()
        return loss


class Clock:
    """Times between marks: on the GPU they come from events, so that no step waits for the host."""

    def __init__(self, device):
        self.device, self.marks = device, []

    def mark(self):
        if self.device.type == "cpu":
            self.marks.append(time.perf_counter())
            return
        self.marks.append(torch.cuda.Event(enable_timing=True))
        self.marks[-1].record()

    def times(self):
        pairs = list(zip(self.marks, self.marks[1:]))
        if self.device.type == "cpu":
            return [(b - a) * 1e3 for a, b in pairs]
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in pairs]


def version(package):
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)


def measure(a, recipe, dims, world, device):
    start = time.perf_counter()
    peer = Peer(a, recipe, dims, device)
    for _ in range(a.warmup):
        loss = peer.step()
    loss.item()  # waits
    warm = time.perf_counter() - start
    gc.collect(1)
    clock = Clock(device)
    clock.mark()
    for _ in range(a.steps):
        loss = peer.step()
        clock.mark()
    times = clock.times()
    loss = loss.detach().clone()
    torch.distributed.all_reduce(loss)  # each rank's is its sum over the number of all ranks' labels
    ms = statistics.median(times)
    rate = a.batch * a.tokens / ms * 1e3
    world.print({
        "peer": "torchtitan", "torchtitan": version("torchtitan"), "torch": torch.__version__, "gpus": world.size,
        "torchao": None if recipe == "none" else version("torchao"),
        "model": f"llama3 {a.model}, {len(peer.model.layers)} layers",
        "batch": a.batch, "tokens": a.tokens, "precision": "bf16" + ("" if recipe == "none" else f" float8 {recipe}"),
        "attention": a.attention, "loss_in": a.loss, "recompute": a.recompute, "reshard": a.reshard,
        "cuda_graphs": a.cuda_graphs, "compiled": not a.no_compile, "ms_per_step": round(ms, 3),
        "ms_range": [round(min(times), 3), round(max(times), 3)],
        "tokens_per_second": round(rate * world.size, 1), "tokens_per_second_per_gpu": round(rate, 1),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2) if device.type == "cuda" else None,
        "seconds_until_warm": round(warm, 1), "loss": round(loss.item(), 4)})


def forget():
    """The memory and the compiled code of a recipe, before the next one."""
    gc.collect()
    torch._dynamo.reset()
    torch._inductor.config.emulate_precision_casts = False  # the converter sets it for rowwise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def main():
    a = arguments()
    stand_in(a.device)
    from compiled_gpt import World
    from torchtitan.config import DebugConfig
    from torchtitan.distributed import ParallelDims, utils
    world = World(a.device)
    device = torch.device(a.device, torch.cuda.current_device()) if a.device == "cuda" else torch.device("cpu")
    dims = ParallelDims(dp_replicate=1, dp_shard=world.size, cp=1, tp=1, pp=1, ep=1, world_size=world.size,
                        spmd_backend="partial_dtensor")
    utils.set_spmd_backend(dims.spmd_backend)
    dims.build_mesh()
    torch.autograd.set_multithreading_enabled(False)  # as torchtitan's init_distributed does
    gc.disable()  # torchtitan collects every 50 steps
    if a.loss == "chunked":
        shard_head_alone()
    if a.attention == "flex":
        make_masks_as_before()
    for recipe in a.float8:
        utils.set_determinism(dims, device, DebugConfig(seed=1), distinct_seed_mesh_dims=["pp"])
        measure(a, recipe, dims, world, device)
        forget()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
