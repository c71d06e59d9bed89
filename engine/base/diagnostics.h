// Errors and warnings in the user's input, collected so that all of a file's are reported at once.
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
  // Warnings of one kind ("" is none) are printed once, with the names and places of the others.
  std::string kind, name;
  bool alone = false;  // a note that belongs to nothing before it
};

// What a warning has in common with others, and the name that it is about.
struct WarningKind {
  std::string kind;
  std::string name;
};

// "bench.yaml:12:5", and "tally" where there is no place.
std::string place(const Sources& sources, const Mark& mark);

// Collects diagnostics. Data flows one way: every stage gets a Diagnostics& and adds to it; the
// caller prints once and stops if has_errors().
class Diagnostics {
 public:
  void error(const Mark& mark, std::string message, std::string hint = {});
  void warning(const Mark& mark, std::string message, std::string hint = {}, WarningKind kind = {});
  // A note belongs to the error or warning before it and is printed right after it.
  void note(const Mark& mark, std::string message, std::string hint = {});
  // A note of its own, which stays one under --strict.
  void remark(const Mark& mark, std::string message, std::string hint = {}, WarningKind kind = {});
  bool has_errors() const { return errors_ > 0; }
  size_t error_count() const { return errors_; }
  size_t warning_count() const { return warnings_; }
  const std::vector<Diagnostic>& all() const { return all_; }
  // Turns every warning so far and to come into an error (--strict).
  void make_warnings_errors();

  // Adds another's, as they are.
  void append(const Diagnostics& other);

  // One diagnostic a block, sorted by file and line, each printed once, of warnings of one kind the
  // first with the count of the others:
  //   bench.yaml:12:5: error: unknown key 'seperator' in parameter 'bind'
  //       seperator: ""
  //       ^~~~~~~~~
  //   hint: did you mean 'separator'?
  // A diagnostic without a place prints as "tally: error: ...".
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
