#include "engine/base/variables.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <map>

#include "engine/base/text.h"

using namespace tally;

namespace {

const std::map<std::string, std::string> kVariables = {{"HOME", "/home/me"},
                                                       {"PATH", "/bin:/usr/bin"},
                                                       {"ODD", "a\"b$HOME`c\\d *"},
                                                       {"LINES2", "x\ny"}};

// Texts and their values: `$NAME` and `${NAME}` are variables, `$$` and any other `$` are dollars.
const std::pair<std::string, std::string> kCases[] = {
    {"", ""},
    {"plain", "plain"},
    {"$HOME", "/home/me"},
    {"${HOME}", "/home/me"},
    {"/opt/bin:$PATH", "/opt/bin:/bin:/usr/bin"},
    {"a${HOME}b$HOME/c", "a/home/meb/home/me/c"},
    {"[$NO_SUCH] [${NO_SUCH}]", "[] []"},
    {"$HOMEX|${HOME}X", "|/home/meX"},
    {"$$", "$"},
    {"$$HOME", "$HOME"},
    {"$${HOME}", "${HOME}"},
    {"$$$HOME", "$/home/me"},
    {"$$$$", "$$"},
    {"5$", "5$"},
    {"5$ and $\t$\n$", "5$ and $\t$\n$"},
    {"$1 $? $# $@ $* $- $! $0", "$1 $? $# $@ $* $- $! $0"},
    {"$(echo no)", "$(echo no)"},
    {"`echo no`", "`echo no`"},
    {"$((1 + 1))", "$((1 + 1))"},
    {"${HOME:-x} ${HOME", "${HOME:-x} ${HOME"},
    {"${} ${1} ${#HOME} ${!HOME}", "${} ${1} ${#HOME} ${!HOME}"},
    {"it's \"quoted\"", "it's \"quoted\""},
    {"a\\b\\$HOME\\\\", "a\\b\\/home/me\\\\"},
    {"one\ntwo $HOME\n", "one\ntwo /home/me\n"},
    {"* ~ ? [a] {a,b} ; & | < > # !", "* ~ ? [a] {a,b} ; & | < > # !"},
    {"$ODD", "a\"b$HOME`c\\d *"},
    {"$LINES2", "x\ny"},
    {"\xc3\xa4$HOME\xc3\xa4", "\xc3\xa4/home/me\xc3\xa4"},
    // The shell's own, which the environment does not have.
    {"[$UID] [$RANDOM] [$BASH_VERSION] [$IFS] [$LINENO] [$PPID] [$OPTIND]", "[] [] [] [] [] [] []"},
};

std::string printed_by(const std::string& shell, const std::string& word) {
  std::string command = "env -i";
  for (const auto& [name, value] : kVariables) command += " " + shell_quote(name + "=" + value);
  command += " PATH=/bin:/usr/bin " + shell + " -c " + shell_quote("printf %s " + word) + " 2>&1";
  FILE* out = popen(command.c_str(), "r");
  std::string text;
  for (int c = fgetc(out); c != EOF; c = fgetc(out)) text += static_cast<char>(c);
  pclose(out);
  return text;
}

}  // namespace

TEST_CASE("variables in the texts of env") {
  const Variables variables = [](const std::string& name) -> std::optional<std::string> {
    const auto found = kVariables.find(name);
    if (found == kVariables.end()) return std::nullopt;
    return found->second;
  };
  for (const auto& [text, value] : kCases) {
    CAPTURE(text);
    CHECK(expand_variables(text, variables) == value);
  }
}

TEST_CASE("variables in the texts of env: every shell makes the same of the word") {
  for (const char* shell : {"/bin/sh", "/bin/dash", "/bin/bash"}) {
    if (access(shell, X_OK) != 0) continue;
    for (const char* options : {"", " -u", " -e"}) {
      for (const auto& [text, value] : kCases) {
        CAPTURE(shell);
        CAPTURE(options);
        CAPTURE(text);
        CHECK(printed_by(std::string(shell) + options, variables_for_shell(text)) == value);
      }
    }
  }
}

TEST_CASE("which texts name a variable") {
  for (const char* text : {"$A", "x${A_1}", "$$$A"}) CHECK(!variables_in(text).empty());
  for (const char* text : {"", "a", "$$A", "$(A)", "${A:-}", "$1", "$"})
    CHECK(variables_in(text).empty());
}

TEST_CASE("variables packed into one text and back") {
  const std::vector<std::pair<std::string, std::string>> variables = {
      {"A", "1"}, {"B", "x=y\nC=2 $HOME $$ \\n \\"}, {"D", ""}};
  const std::string packed = pack_variables(variables);
  CHECK(packed.find('$') == std::string::npos);
  CHECK(unpack_variables(packed) == variables);
  CHECK(pack_variables({}).empty());
  CHECK(unpack_variables("").empty());
}
