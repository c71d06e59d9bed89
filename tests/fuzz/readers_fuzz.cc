// Fuzz targets for everything that reads what people write: the first byte of the input chooses the
// reader, the rest is its input. Nothing may crash, hang or grow without bound; whether the input
// is good is not asked here.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/expand/substitute.h"
#include "engine/python/python_regex.h"
#include "engine/read/document.h"
#include "engine/tags/tags.h"

namespace {

void read(const char* name, const std::string& text) {
  tally::Sources sources;
  tally::Diagnostics diagnostics;
  tally::ReadOptions options;
  options.stored["other.yaml"] = "name: other\nparameter: {name: q, _: 1}\n";
  const tally::Document document =
      tally::read_document_text(name, text, options, sources, diagnostics);
  // What could be read can be written, and every message can show its line.
  const std::string xml = tally::document_to_xml(document);
  for (const tally::Diagnostic& each : diagnostics.all()) {
    if (each.mark.known()) (void)sources.line(each.mark);
  }
}

void read_tags(const std::string& text) {
  bool value = false;
  (void)static_cast<bool>(tally::evaluate_tags(text, {"a", "b"}, &value));
  (void)tally::tag_names(text);
}

void substitute(const std::string& text) {
  const std::string own = "$b ${c} $$a";
  const std::string plain = "1";
  const tally::Lookup lookup = [&](std::string_view name) -> const std::string* {
    if (name == "a") return &own;
    if (name == "b" || name == "c") return &plain;
    return nullptr;
  };
  (void)tally::substitute(text, lookup);
  (void)tally::dollar_names(text);
}

void translate(const std::string& text) {
  std::unique_ptr<tally::Regex> regex;
  if (!tally::Regex::compile(text, false, &regex)) return;
  size_t found = 0;
  (void)static_cast<bool>(
      regex->find_all("value=12 \xc3\xa9\nloss: 1.5e3\n\n", false,
                      [&](std::string_view match, int) { found += match.size(); }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'y':
      read("fuzz.yaml", text);
      break;
    case 'x':
      read("fuzz.xml", text);
      break;
    case 't':
      read_tags(text);
      break;
    case 's':
      substitute(text);
      break;
    case 'p':
      translate(text);
      break;
    default:
      break;
  }
  return 0;
}
