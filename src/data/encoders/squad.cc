// SQuAD's files.
#include "src/data/encoders/squad.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "src/data/text/json_document.h"
#include "src/data/text/unicode_text.h"

namespace tally::train {
namespace {

bool is_squad_blank(char32_t c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0x202F;
}

std::shared_ptr<const SquadParagraph> make_paragraph(const std::string& context) {
  auto paragraph = std::make_shared<SquadParagraph>();
  paragraph->context = context;
  std::u32string word;
  for (const char32_t c : to_characters(context)) {
    if (!is_squad_blank(c)) {
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
    for (const LocatedJson& part : read_json_file(path_)) {
      const JsonNode root(part.value, part.location);
      if (root.has("data"))
        read_all(root.list("data"));
      else if (root.value().is_array())
        read_all(root);
      else
        read_entry(root);
    }
    if (file_.examples.empty())
      throw std::runtime_error(
          fmt::format("{} has no questions{}", path_,
                      file_.left_out > 0 ? " whose answers are where it says" : ""));
    return std::move(file_);
  }

 private:
  void read_all(const JsonNode& entries) {
    for (size_t i = 0; i < entries.value().size(); ++i) read_entry(entries.at(i));
  }

  // An article of SQuAD's files, or a row of Hugging Face's datasets, which has one question.
  void read_entry(const JsonNode& node) {
    if (node.has("context")) return read_question(node, paragraph_of(node));
    if (!node.has("paragraphs"))
      throw std::runtime_error(fmt::format(
          "{} is neither an article of SQuAD (with \"paragraphs\") nor a row of Hugging "
          "Face's datasets (with \"context\", \"question\" and \"answers\")",
          node.location()));
    const JsonNode paragraphs = node.list("paragraphs");
    for (size_t p = 0; p < paragraphs.value().size(); ++p) {
      const JsonNode paragraph = paragraphs.at(p), questions = paragraph.list("qas");
      const auto shared = paragraph_of(paragraph);
      for (size_t q = 0; q < questions.value().size(); ++q) read_question(questions.at(q), shared);
    }
  }

  // Rows repeat the context for each of its questions.
  std::shared_ptr<const SquadParagraph> paragraph_of(const JsonNode& node) {
    std::shared_ptr<const SquadParagraph>& known = paragraphs_[node.text("context")];
    if (!known) known = make_paragraph(node.text("context"));
    return known;
  }

  void read_question(const JsonNode& node, std::shared_ptr<const SquadParagraph> paragraph) {
    SquadExample example;
    example.paragraph = std::move(paragraph);
    example.id = node.name("id");
    example.question = node.text("question");
    if (!ids_.insert(example.id).second)
      throw std::runtime_error(
          fmt::format("{} has the id \"{}\" of an earlier question", node.location(), example.id));
    read_answers(node, &example);
    // A row without an answer is impossible.
    const bool row = node.has("context");
    if (version_2_ && (node.has("is_impossible") || (training_ && !row)))
      example.is_impossible = node.flag("is_impossible");
    else if (version_2_ && row)
      example.is_impossible = example.answers.empty();
    if (training_ && !example.is_impossible && !find_answer(node, &example)) {
      ++file_.left_out;
      return;
    }
    file_.examples.push_back(std::move(example));
  }

  // A list of answers, or an object of two lists.
  static void read_answers(const JsonNode& node, SquadExample* example) {
    const bool lists = node.has("answers") && node.value()["answers"].is_object();
    if (!lists) {
      const JsonNode answers = node.list("answers");
      for (size_t i = 0; i < answers.value().size(); ++i) {
        const JsonNode answer = answers.at(i);
        add_answer(answer.text("text"), answer.number("answer_start"), answer.location(), example);
      }
      return;
    }
    const JsonNode answers = node.object("answers");
    const JsonNode texts = answers.list("text"), starts = answers.list("answer_start");
    if (texts.value().size() != starts.value().size())
      throw std::runtime_error(fmt::format("{} has {} texts and {} values of \"answer_start\"",
                                           answers.location(), texts.value().size(),
                                           starts.value().size()));
    for (size_t i = 0; i < texts.value().size(); ++i)
      add_answer(texts.at(i).text(), starts.at(i).number(), texts.at(i).location(), example);
  }

  static void add_answer(const std::string& text, int64_t start, const std::string& location,
                         SquadExample* example) {
    const auto length = static_cast<int64_t>(example->paragraph->word_of.size());
    const auto size = static_cast<int64_t>(to_characters(text).size());
    if (start < 0 || start > length || size > length - start)
      throw std::runtime_error(fmt::format("{} lies outside the context: characters {} to {} of {}",
                                           location, start, start + size, length));
    example->answers.push_back({text, start});
  }

  // False where the answer's text is not at its location.
  static bool find_answer(const JsonNode& node, SquadExample* example) {
    if (example->answers.size() != 1)
      throw std::runtime_error(
          fmt::format("{} has {} answers, and training needs one: is this the file for training, "
                      "and of version {}?",
                      node.location(), example->answers.size(), example->answers.empty() ? 2 : 1));
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
  std::unordered_map<std::string, std::shared_ptr<const SquadParagraph>> paragraphs_;
};

}  // namespace

SquadFile read_squad(const std::string& path, bool training, bool version_2) {
  return SquadReader(path, training, version_2).run();
}

}  // namespace tally::train
