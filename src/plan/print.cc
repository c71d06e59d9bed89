// The plan as text and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "src/config/json_values.h"
#include "src/measure/flops.h"
#include "src/model/architecture.h"
#include "src/plan/megatron.h"
#include "src/plan/plan.h"
#include "src/plan/units.h"

namespace tally::train {
namespace {

using nlohmann::json;

std::string bytes_text(double bytes) {
  if (bytes >= gib) return fmt::format("{:.2f} GiB", bytes / gib);
  return fmt::format("{:.2f} MiB", bytes / mib);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return fmt::format("{:.1f} ms", seconds * 1e3);
}

std::string count_text(double n) {
  if (n >= 1e9) return fmt::format("{:.2f} billion", n / 1e9);
  return fmt::format("{:.1f} million", n / 1e6);
}

std::string header_text(const Plan& p) {
  const Config& c = p.config;
  const ModelConfig& m = c.model;
  const PlanLayout& l = p.layout;
  std::string out = fmt::format(
      "  model      {}: {} layers, hidden {}, {} heads, {} parameters, {}\n", m.kind(), m.layers,
      m.hidden, m.heads, count_text(static_cast<double>(parameter_count(m))), precision_text(c));
  out += fmt::format("  layout     {} GPU{} = tensor {} x pipeline {} x data {}", l.gpus(),
                     l.gpus() == 1 ? "" : "s", l.tensor, l.pipeline, l.data);
  if (l.chunks > 1) out += fmt::format(", {} virtual stages in each stage", l.chunks);
  if (l.sequence) out += ", sequence parallel";
  if (l.zero > 0) out += fmt::format(", ZeRO {}", l.zero);
  out += fmt::format(", recompute {}\n", recompute_name(c.recompute));
  out += fmt::format("  batch      {} = micro batch {} x {} micro batches x data {}; sequence {}\n",
                     c.global_batch, c.micro_batch, l.micro_batches, l.data, c.sequence);
  return out;
}

// A table with columns as wide as their widest cell; the first row is the header.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < widths.size(); ++i)
      out += fmt::format("| {:>{}} ", rows[r][i], widths[i]);
    out += "|\n";
    if (r > 0) continue;
    for (const size_t width : widths) out += "|" + std::string(width + 1, '-') + ":";
    out += "|\n";
  }
  return out;
}

std::string stage_rows(const Plan& p) {
  const double unit = p.worst().total() < gib ? mib : gib;
  const auto b = [&](double bytes) { return fmt::format("{:.2f}", bytes / unit); };
  std::vector<std::vector<std::string>> rows{
      {"stage", "layers", "in flight", "parameters", "weights", "gradients", "optimizer",
       "activations", "shared", "logits", "workspace", "messages", "context", "total"}};
  for (const StageMemory& s : p.stages)
    rows.push_back({fmt::format("{}", s.stage), fmt::format("{}", s.layers),
                    fmt::format("{}", s.sets), count_text(s.parameters), b(s.weights),
                    b(s.gradients), b(s.optimizer), b(s.activations), b(s.shared), b(s.logits),
                    b(s.workspace), b(s.messages), b(s.context), b(s.total())});
  return fmt::format("\nmemory of each GPU, {}\n{}", unit == gib ? "GiB" : "MiB", table_text(rows));
}

std::string memory_text(const Plan& p) {
  const StageMemory& worst = p.worst();
  std::string out = stage_rows(p);
  out += fmt::format("  worst      stage {}: {}\n", worst.stage, bytes_text(worst.total()));
  // The formula is that of GPT's blocks.
  if (p.config.model.block.gated()) return out;
  out += fmt::format("  megatron   would keep {} of activations in stage 0 for the same layout\n",
                     bytes_text(megatron_activation_bytes(p.config)));
  return out;
}

std::string schedule_text(const Plan& p) {
  const PlanLayout& l = p.layout;
  std::string out;
  if (l.pipeline > 1)
    out += fmt::format(
        "\npipeline\n  bubble     {:.1f} % of the time of its work (p - 1 over {}m), so that each "
        "stage works {:.1f} % of the step\n",
        100 * bubble_over_work(l), l.chunks > 1 ? "v " : "", 100 * pipeline_efficiency(l));
  if (l.gpus() == 1) return out;
  const auto most = [&](double StepVolumes::*part) {
    double bytes = 0;
    for (const StepVolumes& v : p.volumes) bytes = std::max(bytes, v.*part);
    return bytes_text(bytes);
  };
  out += "\nsent by a GPU in each step, of the stage that sends most\n";
  if (l.tensor > 1) out += fmt::format("  tensor     {}\n", most(&StepVolumes::tensor));
  if (l.pipeline > 1) out += fmt::format("  pipeline   {}\n", most(&StepVolumes::pipeline));
  if (l.data > 1) out += fmt::format("  data       {}\n", most(&StepVolumes::data));
  if (l.pipeline > 1 && p.config.model.tied_embeddings)
    out += fmt::format("  embedding  {}\n", most(&StepVolumes::embedding));
  return out;
}

double tokens_of_step(const Config& c) {
  return static_cast<double>(c.global_batch) * static_cast<double>(c.sequence);
}

