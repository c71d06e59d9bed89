#include "src/convert/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "src/checkpoint/model_config_file.h"
#include "src/checkpoint/safetensors.h"
#include "src/checkpoint/side_files.h"
#include "src/convert/bert_names.h"
#include "src/convert/source_weights.h"
#include "src/convert/tensor_bundle.h"
#include "src/convert/torch_file.h"
#include "src/data/text/json_fault.h"
#include "src/data/text/output_file.h"
#include "src/data/text/text_input.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kBin = "pytorch_model.bin";
constexpr const char* kBinIndex = "pytorch_model.bin.index.json";

struct Input {
  bool tensorflow = false;
  std::string path;  // the file, or the prefix
  fs::path folder() const {
    const fs::path parent = fs::path(path).parent_path();
    return parent.empty() ? fs::path(".") : parent;
  }
};

Input in_folder(const std::string& folder) {
  for (const char* name : {kBin, kBinIndex})
    if (fs::exists(fs::path(folder) / name)) return {false, (fs::path(folder) / name).string()};
  if (fs::exists(fs::path(folder) / "model.safetensors"))
    throw BadInput(
        fmt::format("--input: '{}' has a model.safetensors: give the folder to --load-hf as it is, "
                    "or name the file to convert",
                    folder));
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".index")
      found.push_back((entry.path().parent_path() / entry.path().stem()).string());
  if (found.size() == 1) return {true, found.front()};
  throw BadInput(fmt::format(
      "--input: '{}' has neither {} nor {}, and {} checkpoints of TensorFlow (.index): name a file",
      folder, kBin, kBinIndex, found.empty() ? "no" : "several"));
}

Input find_input(const std::string& given) {
  if (fs::is_directory(given)) return in_folder(given);
  if (given.ends_with(".index")) return {true, given.substr(0, given.size() - 6)};
  if (!fs::exists(given) && fs::exists(given + ".index")) return {true, given};
  if (!fs::exists(given))
    throw BadInput(fmt::format("--input: neither '{}' nor '{}.index' exists", given, given));
  static const std::regex shard(R"(.*-\d{5}-of-(?!00001\.)\d{5}\.\w+)");
  if (std::regex_match(given, shard))
    throw BadInput(
        fmt::format("--input: '{}' is a part of a model: name the .index.json of all parts, or "
                    "their folder",
                    given));
  return {false, given};
}

void read_tensorflow(const std::string& prefix, SourceWeights* weights) {
  read_tensor_bundle(prefix, is_bert_variable, weights);
  for (SourceTensor& tensor : weights->tensors) {
    const auto [name, transposed] = bert_tensor_name(tensor.name);
    if (name.empty() || (transposed && tensor.shape.size() != 2))
      throw std::runtime_error(
          fmt::format("'{}.index': variable '{}' is not one of the original BERT: only BERT's "
                      "checkpoints of TensorFlow are converted",
                      prefix, tensor.name));
    tensor.name = name;
    if (!transposed) continue;
    std::swap(tensor.shape[0], tensor.shape[1]);
    std::swap(tensor.strides[0], tensor.strides[1]);
  }
  if (weights->tensors.empty())
    throw std::runtime_error(
        fmt::format("'{}.index' has no variables of the original BERT (bert/..., cls/...): only "
                    "BERT's checkpoints of TensorFlow are converted, not TensorFlow 2's objects",
                    prefix));
}

// A name without the parts that PyTorch's wrappers (DistributedDataParallel, torch.compile, FSDP,
// activation checkpointing, Lightning's strategies) add to it.
std::string without_wrappers(const std::string& name) {
  std::string out;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size() - 1) + 1;
    const std::string part = name.substr(begin, end - begin);
    if (part != "module." && part != "_orig_mod." && part != "_forward_module." &&
        part != "_fsdp_wrapped_module." && part != "_checkpoint_wrapped_module.")
      out += part;
    begin = end;
  }
  return out;
}

void rename_torch(SourceWeights* weights) {
  for (SourceTensor& tensor : weights->tensors)
    tensor.name = with_new_norm_names(without_wrappers(tensor.name));
}

