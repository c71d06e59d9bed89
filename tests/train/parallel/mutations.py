#!/usr/bin/env python3
"""Plants the classic mistakes of parallel training, one at a time; layout_ranks or another test is to find each.

  mutations.py SOURCE BUILD [NAME...]

BUILD is a directory that CMake made for Ninja, in which the tests are built. Neither directory is changed: the faulty
file is compiled elsewhere and linked in front of the library that has it. The last
run is in bench/history/mutations.md.
"""
import os
import re
import subprocess
import sys
import tempfile

# name: test and its arguments, file, then what stands there and what is put in its place, once or more
LAYOUTS = ("layout_ranks", "sockets 4 first")
LAYOUTS_8 = ("layout_ranks", "sockets 8 first")
MUTATIONS = {
    "sequence parallelism: gradients of norms and biases are not added up": (
        *LAYOUTS, "src/train/step/forward_backward.cc",
        "  for (const Tensor& gradients : of_shards_) mesh_.tensor().all_reduce(stream_, gradients);\n", ""),
    "sequence parallelism: K's and V's bias gradients come from one process's tokens": (
        *LAYOUTS, "src/model/transformer.cc", "fusions.qkv_bias && !context_.tensor.sequence &&",
        "fusions.qkv_bias &&"),
    "FP8: each process scales its part of a matrix by itself": (
        *LAYOUTS, "src/nn/fp8.cc", "return needed() && divided && tensor.divides();",
        "return false;"),
    "FP8: a weight's gradient reads its input at the scale of the first process's part": (
        *LAYOUTS, "src/nn/linear.cc", "gathered ? in.amaxes : in.amaxes.rows(0, 1)", "in.amaxes.rows(0, 1)"),
    "FP8: an evaluation reads the weights of an earlier step": (
        "train_gpt_test", "", "src/model/transformer.cc", "context_.fp8.casts_weights = true;",
        "context_.fp8.casts_weights = false;"),
    "the norms of heads are not added up over the processes that divide the heads": (
        *LAYOUTS, "src/model/architecture.cc", "part.sequence || (row.of_heads && part.shards > 1)", "part.sequence"),
    "a row-parallel layer adds its bias on every process": (
        *LAYOUTS, "src/nn/linear.cc",
        "c.tensor.shard() == 0 ? bias.value : Tensor()", "bias.value"),
    "the positions are added on every process": (
        *LAYOUTS, "src/nn/embedding.cc",
        "c.tensor.shard() == 0 ? position_.value : Tensor()", "position_.value"),
    "the tied embedding's two gradients are not added up": (
        *LAYOUTS, "src/train/step/forward_backward.cc",
        "  for (const Tensor& gradient : of_ends_) mesh_.embedding()->all_reduce(stream_, gradient);\n", ""),
    "the tied embedding's gradients are added up before those of the replicas": (
        *LAYOUTS_8, "src/train/step/forward_backward.cc",
        "  reducer_.finish();\n", "",
        "mesh_.embedding()->all_reduce(stream_, gradient);",
        "mesh_.embedding()->all_reduce(stream_, gradient);\n  reducer_.finish();"),
    "undivided parameters count in the norm on every process": (
        *LAYOUTS, "src/model/architecture.cc",
        "w.copy = row.division == Division::whole && part.shard > 0;", "w.copy = false;"),
    "the tied embedding counts in the norm twice": (
        *LAYOUTS, "src/model/architecture.cc", "weights.back().copy = true;", ""),
    "the norm is that of this process's part": (
        *LAYOUTS, "src/optim/optimizer.cc",
        "parts_->all_reduce(stream_, Tensor(&state_->gradient_squares, DType::f64, {1}));", ""),
    "the loss is divided by the micro batches twice": (
        *LAYOUTS, "src/train/step/forward_backward.cc",
        ": 1.0 / (static_cast<double>(config_.micro_batches_at(consumed))",
        ": 1.0 / static_cast<double>(config_.micro_batches_at(consumed)) / "
        "(static_cast<double>(config_.micro_batches_at(consumed))"),
    "losses over the labels of the global batch are divided by the micro batches, too": (
        *LAYOUTS, "src/train/step/forward_backward.cc", "divides ? 1", "false ? 1"),
    "a replica divides by the labels that it has counted itself": (
        *LAYOUTS, "src/train/step/forward_backward.cc",
        "  mesh_.samples().all_reduce(stream_, Tensor(state_->counted, DType::f64, {2}));\n", ""),
    "the labels of a step are those of its first micro batch": (
        *LAYOUTS, "src/train/step/forward_backward.cc", "loader->counted(micro_batches)", "loader->counted(1)"),
    "labels are counted on the first stage": (
        *LAYOUTS, "src/train/step/forward_backward.cc", "&& pipeline_.has_head())", "&& mesh_.position().stage == 0)"),
    "the second head is divided by the labels of the first": (
        *LAYOUTS, "src/model/transformer.cc", "a.pass.counted + head}", "a.pass.counted}"),
    "padding takes part in the softmax of a shard": (
        *LAYOUTS, "src/model/gpt.cc",
        "std::clamp<int64_t>(config_.vocabulary - first_column, 0, columns)",
        "part_.shards > 1 ? columns : config_.vocabulary"),
    "every process counts the loss": (
        *LAYOUTS, "src/nn/lm_head.cc", "if (c.tensor.shard() == 0) add_losses", "add_losses"),
    "attention's shards take neighbouring rows of Q, K and V": (
        *LAYOUTS, "src/model/architecture.cc", ".sections = {q, kv, kv},", ".sections = {},"),
    "the input's gradient of a column-parallel layer is not added up": (
        *LAYOUTS, "src/nn/linear.cc", "  c.tensor.start_reduce(c.compute, dx);\n", ""),
    "a pipeline holds a micro batch too few": (
        *LAYOUTS, "src/train/step/pipeline.cc",
        "k < micro_batches_in_flight(schedule, chunk)",
        "k < std::max<int64_t>(1, micro_batches_in_flight(schedule, chunk) - 1)"),
    "a gradient between stages is not under the branch's dropout": (
        *LAYOUTS, "src/nn/projection.cc",
        "apply_dropout(c.compute, flow.residual, {dropout,", "apply_dropout(c.compute, flow.residual, {0 * dropout,"),
    "gradients of all weights are added up over the same ranks": (
        "communicator_ranks", "sockets 3", "src/optim/gradient_reducer.cc",
        "run.group->all_reduce(", "groups_.front()->all_reduce("),
    "ZeRO: the norm is that of this process's shares": (
        "layout_ranks", "sockets 3 first", "src/optim/optimizer.cc",
        "parts_->all_reduce(stream_, Tensor(&state_->gradient_squares, DType::f64, {1}));", ""),
    "ZeRO: the norm is added up over one replica": (
        "layout_ranks", "sockets 3 first", "src/optim/optimizer.cc", "sharding ? mesh->world() : mesh->model()", "mesh->model()"),
    "ZeRO: all of a share decays": (
        "layout_ranks", "sockets 3 first", "src/optim/optimizer.cc",
        "table_.decayed_elements() - range.first, 0, range.count()", "table_.decayed_elements(), 0, range.count()"),
    "ZeRO: every share uses the first one's moments": (
        "layout_ranks", "sockets 3 first", "src/optim/optimizer.cc", "    at += r.own.count();\n", "    at += 0 * r.own.count();\n"),
    "LAMB: the norm of a share is taken for the parameter's": (
        "layout_ranks", "sockets 3 first", "src/optim/lamb.cc", "sharers_.push_back(&sharding->replicas());", ";"),
    "LAMB: the norm of a shard is taken for the parameter's": (
        "layout_ranks", "sockets 2 first", "src/optim/lamb.cc", "sharers_.push_back(&mesh->tensor());", ";"),
    "a shard has neighbouring rows of gates and ups": (
        "layout_ranks", "sockets 2 first", "src/model/architecture.cc", ".sections = {f, b.gated() ? f : 0},", ".sections = {},"),
    "a shard has as many heads of K and V as of Q": (
        "layout_ranks", "sockets 2 first", "src/model/transformer.cc",
        "s.attention.kv_heads = config.model.kv_heads() / part.shards;", "s.attention.kv_heads = s.attention.heads;"),
    "ZeRO: the weights are not gathered before they are read": (
        "layout_ranks", "sockets 3 first", "src/optim/optimizer.cc", "  if (gathers_later_) gather_->all();\n", ""),
    "ZeRO: a block is computed before its weights have come": (
        "layout_ranks", "sockets 3 first", "src/model/transformer.cc",
        "    if (a.batch.first) weights_are_needed(blocks_[l]);\n", ""),
    "ZeRO: what is in no bucket is not gathered": (
        "layout_ranks", "sockets 3 first", "src/optim/weight_gather.cc",
        "    if (r.parameters.empty()) replicas.all_gather(stream_, part(r), whole(r));\n", ""),
    "ZeRO: every replica owns the first share": (
        "layout_ranks", "sockets 3 first", "src/optim/sharding.cc", "whole.first + replicas_.rank() * share", "whole.first"),
    "ZeRO: gradients in no bucket are not reduced": (
        "layout_ranks", "sockets 3 first", "src/optim/gradient_reducer.cc",
        "      part.group->reduce_scatter(stream_, r->gradient, r->own_gradient);\n", ""),
    "ZeRO 2: only the last micro batch's gradients count": (
        "layout_ranks", "sockets 3 first", "src/optim/gradient_reducer.cc", "if (!first_)", "if (false)"),
    "ZeRO 2: the last step's gradients count": (
        "layout_ranks", "sockets 3 first", "src/optim/gradient_reducer.cc", "if (!first_)", "if (true)"),
    "ZeRO 2: a block's gradients are added to another's": (
        "layout_ranks", "sockets 3 first", "src/nn/linear.cc", " && !weight.overwrite;", ";"),
    "ZeRO 2: only the last backward pass is reduced": (
        "layout_ranks", "sockets 3 first", "src/optim/gradient_reducer.cc", "(last || every_pass_)", "last"),
    "ZeRO: the tied embedding has no range of its own": (
        "layout_ranks", "sockets 4 first", "src/optim/sharding.cc", "alone_.count() > 0 && rest.first", "false && rest.first"),
    "ZeRO 2: all blocks share one block's gradients": (
        "train_optim_test", "", "src/nn/parameters.cc", "blocks.size() % 2", "blocks.size() % 1"),
    "ZeRO: shares of less than a vector": (
        "train_optim_test", "", "src/optim/sharding.cc", "int64_t{16} * replicas", "int64_t{1} * replicas"),
    "stages number the layers of their dropout from 0": (
        *LAYOUTS, "src/model/transformer.cc", "config_.layernorm_epsilon, form, layer,", "config_.layernorm_epsilon, form, l,"),
}