std::string time_text(const Plan& p) {
  if (!p.time) return "";
  const StepTime& t = *p.time;
  const double rate = tokens_of_step(p.config) / t.seconds();
  const double flops = rate * model_flops_per_token(p.config.model, p.config.sequence) /
                       static_cast<double>(p.layout.gpus());
  std::string out = fmt::format(
      "\ntime of a step, if GEMMs reach {:.0f} % of the peak rate\n"
      "  step       {}: {:.0f} tokens/s, {:.0f} TFLOP/s in each GPU\n"
      "  layers     {}\n",
      100 * p.efficiency, seconds_text(t.seconds()), rate, flops / 1e12, seconds_text(t.work));
  out += fmt::format("  head       {}\n", seconds_text(t.ends));
  if (t.bubble > 0) out += fmt::format("  bubble     {}\n", seconds_text(t.bubble));
  if (t.messages > 0) out += fmt::format("  messages   {}\n", seconds_text(t.messages));
  if (t.data > 0) out += fmt::format("  data       {}\n", seconds_text(t.data));
  return out + fmt::format("  optimizer  {}\n", seconds_text(t.optimizer));
}

std::string smallest_text(const Plan& p) {
  const SmallestRun& s = *p.smallest;
  if (s.nodes == 0)
    return fmt::format("  smallest   no number of nodes up to 4096 holds it, with {} GPUs each\n",
                       p.config.plan.gpus_per_node);
  return fmt::format(
      "  smallest   {} node{} of {} GPUs: tensor {} x pipeline {} x data {}, {} on each GPU\n",
      s.nodes, s.nodes == 1 ? "" : "s", p.config.plan.gpus_per_node, s.tensor, s.pipeline, s.data,
      bytes_text(s.bytes));
}

std::string verdict_text(const Plan& p) {
  if (!p.kind) return "\ngive --plan-device to see whether it fits, and the time of a step\n";
  const double total = p.worst().total(), memory = p.kind->memory;
  const std::string verdict =
      p.fits()
          ? fmt::format("yes: {} of {} stay free", bytes_text(memory - total), bytes_text(memory))
          : fmt::format("no: {} are needed, and it has {}", bytes_text(total), bytes_text(memory));
  const std::string changes =
      p.changes.empty() ? "" : fmt::format("  try        {}\n", fmt::join(p.changes, ", or "));
  return fmt::format("\non {}\n  fits       {}\n", p.kind->name, verdict) + changes +
         smallest_text(p);
}

json stage_json(const StageMemory& s, const StepVolumes& v) {
  return {{"stage", s.stage},
          {"layers", s.layers},
          {"sets_in_flight", s.sets},
          {"parameters", s.parameters},
          {"bytes",
           {{"weights", s.weights},
            {"gradients", s.gradients},
            {"optimizer", s.optimizer},
            {"activations", s.activations},
            {"shared", s.shared},
            {"logits", s.logits},
            {"workspace", s.workspace},
            {"messages", s.messages},
            {"context", s.context},
            {"allocated", s.allocated()},
            {"total", s.total()}}},
          {"sent",
           {{"tensor", v.tensor},
            {"pipeline", v.pipeline},
            {"data", v.data},
            {"embedding", v.embedding}}}};
}

json time_json(const Plan& p) {
  const StepTime& t = *p.time;
  return {{"seconds", t.seconds()},
          {"layers", t.work},
          {"bubble", t.bubble},
          {"messages", t.messages},
          {"head", t.ends},
          {"data", t.data},
          {"optimizer", t.optimizer},
          {"gemm_efficiency", p.efficiency},
          {"tokens_per_second", tokens_of_step(p.config) / t.seconds()}};
}

}  // namespace

std::string plan_text(const Plan& p) {
  return "plan\n" + header_text(p) + memory_text(p) + schedule_text(p) + time_text(p) +
         verdict_text(p);
}

std::string plan_json(const Plan& p) {
  const PlanLayout& l = p.layout;
  json out = {{"parameters", parameter_count(p.config.model)},
              {"layout",
               {{"gpus", l.gpus()},
                {"tensor", l.tensor},
                {"pipeline", l.pipeline},
                {"data", l.data},
                {"virtual_stages", l.chunks},
                {"micro_batches", l.micro_batches},
                {"zero", l.zero},
                {"sequence_parallel", l.sequence},
                {"recompute", recompute_name(p.config.recompute)},
                {"precision", precision_name(p.config.precision)},
                {"fp8_format", fp8_format_name(p.config.fp8.format)},
                {"fp8_recipe", text_or_null(p.config.fp8.recipe_name())}}},
              {"bubble", bubble_over_work(l)},
              {"worst_stage", p.worst().stage},
              {"megatron_activation_bytes",
               p.config.model.block.gated() ? json() : json(megatron_activation_bytes(p.config))}};
  for (size_t i = 0; i < p.stages.size(); ++i)
    out["stages"].push_back(stage_json(p.stages[i], p.volumes[i]));
  if (p.time) out["time"] = time_json(p);
  if (!p.kind) return out.dump(1) + "\n";
  const SmallestRun& s = *p.smallest;
  out["device"] = {{"name", p.kind->name}, {"bytes", p.kind->memory}};
  out["fits"] = p.fits();
  out["changes"] = p.changes;
  out["smallest"] = {{"nodes", s.nodes},
                     {"tensor", s.tensor},
                     {"pipeline", s.pipeline},
                     {"data", s.data},
                     {"bytes", s.bytes}};
  return out.dump(1) + "\n";
}

}  // namespace tally::train
