// Secrets are left out of an archive: each byte of one becomes an asterisk, so that all else stays
// where it was.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// The secrets that are known: values of variables and parameters that names_secret() names.
class Redaction {
 public:
  // "NAME=value". Values of fewer than four characters, and words and short numbers that stand for
  // many other things, are not sought: asterisks in their places would be those of measured values.
  void add(const std::string& entry);
  // Adds the secrets that this text itself names, as `env` prints them and scripts set them:
  // NAME=value with a name in capital letters. A value that is a number, a path or made of another
  // variable is none.
  void add_assignments(std::string_view text);

  // Whether something of it was replaced. `member`: where the text is.
  bool clean(const std::string& member, std::string* text);
  // Whether it shows a secret in a form that clean() does not know: the text is to be left out.
  bool still_shows(const std::string& member, const std::string& text);

  // The places by member and name.
  using Found = std::map<std::string, std::map<std::string, int>>;
  const Found& found() const { return found_; }

 private:
  struct Form {
    std::string text, name;
  };
  void add_forms(const std::string& name, const std::string& value);
  void fill(const std::string& member, const std::string& name, size_t from, size_t to,
            std::string* text);
  void clean_quoted(const std::string& member, std::string* text);

  std::vector<std::string> entries_;
  std::set<std::string> known_;
  std::vector<Form> forms_;  // the longest first
  Found found_;
  int places_ = 0;
};

}  // namespace tally
