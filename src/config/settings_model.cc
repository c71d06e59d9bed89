// Settings of the model, and those that only encoders have.
#include "src/config/flags.h"
#include "src/config/resolve_parts.h"
#include "src/config/settings.h"

namespace tally::train {
namespace {

void add_block_settings(SettingTable& t, Flags& f, const ModelConfig& m) {
  t.turns_on("--swiglu", &f.swiglu,
             "SwiGLU instead of GELU. It goes with --normalization RMSNorm, --disable-bias-linear "
             "and --position-embedding-type rope: the blocks of Llama")
      .record("model.kind", m.kind());
  t.choice("--normalization", &f.normalization, "NAME",
           {{"LayerNorm", NormKind::layer}, {"RMSNorm", NormKind::rms}},
           "LayerNorm (default) or RMSNorm, which goes with --swiglu");
  t.turns_on("--disable-bias-linear", &f.disable_bias_linear,
             "Linear layers without biases; goes with --swiglu");
  t.turns_on("--add-qkv-bias", &f.qkv_bias,
             "Biases of queries, keys and values with --disable-bias-linear (Qwen 2)")
      .record("model.add_qkv_bias", m.block.qkv_bias);
  t.turns_on("--qk-layernorm", &f.qk_norm,
             "A norm of each head of queries and of keys; goes with --swiglu (Qwen 3)")
      .record("model.qk_layernorm", m.block.qk_norm);
  t.turns_on("--group-query-attention", &f.grouped_queries,
             "Fewer heads of keys and values than of queries; goes with --swiglu");
  t.number("--num-query-groups", &f.query_groups, 1,
           "Heads of keys and values with --group-query-attention; must divide "
           "--num-attention-heads (default: 1)")
      .record("model.num_query_groups", m.kv_heads());
  t.number("--kv-channels", &f.kv_channels, 1,
           "Dimensions of a head; goes with --swiglu (default: --hidden-size / "
           "--num-attention-heads)")
      .record("model.kv_channels", m.head_dim());
}

void add_position_settings(SettingTable& t, Flags& f, const ModelConfig& m) {
  t.number(
       "--max-position-embeddings", &f.max_positions, 1,
       "Rows of the learned position table, at least --seq-length (default: --seq-length; 1024 or "
       "more with --model)")
      .record("model.max_position_embeddings", m.max_positions);
  t.choice("--position-embedding-type", &f.positions, "TYPE",
           {{"learned_absolute", Positions::learned},
            {"rope", Positions::rotary},
            {"learned", Positions::learned, false},
            {"rotary", Positions::rotary, false}},
           "learned_absolute or rope (default: learned_absolute)")
      .record("model.position_embedding_type",
              m.positions == Positions::rotary ? "rope" : "learned_absolute");
  t.turns_on("--use-rotary-position-embeddings", &f.rotary,
             "Same as --position-embedding-type rope");
  t.number(
       "--rotary-base", &f.rotary_base, 1.0,
       "Base of the rotary angles; 500000 for --model llama-..., rope_theta of config.json with "
       "--load or --load-hf")
      .shown("10000")
      .record("model.rotary_base", m.rotary_base);
  const RotaryScaling& s = m.rotary_scaling;
  t.turns_on("--use-rope-scaling", &f.rope_scaling,
             "Stretch the slow rotations as Llama 3.1 does, by the four numbers that follow");
  t.number("--rope-scaling-factor", &f.rope_factor, 1.0, "Factor of the stretching (default: 8)")
      .record("model.rope_scaling.factor", s.factor);
  t.number("--rope-low-freq-factor", &f.rope_low, 0.0,
           "Rotations with fewer turns in the original positions are stretched whole (default: 1)")
      .record("model.rope_scaling.low_freq_factor", s.low);
  t.number("--rope-high-freq-factor", &f.rope_high, 0.0,
           "Rotations with more turns than this are not stretched (default: 4)")
      .record("model.rope_scaling.high_freq_factor", s.high);
  t.number("--rope-original-max-position-embeddings", &f.rope_positions, 1,
           "Positions before the stretching (default: 8192)")
      .record("model.rope_scaling.original_max_position_embeddings", s.original_positions);
  t.number("--rotary-percent", &f.rotary_percent, 0.0,
           "Share of each head's dimensions that rotates", 1.0)
      .shown("1")
      .record("model.rotary_percent", m.rotary_fraction);
}

void add_weight_settings(SettingTable& t, Flags& f, const ModelConfig& m) {
  t.number(
       "--vocab-size", &f.vocabulary, 2,
       "Tokens of the vocabulary (default: the tokenizer's: 50257 for GPT2BPETokenizer, 257 for "
       "bytes)")
      .record("model.vocab_size", m.vocabulary);
  t.number("--make-vocab-size-divisible-by", &f.vocabulary_multiple, 1,
           "The vocabulary is padded to a multiple of this times the tensor parallel size")
      .record("model.padded_vocab_size", m.padded_vocabulary)
      .called("the padded vocabulary (--make-vocab-size-divisible-by)");
  t.turns_on("--untie-embeddings-and-output-weights", &f.untied,
             "The output layer has weights of its own instead of the token embedding's")
      .record("model.tied_embeddings", m.tied_embeddings);
  t.number("--layernorm-epsilon,--norm-epsilon", &f.layernorm_epsilon, 0.0,
           "Epsilon of LayerNorm and RMSNorm")
      .shown("1e-05")
      .record("model.layernorm_epsilon", m.layernorm_epsilon);
  t.number("--init-method-std", &f.config.model.init_std, 0.0,
           "Standard deviation of the initial weights; a block's output layers: / sqrt(2 layers)")
      .record("model.init_method_std");
  t.probability(
       "--hidden-dropout", &f.hidden_dropout,
       "Dropout after embedding, attention and MLP; with --load or --load-hf its config.json's "
       "unless given; 0 for --model llama-...")
      .shown("0.1")
      .record("model.hidden_dropout", m.hidden_dropout);
  t.probability("--attention-dropout", &f.attention_dropout,
                "Dropout of attention probabilities; with --load or --load-hf its config.json's "
                "unless given; 0 for --model llama-...")
      .shown("0.1")
      .record("model.attention_dropout", m.attention_dropout);
}

}  // namespace

void add_model_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  const ModelConfig& m = f.config.model;
  t.group("Model");
  t.text("--model", &f.model, "NAME",
         "Sizes of GPT-2: gpt2 (124M), gpt2-medium (355M), gpt2-large (774M), gpt2-xl (1.5B); of "
         "Llama 3: llama-1b, llama-8b; of encoders: bert-base (110M), bert-large (340M), "
         "distilbert (66M); the flags below override it (default: the sizes of gpt2)")
      .offers(preset_names())
      .record("model.preset", text_or_null(m.preset));
  t.number("--num-layers", &f.layers, 1, "Transformer layers").record("model.num_layers", m.layers);
  t.number("--hidden-size", &f.hidden, 1, "Width of the residual stream")
      .record("model.hidden_size", m.hidden);
  t.number("--num-attention-heads", &f.heads, 1,
           "Attention heads; must divide --hidden-size unless --kv-channels is given")
      .record("model.num_attention_heads", m.heads);
  t.number(
       "--ffn-hidden-size", &f.ffn, 1,
       "Width of the MLP (default: 4 x --hidden-size; with --swiglu two thirds of that, a multiple "
       "of 64)")
      .record("model.ffn_hidden_size", m.ffn);
  add_block_settings(t, f, m);
  t.number("--seq-length", &f.sequence, 1,
           "Tokens of a sample (default: 1024; encoders: 128, with --task squad 384)")
      .record("model.seq_length", f.config.sequence);
  add_position_settings(t, f, m);
  add_weight_settings(t, f, m);
}

