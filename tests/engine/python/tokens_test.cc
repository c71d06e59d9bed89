#include "engine/python/tokens.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace tally;

namespace {

// Kinds as letters, with the texts of what is no space.
std::string shown(std::string_view expression) {
  std::string kinds, all;
  for (const PythonToken& token : tokens_of(expression)) {
    all += token.text;
    if (token.kind == TokenKind::space) continue;
    kinds += kinds.empty() ? "" : " ";
    kinds += "swantd."[static_cast<int>(token.kind)];
    kinds += std::string(token.text);
  }
  CHECK(all == expression);
  return kinds;
}

}  // namespace

TEST_CASE("tokens are those of Python, and $names") {
  CHECK(shown("x.real<=1e-3") == "wx .. areal .<= n1e-3");
  CHECK(shown("a  . b") == "wa .. ab");
  CHECK(shown("-.5+2**n") == ".- n.5 .+ n2 .** wn");
  CHECK(shown("'a\\'b' == n") == "t'a\\'b' .== wn");
  CHECK(shown("\"it's\" + rb'\\n' + f\"{n}\"") == "t\"it's\" .+ trb'\\n' .+ tf\"{ wn t}\"");
  CHECK(shown("'''a'b''' or ''") == "t'''a'b''' wor t''");
  CHECK(shown("if'a'") == "wif t'a'");
  CHECK(shown("$n*${m}+$") == "d$n .* d${m} .+ .$");
  CHECK(shown("${m") == ".$ .{ wm");
  CHECK(shown("größe==\"x") == "wgröße .== t\"x");
  CHECK(shown("[a,b][0]") == ".[ wa ., wb .] .[ n0 .]");
  CHECK(shown("a # 'b(\nc#") == "wa wc");
  CHECK(shown("") == "");
}

TEST_CASE("what stands in braces of f'...' are tokens of their own") {
  CHECK(shown("f'a{n}b{m+1:>{w}}' == k") == "tf'a{ wn t}b{ wm .+ n1 t:>{ ww t}}' .== wk");
  CHECK(shown("f'{{n}}'") == "tf'{{n}}'");
  CHECK(shown("rF\"{x['a:}']!r}\"") == "trF\"{ wx .[ t'a:}' .] t!r}\"");
  CHECK(shown("f'{n!=1}{(a:=2)}'") == "tf'{ wn .!= n1 t}{ .( wa .: .= n2 .) t}'");
  CHECK(shown("f'\\N{DASH}{n:.2f}'") == "tf'\\N{DASH}{ wn t:.2f}'");
  CHECK(shown("f'{n") == "tf'{ wn");
  CHECK(shown("'{n}'") == "t'{n}'");
  CHECK(names_read("f'{a} {$b}' + '{c}'") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("shifts are no comparisons") {
  CHECK(shown("1<<n>>2<m>=3") == "n1 .<< wn .>> n2 .< wm .>= n3");
}

TEST_CASE("names that an expression reads: those in quotes only behind a dollar") {
  CHECK(names_read("n > 1 and '$m' == 'k' or x.real") == std::vector<std::string>{"n", "m", "x"});
  CHECK(names_read("'it\\'s' == n") == std::vector<std::string>{"n"});
  CHECK(names_read("'${a}$b c' + $d") == std::vector<std::string>{"a", "b", "d"});
  CHECK(names_read("r'n'").empty());
  CHECK(names_read("f(v, rel_tol = w, key=len)") == std::vector<std::string>{"f", "v", "w", "len"});
  CHECK(names_read("f(a == b, c<=d)") == std::vector<std::string>{"f", "a", "b", "c", "d"});
  CHECK(names_read("f'{n=}{m = !r}{k=:.1f}'") == std::vector<std::string>{"n", "m", "k"});
  CHECK(names_read("f'{f(k=1)}{f(k=\"a\")}'") == std::vector<std::string>{"f", "f"});
}

TEST_CASE("functions of Python's that are called, and names of its own, are none that it reads") {
  using Names = std::vector<std::string>;
  CHECK(names_read("max(v, 1) if max > 2 else len (w)") == Names{"v", "max", "w"});
  CHECK(names_read("sum(e for e in [v])") == Names{"v"});
  CHECK(names_read("sum(e for e in [v]) + e") == Names{"v", "e"});
  CHECK(names_read("sum(e for e in [e, v])") == Names{"e", "v"});
  CHECK(names_read("[e + f for e in a for f in e if f > b]") == Names{"a", "b"});
  CHECK(names_read("{k: w for k, w in zip(a, [k])}") == Names{"a", "k"});
  CHECK(names_read("max([v, 1], key=lambda e: e), e") == Names{"v", "e"});
  CHECK(names_read("(lambda a, *b, c=d: a + c + f(b))(a)") == Names{"d", "f", "a"});
  CHECK(names_read("f(lambda: a, a)") == Names{"f", "a", "a"});
  CHECK(names_read("(e := v) + e") == Names{"v"});
  CHECK(names_read("sum($e for e in [v])") == Names{"e", "v"});
  CHECK(names_read("f'{sum(e for e in v)}{e}'") == Names{"v", "e"});
  CHECK(names_read("for in lambda") == Names{});
}

TEST_CASE("an expression that gives names of its own") {
  for (const char* own :
       {"lambda a: a", "any(i == n for i in m)", "(\ni\nfor i in m)", "(y := n) > 1"})
    CHECK(makes_names(tokens_of(own)));
  for (const char* none : {"n > 1", "'lambda for' == n", "f'{n:=10}'", "m[1:]", "{n: 1}", "f(n=1)"})
    CHECK_FALSE(makes_names(tokens_of(none)));
}

TEST_CASE("a $name, and what is in quotes") {
  CHECK(dollar_name("$n") == "n");
  CHECK(dollar_name("${n}") == "n");
  for (const char* other : {"", "$", "n", "$n ", "${n", "${}", "$n$m", "$n}"}) {
    CAPTURE(other);
    CHECK(dollar_name(other).empty());
  }
  bool plain = false;
  CHECK(inside_quotes("'a b'", &plain) == "a b");
  CHECK(plain);
  CHECK(inside_quotes("''", &plain).empty());
  CHECK(plain);
  for (const char* other : {"'a", "r'a'", "'''a'''", "'a\\n'", "a", "'"}) {
    CAPTURE(other);
    inside_quotes(other, &plain);
    CHECK_FALSE(plain);
  }
}
