// A JSON file as a whole, with the locations of its values for messages.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace tally::train {

// A value of a JSON file, and where it is.
class JsonNode {
 public:
  // The value of a whole file.
  JsonNode(const nlohmann::json& value, const std::string& path) : JsonNode(value, path, ": ") {}

  const nlohmann::json& value() const { return value_; }
  // "FILE: data[3].paragraphs[0]"
  const std::string& location() const { return location_; }
  bool has(const char* key) const { return value_.is_object() && value_.contains(key); }

  // Each throws std::runtime_error with one sentence where this value or the one of `key` is
  // missing or of another type.
  JsonNode list(const char* key) const;
  JsonNode object(const char* key) const;
  JsonNode at(size_t index) const;  // an item of a list
  const std::string& text() const;
  const std::string& text(const char* key) const;
  int64_t number() const;  // an integer
  int64_t number(const char* key) const;
  std::string name(const char* key) const;  // a text, or an integer as text
  bool flag(const char* key) const;

 private:
  JsonNode(const nlohmann::json& value, std::string location, const char* joint)
      : value_(value), location_(std::move(location)), joint_(joint) {}
  // The value of a key, of any type. `what`: what it should be.
  JsonNode member(const char* key, const char* what) const;
  std::runtime_error wrong_type(const char* what) const;

  const nlohmann::json& value_;
  std::string location_;
  const char* joint_;  // between the location and a key
};

// A value of a file and its location, as "FILE" or "FILE:LINE".
struct LocatedJson {
  nlohmann::json value;
  std::string location;
};

// Parses a file of one value, or one that has an object on each line. Throws std::runtime_error
// with one sentence, "FILE:LINE:COLUMN: why" where it is not JSON. Strings are valid UTF-8.
std::vector<LocatedJson> read_json_file(const std::string& path);

}  // namespace tally::train
