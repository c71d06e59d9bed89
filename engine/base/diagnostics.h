// Errors and warnings in the user's input. They are collected so that all problems of a file are
// reported together.
#pragma once

#include <string>
#include <vector>

#include "engine/base/mark.h"

namespace tally {

enum class Severity { note, warning, error };

struct Diagnostic {
  Severity severity;
  Mark mark;
  std::string message;  // what happened, with the name concerned
  std::string hint;     // what to do: "did you mean 'separator'?"; may be empty
  // Warnings with the same kind are printed once, followed by the names and places of the others.
  // An empty kind means that the warning belongs to no kind.
  std::string kind, name;
  bool alone = false;  // a note that does not belong to the diagnostic before it
};

// The kind that a warning shares with others, and the name that the warning is about.
struct WarningKind {
  std::string kind;
  std::string name;
};

// "bench.yaml:12:5", or "tally" if there is no place.
std::string place(const Sources& sources, const Mark& mark);

// Collects diagnostics. Every stage gets a Diagnostics& and only adds to it. The caller prints
// once, and stops if has_errors().
class Diagnostics {
 public:
  void error(const Mark& mark, std::string message, std::string hint = {});
  void warning(const Mark& mark, std::string message, std::string hint = {}, WarningKind kind = {});
  // A note belongs to the error or warning before it and is printed right after it.
  void note(const Mark& mark, std::string message, std::string hint = {});
  // Adds a note that stands alone. It stays a note under --strict.
  void remark(const Mark& mark, std::string message, std::string hint = {}, WarningKind kind = {});
  bool has_errors() const { return errors_ > 0; }
  size_t error_count() const { return errors_; }
  size_t warning_count() const { return warnings_; }
  const std::vector<Diagnostic>& all() const { return all_; }
  // Turns every warning into an error, including warnings added later (--strict).
  void make_warnings_errors();

  // Adds all of another object's diagnostics.
  void append(const Diagnostics& other);

  // Prints one block per diagnostic, sorted by file and line. Identical blocks are printed once. Of
  // the warnings of one kind only the first is printed, with the count of the others:
  //   bench.yaml:12:5: error: unknown key 'seperator' in parameter 'bind'
  //       seperator: ""
  //       ^~~~~~~~~
  //   hint: did you mean 'separator'?
  // A diagnostic without a place prints as "tally: error: ...". With `color` the text is one for
  // print_styled().
  std::string format(const Sources& sources, bool color = false) const;

 private:
  void add(Severity severity, const Mark& mark, std::string message, std::string hint,
           WarningKind kind = {});
  std::vector<Diagnostic> all_;
  size_t errors_ = 0;
  size_t warnings_ = 0;
  bool strict_ = false;
};

}  // namespace tally