def run(command, directory):
    return subprocess.run(command, cwd=directory, shell=True, capture_output=True, text=True, check=False,
                          env=os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"})


def faulty_text(source, path, edits):
    """The file's text with the fault; None where the lines are not there."""
    with open(f"{source}/{path}", encoding="utf-8") as file:
        text = file.read()
    for old, new in zip(edits[::2], edits[1::2]):
        if text.count(old) != 1:
            return None
        text = text.replace(old, new)
    return text


def try_one(source, build, name, folder):
    target, arguments, path, *edits = MUTATIONS[name]
    text = faulty_text(source, path, edits)
    if text is None:
        return "the line is not there (or not once): mend the list"
    commands = run(f"ninja -t commands {target}", build).stdout.strip().split("\n")
    faulty, made, program = f"{folder}/faulty.cc", f"{folder}/faulty.o", f"{folder}/{target}"
    with open(faulty, "w", encoding="utf-8") as file:
        file.write(text)
    compile_it = next(line for line in commands if line.endswith(f"/{path}"))
    compile_it = re.sub(r" -MD .*", f" -O0 -Wno-error -o {made} -c {faulty}", compile_it)
    link = re.sub(r" -o (\S*/)?" + target + " ", f" {made} -o {program} ", commands[-1])
    for command in (compile_it, link):
        done = run(command, build)
        if done.returncode != 0:
            return "does not compile: " + (re.findall(r".*error.*", done.stderr) or ["?"])[0]
    done = run(f"timeout 600 {program} {arguments}", build)
    if done.returncode == 0:
        return "NOT FOUND"
    said = [line for line in (done.stdout + done.stderr).split("\n") if "layouts of" not in line and line.strip()]
    return "found: " + (said[0].replace("layout_ranks: ", "") if said else f"exit code {done.returncode}")


def main():
    source, build = sys.argv[1:3]
    names = sys.argv[3:] or list(MUTATIONS)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            verdict = try_one(source, build, name, folder)
            bad += not verdict.startswith("found")
            print(f"  {name}\n    {verdict[:140]}", flush=True)
    print(f"{len(names) - bad} of {len(names)} faults found")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
