// Flags of BERT and DistilBERT.
#include "src/config/flag_group.h"

namespace tally::train {

void declare_encoder_flags(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Encoders: BERT and DistilBERT (docs/encoders.md)");
  g.text("--task", &f->task, "NAME",
         "What an encoder is trained for: pretrain (masked tokens, and of BERT the next sentence), "
         "classify or squad (default: that of --load-hf's config.json, else pretrain)");
  g.toggle("--bert-no-binary-head", &f->no_binary_head,
           "BERT's pre-training does not predict the next sentence");
  g.number("--num-classes", &f->classes, 2, "Classes of --task classify (default: 2)");
  g.probability("--classifier-dropout", &f->classifier_dropout,
                "Dropout before the classes (default: --hidden-dropout, 0.2 for DistilBERT) and "
                "before DistilBERT's answers (default: 0.1)");
  g.toggle("--pad", &f->data.pad,
           "Pad every sample to --seq-length tokens instead of computing real tokens only");
  g.text("--mock-lengths", &f->data.mock_lengths, "LENGTHS",
         "Tokens of the samples of --mock-data: 128, 16:128 (uniform) or @FILE (a histogram, a "
         "line LENGTH WEIGHT for each length) (default: --seq-length)");
  g.number("--mock-samples", &f->mock_samples, 1,
           "Samples of an epoch of --mock-data, and of an evaluation of it (default: 1024)");
  g.probability("--mask-prob", &f->data.mask_probability,
                "Share of the tokens to mask, of --mock-data and --dynamic-masking");
  g.number("--max-predictions-per-seq", &f->max_predictions, 1,
           "Most masked tokens of a sample (default: 20 for each 128 tokens)");
  g.toggle("--dynamic-masking", &f->data.dynamic_masking,
           "Draw the masks of pre-training data anew in every epoch instead of taking the file's");
  g.text("--text-column", &f->data.text_column, "NAME", "Column of the text of --task classify");
  g.text("--pair-column", &f->data.pair_column, "NAME",
         "Column of a second text (default: there is none)");
  g.text("--label-column", &f->data.label_column, "NAME", "Column of the class");
  g.number("--doc-stride", &f->data.document_stride, 1,
           "Tokens between the beginnings of two windows of a paragraph of SQuAD");
  g.number("--max-query-length", &f->data.question_tokens, 1,
           "Tokens of a question of SQuAD that are kept");
  g.toggle("--version-2-with-negative", &f->data.squad_2,
           "SQuAD 2.0: questions may have no answer");
}

}  // namespace tally::train
