// The command line of `tally-train convert`.
#include <fmt/format.h>

#include "src/convert/convert.h"
#include "src/data/commands/data_command.h"

namespace tally::train {
namespace {

constexpr const char* kWhat =
    "Makes a folder for --load-hf from a checkpoint of PyTorch or TensorFlow.";

void declare(CLI::App* app, ConvertOptions* options) {
  app->add_option("--input", options->input,
                  "PyTorch: a .bin, .pt or .pth file, pytorch_model.bin.index.json, or their "
                  "folder; TensorFlow: the prefix of BERT's checkpoint, its .index file or its "
                  "folder")
      ->required();
  app->add_option("--output", options->output, "The folder to make; it may not exist yet")
      ->required();
  app->add_option("--config", options->config,
                  "The model's config.json or bert_config.json, where it is not beside the input");
}

}  // namespace

CommandSpec convert_spec() {
  ConvertOptions options;
  CLI::App app(kWhat);
  declare(&app, &options);
  return command_spec(app, {"convert"});
}

int convert_main(int argc, char** argv, const ModelFacts& facts) {
  CLI::App app(kWhat, "tally-train convert");
  ConvertOptions options;
  declare(&app, &options);
  return run_data_command(&app, argc, argv, [&] {
    const ConvertSummary summary = convert(options, facts);
    fmt::print("{}: {} tensors, {} bytes\n", options.output, summary.tensors, summary.bytes);
    if (summary.left_out.empty()) return;
    fmt::print("{} tensors that are not weights were left out, among them '{}'\n",
               summary.left_out.size(), summary.left_out.front());
  });
}

}  // namespace tally::train