void add_encoder_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  Config& c = f.config;
  t.group("Encoders: BERT and DistilBERT (docs/encoders.md)");
  t.choice("--task", &f.task, "NAME",
           {{"pretrain", Task::pretraining},
            {"classify", Task::classification},
            {"squad", Task::question_answering}},
           "Task that an encoder is trained for: pretrain (masked tokens, and of BERT the next "
           "sentence), classify or squad (default: that of --load-hf's config.json, else pretrain)")
      .record("encoder.task", text_or_null(task_name(c.model.task)));
  t.turns_on("--bert-no-binary-head", &f.no_binary_head,
             "BERT's pre-training does not predict the next sentence")
      .record("encoder.next_sentence", c.model.predicts_next_sentence());
  t.number("--num-classes", &f.classes, 2, "Classes of --task classify (default: 2)")
      .record("encoder.num_classes", c.model.classes);
  t.probability("--classifier-dropout", &f.classifier_dropout,
                "Dropout before the classes (default: --hidden-dropout, 0.2 for DistilBERT) and "
                "before DistilBERT's answers (default: 0.1)")
      .record("encoder.classifier_dropout", value_or_null(c.model.head_dropout()));
  t.turns_on("--pad", &c.data.pad,
             "Pad every sample to --seq-length tokens instead of computing real tokens only")
      .record("encoder.pad");
  t.text("--mock-lengths", &c.data.mock_lengths, "LENGTHS",
         "Tokens of the samples of --mock-data: 128, 16:128 (uniform) or @FILE (a histogram, a "
         "line LENGTH WEIGHT for each length) (default: --seq-length)")
      .record("encoder.mock_lengths");
  t.number("--mock-samples", &f.mock_samples, 1,
           "Samples of an epoch of --mock-data, and of an evaluation of it (default: 1024)")
      .record("encoder.mock_samples", c.data.mock && !c.model.language_model()
                                          ? nlohmann::ordered_json(c.data.mock_samples)
                                          : nullptr);
  t.probability("--mask-prob", &c.data.mask_probability,
                "Share of the tokens to mask, of --mock-data and --dynamic-masking")
      .record("encoder.mask_prob");
  t.number("--max-predictions-per-seq", &f.max_predictions, 1,
           "Most masked tokens of a sample (default: 20 for each 128 tokens)")
      .record("encoder.max_predictions_per_seq", c.data.max_predictions);
  t.turns_on("--dynamic-masking", &c.data.dynamic_masking,
             "Draw the masks of pre-training data anew in every epoch instead of taking the file's")
      .record("encoder.dynamic_masking");
  t.text("--text-column", &c.data.text_column, "NAME", "Column of the text of --task classify")
      .record("encoder.text_column");
  t.text("--pair-column", &c.data.pair_column, "NAME",
         "Column of a second text (default: there is none)")
      .record("encoder.pair_column");
  t.text("--label-column", &c.data.label_column, "NAME", "Column of the class")
      .record("encoder.label_column");
  t.number("--doc-stride", &c.data.document_stride, 1,
           "Tokens between the beginnings of two windows of a paragraph of SQuAD")
      .record("encoder.doc_stride");
  t.number("--max-query-length", &c.data.question_tokens, 1,
           "Tokens of a question of SQuAD that are kept")
      .record("encoder.max_query_length");
  t.turns_on("--version-2-with-negative", &c.data.squad_2,
             "SQuAD 2.0: questions may have no answer")
      .record("encoder.version_2_with_negative");
}

}  // namespace tally::train
