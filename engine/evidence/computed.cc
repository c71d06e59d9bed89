#include "engine/evidence/computed.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/text.h"

namespace tally {
namespace {

using Json = nlohmann::ordered_json;

Json json_of_evaluation(const std::string& expression, const Evaluation& one) {
  Json json = {{"expression", expression},
               {one.ok ? "value" : "error", one.ok ? one.value : one.error}};
  if (one.unknown) json["unknown"] = true;
  return json;
}

const char* name_of_mode(Mode mode) {
  return mode == Mode::python ? "python" : mode == Mode::perl ? "perl" : "shell";
}

Evaluation evaluation_of(const Json& json) {
  Evaluation one;
  one.ok = json.contains("value");
  if (one.ok) one.value = json.at("value").get<std::string>();
  if (!one.ok) one.error = json.at("error").get<std::string>();
  one.unknown = json.value("unknown", false);
  return one;
}

}  // namespace

class ComputedValues::Recorder final : public Evaluator {
 public:
  Recorder(Evaluator& real, ComputedValues* values) : real_(real), values_(*values) {}
  std::vector<Evaluation> evaluate(Mode mode,
                                   const std::vector<std::string>& expressions) override {
    std::vector<Evaluation> found = real_.evaluate(mode, expressions);
    for (size_t i = 0; i < found.size(); ++i) values_.values_[{mode, expressions[i]}] = found[i];
    return found;
  }
  std::vector<Evaluation> parse(const std::vector<std::string>& expressions) override {
    std::vector<Evaluation> found = real_.parse(expressions);
    for (size_t i = 0; i < found.size(); ++i) values_.parsed_[expressions[i]] = found[i];
    return found;
  }
  bool computes() const override { return real_.computes(); }

 private:
  Evaluator& real_;
  ComputedValues& values_;
};

class ComputedValues::Reader final : public Evaluator {
 public:
  explicit Reader(ComputedValues* values) : values_(*values) {}
  std::vector<Evaluation> evaluate(Mode mode,
                                   const std::vector<std::string>& expressions) override {
    std::vector<Evaluation> found;
    for (const std::string& expression : expressions) {
      const auto known = values_.values_.find({mode, expression});
      found.push_back(known != values_.values_.end() ? known->second : lacking(expression));
    }
    return found;
  }
  std::vector<Evaluation> parse(const std::vector<std::string>& expressions) override {
    std::vector<Evaluation> found;
    for (const std::string& expression : expressions) {
      const auto known = values_.parsed_.find(expression);
      found.push_back(known != values_.parsed_.end() ? known->second : lacking(expression));
    }
    return found;
  }

 private:
  Evaluation lacking(const std::string& expression) {
    values_.missing_.push_back(expression);
    Evaluation none;
    none.error = "the archive has no value of it";
    return none;
  }

  ComputedValues& values_;
};

std::unique_ptr<Evaluator> ComputedValues::recording(Evaluator& real) {
  return std::make_unique<Recorder>(real, this);
}

std::unique_ptr<Evaluator> ComputedValues::remembered() {
  return std::make_unique<Reader>(this);
}

std::string ComputedValues::json() const {
  Json all = {{"values", Json::array()}, {"parsed", Json::array()}};
  for (const auto& [key, one] : values_) {
    Json json = json_of_evaluation(key.second, one);
    json["by"] = name_of_mode(key.first);
    all["values"].push_back(std::move(json));
  }
  for (const auto& [expression, one] : parsed_)
    all["parsed"].push_back(json_of_evaluation(expression, one));
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status ComputedValues::read(const std::string& json) {
  try {
    const Json all = Json::parse(json);
    for (const Json& one : all.at("values")) {
      const std::string by = one.at("by").get<std::string>();
      for (const Mode mode : {Mode::python, Mode::perl, Mode::shell})
        if (by == name_of_mode(mode))
          values_[{mode, one.at("expression").get<std::string>()}] = evaluation_of(one);
    }
    for (const Json& one : all.at("parsed"))
      parsed_[one.at("expression").get<std::string>()] = evaluation_of(one);
  } catch (const Json::exception& error) {
    return Status::error(std::string("cannot be read: ") + error.what());
  }
  return Status::ok();
}

std::string ComputedValues::difference(Evaluator& real) const {
  for (const Mode mode : {Mode::python, Mode::perl, Mode::shell}) {
    std::vector<std::string> expressions;
    for (const auto& [key, one] : values_)
      if (key.first == mode) expressions.push_back(key.second);
    if (expressions.empty()) continue;
    const std::vector<Evaluation> now = real.evaluate(mode, expressions);
    for (size_t i = 0; i < now.size(); ++i) {
      const Evaluation& then = values_.at({mode, expressions[i]});
      if (now[i].ok == then.ok && now[i].value == then.value) continue;
      return fmt::format("'{}' is {}, and computed here {}", one_line(expressions[i]),
                         then.ok ? then.value : then.error,
                         now[i].ok ? now[i].value : now[i].error);
    }
  }
  return {};
}

}  // namespace tally