// The first part of a name, after which the name of a weight of the model follows; end: there is
// none.
size_t model_name_begins(const std::string& name, const TensorNames& known) {
  for (size_t begin = 0; begin < name.size();) {
    if (known.count(name.substr(begin)) > 0) return begin;
    const size_t dot = name.find('.', begin);
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  return name.size();
}

// A module that has the model as an attribute, as Lightning's, puts the attribute's name before all
// names of the model.
void remove_prefix(const std::string& path, const TensorNames& known, SourceWeights* weights) {
  std::map<std::string, size_t> counts;  // names with each prefix
  std::map<std::string, std::string>
      sources;  // names without the model's prefix: the tensor's name
  for (const SourceTensor& tensor : weights->tensors) {
    const size_t begin = model_name_begins(tensor.name, known);
    if (begin == tensor.name.size()) continue;
    ++counts[tensor.name.substr(0, begin)];
    const auto [same, added] = sources.emplace(known.at(tensor.name.substr(begin)), tensor.name);
    if (!added)
      throw std::runtime_error(
          fmt::format("'{}' has the weight '{}' of the model more than once, as '{}' and as '{}': "
                      "save the state_dict() of one model alone",
                      path, same->first, same->second, tensor.name));
  }
  if (counts.empty())
    throw std::runtime_error(fmt::format(
        "none of the {} tensors of '{}' has the name of a weight of the model that its "
        "configuration describes, as '{}': the first is '{}'",
        weights->tensors.size(), path, known.begin()->second, weights->tensors[0].name));
  const std::string prefix =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  for (const auto& [other, count] : counts)
    if (!other.empty() && other != prefix)
      throw std::runtime_error(
          fmt::format("'{}' has weights of the model under '{}' and under '{}': save the "
                      "state_dict() of one model alone",
                      path, prefix, other));
  for (SourceTensor& tensor : weights->tensors)
    if (tensor.name.rfind(prefix, 0) == 0) tensor.name.erase(0, prefix.size());
}

void check_names(const std::string& path, const SourceWeights& weights) {
  std::set<std::string> names;
  for (const SourceTensor& tensor : weights.tensors)
    if (!names.insert(tensor.name).second)
      throw std::runtime_error(
          fmt::format("'{}' has the tensor '{}' more than once", path, tensor.name));
}

// Turns errors in what the user gave into bad input.
template <typename Work>
void reading(const Work& work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    throw BadInput(error.what());
  }
}

void read_weights(const Input& input, SourceWeights* weights) {
  if (input.tensorflow) {
    read_tensorflow(input.path, weights);
  } else {
    input.path.ends_with(".json") ? read_torch_index(input.path, weights)
                                  : read_torch_file(input.path, weights);
    rename_torch(weights);
  }
  if (weights->tensors.empty())
    throw std::runtime_error(fmt::format("'{}' has no tensors of weights", input.path));
}

fs::path find_config(const ConvertOptions& options, const Input& input) {
  if (!options.config.empty()) {
    if (!fs::is_regular_file(options.config))
      throw BadInput(fmt::format("--config: there is no file '{}'", options.config));
    return options.config;
  }
  for (const char* name : {"config.json", "bert_config.json"})
    if (fs::exists(input.folder() / name)) return input.folder() / name;
  throw BadInput(
      fmt::format("there is neither a config.json nor a bert_config.json in '{}': name the "
                  "model's configuration with --config",
                  input.folder().string()));
}

// Whether a tensor has this name, after any prefix.
bool is_named(const SourceTensor& tensor, const std::string& name) {
  return tensor.name == name || tensor.name.ends_with("." + name);
}

// The ends of the names of transformers' models with a head, and a tensor of each head.
constexpr std::pair<const char*, const char*> kTasks[] = {
    {"qa_outputs.weight", "ForQuestionAnswering"},
    {"classifier.weight", "ForSequenceClassification"},
    {"cls.seq_relationship.weight", "ForPreTraining"},
    {"cls.predictions.bias", "ForMaskedLM"},
    {"vocab_projector.bias", "ForMaskedLM"}};

bool has_tensor(const SourceWeights& weights, const char* name) {
  return std::any_of(weights.tensors.begin(), weights.tensors.end(),
                     [&](const auto& tensor) { return is_named(tensor, name); });
}

// The model of transformers, by the head that there is. `kind`: "Bert" or "DistilBert".
std::string encoder_architecture(const std::string& kind, const SourceWeights& weights) {
  for (const auto& [tensor, task] : kTasks)
    if (has_tensor(weights, tensor)) return kind + task;
  return kind + "Model";
}

// The original BERT's bert_config.json says neither what it describes nor which heads there are.
Json complete_config(const fs::path& path, const SourceWeights& weights) {
  const MappedFile file(path.string());
  Json json;
  try {
    json = Json::parse(file.data(), file.data() + file.size());
  } catch (const Json::exception& error) {
    throw BadInput(fmt::format("'{}' is not valid JSON: {}", path.string(), json_fault(error)));
  }
  if (!json.is_object()) throw BadInput(fmt::format("'{}' is not a JSON object", path.string()));
  if (!json.contains("model_type") && has_tensor(weights, "bert.embeddings.word_embeddings.weight"))
    json["model_type"] = "bert";
  const Json type = json.value("model_type", Json());
  if ((type == "bert" || type == "distilbert") && json.value("architectures", Json()).is_null())
    json["architectures"] = {encoder_architecture(type == "bert" ? "Bert" : "DistilBert", weights)};
  for (const SourceTensor& tensor : weights.tensors)
    if (is_named(tensor, "classifier.weight") && !tensor.shape.empty() &&
        !json.contains("id2label") && !json.contains("num_labels"))
      json["num_labels"] = tensor.shape[0];
  return json;
}

