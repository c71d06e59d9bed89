// The places of values in the user's files, and the errors and warnings about them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// A place in a source file. Line and column count from 1, columns in Unicode code points; line 0
// means "no place" (a command-line value, say). `file` indexes Sources.
struct Mark {
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t column = 0;
  bool known() const { return line != 0; }
  bool operator==(const Mark&) const = default;
};

// A string that the user wrote, and where it is written.
struct Text {
  std::string value;
  Mark mark;
};

// The files read so far, by number. Their text is kept so that an error can show the line
// concerned. Append-only: marks stay valid for the life of the object. Not thread-safe.
class Sources {
 public:
  // Adds a file's text and returns its number. `name` is the path as the user wrote it.
  uint32_t add(std::string name, std::string text);
  const std::string& name(uint32_t file) const { return files_[file].name; }
  const std::string& text(uint32_t file) const { return files_[file].text; }
  // The line that `mark` is on, without its newline. Empty when the mark is unknown.
  std::string_view line(const Mark& mark) const;
  size_t size() const { return files_.size(); }

 private:
  struct File {
    std::string name;
    std::string text;
  };
  std::vector<File> files_;
};

// Errors and warnings in the user's input. They are collected so that all problems of a file are
// reported together.
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
std::string position_text(const Sources& sources, const Mark& mark);

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

  // Prints one block per diagnostic, sorted by file and line. Identical blocks are printed once.
  // Warnings of one kind are printed as the first one with the count of the others:
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

// Errors and warnings as other programs read them: editors, CI systems, code scanners.

// A diagnostic with the name of its file.
struct Problem {
  std::string file;  // empty: it belongs to no file
  uint32_t line = 0, column = 0;
  Severity severity = Severity::error;
  std::string message, hint;
  bool operator==(const Problem&) const = default;
};

// error, warning, or else `note`.
const char* severity_word(Severity severity, const char* note = "note");

void add_problems(const Diagnostics& diagnostics, const Sources& sources,
                  std::vector<Problem>* problems);

// The problems, each once.
//   gcc     FILE:LINE:COLUMN: error: MESSAGE; HINT
//   github  ::error file=FILE,line=LINE,col=COLUMN::MESSAGE, a command of GitHub's workflows
std::string problems_for_gcc(const std::vector<Problem>& problems);
std::string problems_for_github(const std::vector<Problem>& problems);

}  // namespace tally
