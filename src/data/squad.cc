// SQuAD's files.
#include "src/data/squad.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "src/data/json_document.h"
#include "src/data/unicode_text.h"

namespace tally::train {
namespace {

bool is_blank(char32_t c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0x202F;
}

std::shared_ptr<const SquadParagraph> make_paragraph(const std::string& context) {
  auto paragraph = std::make_shared<SquadParagraph>();
  paragraph->context = context;
  std::u32string word;
  for (const char32_t c : to_characters(context)) {
    if (!is_blank(c)) {
      word.push_back(c);
    } else if (!word.empty()) {
      paragraph->words.push_back(to_utf8(word));
      word.clear();
    }
    paragraph->word_of.push_back(static_cast<int32_t>(paragraph->words.size()) -
                                 (word.empty() ? 1 : 0));
  }
  if (!word.empty()) paragraph->words.push_back(to_utf8(word));
  return paragraph;
}

template <typename Iterator>
std::string join(Iterator begin, Iterator end) {
  std::string text;
  for (Iterator at = begin; at != end; ++at) {
    if (at != begin) text += ' ';
    text += *at;
  }
  return text;
}

class SquadReader {
 public:
  SquadReader(const std::string& path, bool training, bool version_2)
      : path_(path), training_(training), version_2_(version_2) {}

  SquadFile run() {
    const nlohmann::json json = read_json_file(path_);
    const JsonNode articles = JsonNode(json, path_).list("data");
    for (size_t a = 0; a < articles.value().size(); ++a) {
      const JsonNode paragraphs = articles.at(a).list("paragraphs");
      for (size_t p = 0; p < paragraphs.value().size(); ++p) read_paragraph(paragraphs.at(p));
    }
    if (file_.examples.empty())
      throw std::runtime_error(
          fmt::format("{} has no questions{}", path_,
                      file_.left_out > 0 ? " whose answers are where it says" : ""));
    return std::move(file_);
  }

 private:
  void read_paragraph(const JsonNode& node) {
    const auto paragraph = make_paragraph(node.text("context"));
    const JsonNode questions = node.list("qas");
    for (size_t q = 0; q < questions.value().size(); ++q) read_question(questions.at(q), paragraph);
  }

  void read_question(const JsonNode& node, std::shared_ptr<const SquadParagraph> paragraph) {
    SquadExample example;
    example.paragraph = std::move(paragraph);
    example.id = node.text("id");
    example.question = node.text("question");
    if (version_2_ && (training_ || node.has("is_impossible")))
      example.is_impossible = node.flag("is_impossible");
    if (!ids_.insert(example.id).second)
      throw std::runtime_error(
          fmt::format("{} has the id \"{}\" of an earlier question", node.place(), example.id));
    const auto length = static_cast<int64_t>(example.paragraph->word_of.size());
    const JsonNode answers = node.list("answers");
    for (size_t i = 0; i < answers.value().size(); ++i) {
      const JsonNode answer = answers.at(i);
      example.answers.push_back({answer.text("text"), answer.number("answer_start")});
      const SquadAnswer& last = example.answers.back();
      const auto size = static_cast<int64_t>(to_characters(last.text).size());
      if (last.start < 0 || last.start > length || size > length - last.start)
        throw std::runtime_error(
            fmt::format("{} lies outside the context: characters {} to {} of {}", answer.place(),
                        last.start, last.start + size, length));
    }
    if (training_ && !example.is_impossible && !find_answer(node, &example)) {
      ++file_.left_out;
      return;
    }
    file_.examples.push_back(std::move(example));
  }

  // False where the answer's text is not at its place.
  static bool find_answer(const JsonNode& node, SquadExample* example) {
    if (example->answers.size() != 1)
      throw std::runtime_error(
          fmt::format("{} has {} answers, and training needs one: is this the file for training, "
                      "and of version {}?",
                      node.place(), example->answers.size(), example->answers.empty() ? 2 : 1));
    const SquadAnswer& answer = example->answers[0];
    const auto size = static_cast<int64_t>(to_characters(answer.text).size());
    if (size == 0) return false;
    const SquadParagraph& paragraph = *example->paragraph;
    example->start_word = std::max(0, paragraph.word_of[static_cast<size_t>(answer.start)]);
    example->end_word = paragraph.word_of[static_cast<size_t>(answer.start + size - 1)];
    if (example->end_word < 0) return false;
    const auto words = paragraph.words.begin();
    const std::vector<std::string> clean = split_at_space(answer.text);
    return join(words + example->start_word, words + example->end_word + 1)
               .find(join(clean.begin(), clean.end())) != std::string::npos;
  }

  const std::string& path_;
  bool training_, version_2_;
  SquadFile file_;
  std::unordered_set<std::string> ids_;
};

}  // namespace

SquadFile read_squad(const std::string& path, bool training, bool version_2) {
  return SquadReader(path, training, version_2).run();
}

}  // namespace tally::train
