#include "engine/evidence/redaction.h"

#include <algorithm>
#include <cctype>

#include "engine/base/secrets.h"
#include "engine/base/text.h"

namespace tally {
namespace {

constexpr size_t kShortest = 4;

bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789.+-eE") == std::string_view::npos;
}

// In an archive they are everywhere, and no secret.
bool stands_for_much(const std::string& value) {
  constexpr size_t kShortNumber = 8;
  for (const char* word : {"true", "false", "none", "null", "auto"})
    if (to_lower(value) == word) return true;
  return is_number(value) && value.size() < kShortNumber;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

bool is_capital(char c) {
  return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

// The word behind an equals sign, without the quotes around it.
std::string_view word_at(std::string_view text, size_t at) {
  const char quote = at < text.size() && (text[at] == '\'' || text[at] == '"') ? text[at] : '\0';
  if (quote != '\0') ++at;
  size_t end = at;
  while (end < text.size() && text[end] != '\n' && text[end] != '\0' &&
         (quote != '\0'
              ? text[end] != quote
              : std::string_view(" \t\r;&|<>\"'").find(text[end]) == std::string_view::npos))
    ++end;
  return text.substr(at, end - at);
}

}  // namespace

void Redaction::add_forms(const std::string& name, const std::string& value) {
  if (value.size() < kShortest || !known_.insert(value).second) return;
  const std::string xml =
      replaced(replaced(replaced(value, "&", "&amp;"), "<", "&lt;"), ">", "&gt;");
  for (std::string form :
       {value, replaced(value, "\n", "\\n"), xml, replaced(xml, "\"", "&quot;")}) {
    const bool is_new = std::ranges::none_of(forms_, [&](const Form& f) { return f.text == form; });
    if (is_new) forms_.push_back({std::move(form), name});
  }
  std::ranges::stable_sort(
      forms_, [](const Form& a, const Form& b) { return a.text.size() > b.text.size(); });
}

void Redaction::add(const std::string& entry) {
  const size_t equals = entry.find('=');
  if (equals == std::string::npos) return;
  const std::string name = entry.substr(0, equals), value = entry.substr(equals + 1);
  if (!names_secret(name) || stands_for_much(value)) return;
  entries_.push_back(entry);
  add_forms(name, value);
  // A key of several lines is also printed line by line.
  constexpr size_t kLongLine = 16;
  if (value.find('\n') == std::string::npos) return;
  for (const std::string& line : split_strip(value, "\n"))
    if (line.size() >= kLongLine) add_forms(name, line);
}

void Redaction::add_assignments(std::string_view text) {
  for (size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
    size_t from = at;
    while (from > 0 && is_capital(text[from - 1])) --from;
    const std::string_view name = text.substr(from, at - from);
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) continue;
    if (from > 0 && std::isalpha(static_cast<unsigned char>(text[from - 1])) != 0) continue;
    if (!names_secret(name)) continue;
    const std::string_view value = word_at(text, at + 1);
    if (value.size() < kShortest || is_number(value) || value.front() == '/' ||
        value.find_first_of("$`*(") != std::string_view::npos)
      continue;
    add(std::string(name) + "=" + std::string(value));
  }
}

bool Redaction::clean(const std::string& member, std::string* text) {
  const int before = places_;
  for (const Form& form : forms_) {
    for (size_t at = text->find(form.text); at != std::string::npos;
         at = text->find(form.text, at + form.text.size()))
      fill(member, form.name, at, at + form.text.size(), text);
  }
  if (!forms_.empty()) clean_quoted(member, text);
  return places_ != before;
}

void Redaction::fill(const std::string& member, const std::string& name, size_t from, size_t to,
                     std::string* text) {
  std::fill(text->begin() + static_cast<std::ptrdiff_t>(from),
            text->begin() + static_cast<std::ptrdiff_t>(to), '*');
  ++found_[member][name];
  ++places_;
}

// Shells, Python, JSON and JUBE's substitution add these characters to a value, double them or take
// them away.
void Redaction::clean_quoted(const std::string& member, std::string* text) {
  const auto quotes = [](char c) {
    return std::string_view("\\\"'$").find(c) != std::string::npos;
  };
  std::string bare;
  std::vector<size_t> places;  // of the bare characters in the text
  for (size_t i = 0; i < text->size(); ++i) {
    if (quotes((*text)[i])) continue;
    bare += (*text)[i];
    places.push_back(i);
  }
  for (const Form& form : forms_) {
    std::string secret = form.text;
    std::erase_if(secret, quotes);
    if (secret.size() < kShortest) continue;
    for (size_t at = bare.find(secret); at != std::string::npos;
         at = bare.find(secret, at + secret.size())) {
      fill(member, form.name, places[at], places[at + secret.size() - 1] + 1, text);
      std::fill_n(bare.begin() + static_cast<std::ptrdiff_t>(at), secret.size(), '*');
    }
  }
}

bool Redaction::still_shows(const std::string& member, const std::string& text) {
  if (!shows_secret(text, entries_)) return false;
  for (const std::string& entry : entries_)
    if (shows_secret(text, {entry})) ++found_[member][entry.substr(0, entry.find('='))];
  return true;
}

}  // namespace tally