// Throws where the configuration is that of a model with a head, and parameters of it are missing.
// BertModel, for example, has none.
void check_head(const Json& config, const std::vector<std::string>& missing) {
  const Json names = config.value("architectures", Json());
  if (missing.empty() || !names.is_array() || names.empty() || !names[0].is_string()) return;
  const auto name = names[0].get<std::string>();
  for (const auto& [tensor, task] : kTasks)
    if (name.ends_with(task))
      throw std::runtime_error(
          fmt::format("'{}' is missing, which {} has: let \"architectures\" in the configuration "
                      "name the model that these are the weights of",
                      missing.front(), name));
}

void write_file(const fs::path& path, const char* bytes, size_t size) {
  OutputFile file(path.string());
  file.append(bytes, size);
  file.sync_and_keep();
}

// A folder that is renamed when it is complete, and removed otherwise. A file in it says that it is
// a conversion's, and its lock that the conversion is alive.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(fs::path(path).lexically_normal()) {
    if (path.empty()) throw BadInput("--output: is empty: name the folder to make");
    if (!path_.has_filename()) path_ = path_.parent_path();
    if (fs::exists(path_))
      throw BadInput(
          fmt::format("--output: '{}' already exists: remove it, or name another folder", path));
    work_ = path_.string() + ".tmp";
    if (fs::exists(work_) && !fs::exists(work_ / kMark))
      throw BadInput(
          fmt::format("--output: '{}' already exists, and is needed for the conversion: remove "
                      "it, or name another folder",
                      work_.string()));
    std::error_code error;
    fs::create_directories(work_, error);
    if (error)
      throw std::runtime_error(
          fmt::format("the directory '{}' cannot be made: {}", work_.string(), error.message()));
    mark_.emplace((work_ / kMark).string(), true);
    for (const auto& entry : fs::directory_iterator(work_))  // left by a conversion that was killed
      if (entry.path().filename() != kMark) fs::remove_all(entry.path());
  }
  ~NewFolder() {
    if (!mark_) return;
    std::error_code ignored;
    fs::remove_all(work_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  const fs::path& work() const { return work_; }
  void keep() {
    fs::remove(work_ / kMark);
    rename_durably(work_.string(), path_.string());
    mark_.reset();
  }

 private:
  static constexpr const char* kMark = ".tally-train-convert";
  fs::path path_, work_;
  std::optional<OutputFile> mark_;  // empty: nothing to remove
};

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  for (const char* name : tokenizer_files) {
    if (!fs::is_regular_file(from / name)) continue;
    const MappedFile file((from / name).string());
    write_file(to / name, file.data(), file.size());
  }
}

}  // namespace

ConvertSummary convert(const ConvertOptions& options, const ModelFacts& facts) {
  const Input input = find_input(options.input);
  const fs::path config = find_config(options, input);
  SourceWeights weights;
  reading([&] { read_weights(input, &weights); });
  const Json json = complete_config(config, weights);
  const std::string text = json.dump(2) + "\n";

  NewFolder folder(options.output);
  write_file(folder.work() / "config.json", text.data(), text.size());
  ModelConfig model_config;
  try {
    model_config = read_model_config((folder.work() / "config.json").string());
  } catch (const std::runtime_error& error) {
    throw BadInput(fmt::format("the configuration '{}' is not one that tally-train reads: {}",
                               config.string(), error.what()));
  }
  reading([&] {
    remove_prefix(input.path, facts.tensor_names(model_config), &weights);
    check_names(input.path, weights);
  });
  std::vector<TensorSource> tensors;
  for (const SourceTensor& tensor : weights.tensors)
    tensors.push_back(
        {tensor.name, tensor.dtype, tensor.shape, [&tensor](char* out) { tensor.copy_to(out); }});
  const fs::path model = folder.work() / "model.safetensors";
  write_safetensors(model.string(), std::move(tensors));
  for (const auto& file : weights.files) file->check();
  copy_tokenizer(input.folder(), folder.work());
  try {
    check_head(json, facts.check(model.string(), model_config));
  } catch (const std::runtime_error& error) {
    throw BadInput(fmt::format("the weights in '{}' are not those of '{}': {}", input.path,
                               config.string(), error.what()));
  }
  const ConvertSummary summary{weights.tensors.size(), fs::file_size(model), weights.left_out};
  folder.keep();
  return summary;
}

}  // namespace tally::train
