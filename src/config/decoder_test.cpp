#include "config/decoder.hpp"

#include <gtest/gtest.h>

#include "base/formula.hpp"
#include "base/fs.hpp"
#include "base/temporary_folder.hpp"

namespace rangescope::config {
namespace {

Decoder decoder(const std::string& json) {
  const base::TemporaryFolder folder("rangescope-decoder");
  EXPECT_TRUE(base::write_file(folder.path() / "config.json", json).has_value());
  auto read = read_decoder(folder.path() / "config.json");
  EXPECT_TRUE(read.has_value()) << read.error().what;
  return read.value_or(Decoder{});
}

std::string mistake(const std::string& json) {
  const base::TemporaryFolder folder("rangescope-decoder");
  EXPECT_TRUE(base::write_file(folder.path() / "config.json", json).has_value());
  const auto read = read_decoder(folder.path() / "config.json");
  return read ? "none" : read.error().what;
}

double value(const std::string& formula, double payload = 0) {
  const auto parsed = base::Formula::parse(formula);
  EXPECT_TRUE(parsed.has_value()) << formula;
  return parsed ? parsed->evaluate([&](std::string_view) { return payload; }).value_or(-1) : -1;
}

constexpr const char* kLlama3 =
    R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
  "torch_dtype": "bfloat16"})";
constexpr const char* kMixtral =
    R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
  "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": null, "torch_dtype": "bfloat16"})";
constexpr const char* kQwen3Moe =
    R"({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
  "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144,
  "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
  "mlp_only_layers": [], "vocab_size": 151936, "torch_dtype": "bfloat16"})";
constexpr const char* kDeepSeekLite =
    R"({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
  "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944, "moe_intermediate_size": 1408,
  "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
  "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "v_head_dim": 128, "vocab_size": 102400, "torch_dtype": "bfloat16"})";
constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257})";

// The weights that a long enough pass reads are the published number of parameters but for the
// embedding table, norms and biases.
TEST(Decoder, WeightsAreThePublishedParameters) {
  struct Model {
    const char *name, *json;
    double parameters, others;  ///< published; embedding, norms, biases
  };
  for (const Model& model :
       {Model{"Llama 3 8B", kLlama3, 8030261248, 128256.0 * 4096 + 65 * 4096},
        Model{"Mixtral 8x7B", kMixtral, 46702792704, 32000.0 * 4096 + 65 * 4096},
        Model{"Qwen3 30B A3B",
              kQwen3Moe,
              30532122624,
              151936.0 * 2048 + 48 * (2 * 2048 + 2 * 128) + 2048},
        Model{"DeepSeek V2 Lite",
              kDeepSeekLite,
              15706484224,
              102400.0 * 2048 + 27 * (2 * 2048 + 512) + 2048},
        Model{"GPT-2, whose embedding is its last layer too", kGpt2, 124439808, 786432 + 121344}}) {
    const Decoder read = decoder(model.json);
    const double cache = read.layers * read.cache * read.cache_bytes * 1e6;
    EXPECT_EQ((value(bytes_formula(read, {"1e6", "0", "1", "1"})) - cache) / 2,
              model.parameters - model.others)
        << model.name;
  }
}

TEST(Decoder, FlopsOfATokenAreTwiceTheWeightsItMeets) {
  const Decoder llama = decoder(kLlama3);
  EXPECT_EQ(value(flop_formula(llama, {"1", "0", "1", "1"})),
            2.0 * (8030261248 - 128256.0 * 4096 - 65 * 4096));
  // Scores and values: 2 * 4096 each, a layer and position.
  EXPECT_EQ(value(flop_formula(llama, {"1", "payload", "1", "1"}), 1000) -
                value(flop_formula(llama, {"1", "0", "1", "1"})),
            32.0 * 4 * 4096 * 1000);
  EXPECT_EQ(value(flop_formula(llama, {"1", "0", "16", "1"})),
            16 * value(flop_formula(llama, {"1", "0", "1", "1"})));
  // Two of eight experts.
  EXPECT_EQ(value(flop_formula(decoder(kMixtral), {"1", "0", "1", "0"})),
            2.0 * 32 * (41943040 + 4096 * 8 + 2 * 3 * 4096.0 * 14336));
}

TEST(Decoder, CacheAndExpertsOfATokenAreRead) {
  const Decoder llama = decoder(kLlama3);
  const double weights = 2.0 * (8030261248 - 128256.0 * 4096 - 65 * 4096),
               token = 2.0 * 32 * 2 * 8 * 128;
  EXPECT_EQ(value(bytes_formula(llama, {}), 999), weights + 1000 * token);
  EXPECT_EQ(value(bytes_formula(decoder(kMixtral), {"1", "0", "1", "1"})),
            2.0 * (32 * (41943040 + 4096 * 8 + 2 * 3 * 4096.0 * 14336) + 32000.0 * 4096) + token);
}

TEST(Decoder, AWindowBoundsTheContext) {
  const std::string json =
      R"({"model_type": "mistral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": 10, "sliding_window": 100})";
  const Decoder read = decoder(json);
  EXPECT_EQ(value(flop_formula(read, {}), 5000), value(flop_formula(read, {}), 100));
  EXPECT_LT(value(flop_formula(read, {}), 99), value(flop_formula(read, {}), 100));
}

TEST(Decoder, WhatIsNoneIsRefused) {
  EXPECT_EQ(mistake(R"({"model_type": "t5", "is_encoder_decoder": true, "d_model": 8})"),
            "no formula is known for a model of type 't5'");
  constexpr const char* kSizes =
      R"("hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "vocab_size": 30522, "intermediate_size": 3072)";
  const auto config = [&](const std::string& fields) { return "{" + fields + ", " + kSizes + "}"; };
  EXPECT_EQ(mistake(config(R"("model_type": "bert", "architectures": ["BertForMaskedLM"])")),
            "no formula is known for a model of type 'bert' (BertForMaskedLM)");
  EXPECT_EQ(mistake(config(R"("model_type": "roberta")")),
            "no formula is known for a model of type 'roberta'");
  EXPECT_EQ(mistake(config(R"("model_type": "nomic_x", "architectures": ["NomicXForMaskedLM"])")),
            "no formula is known for a model of type 'nomic_x' (NomicXForMaskedLM)");
  EXPECT_EQ(mistake(config(R"("model_type": "bert", "is_decoder": true)")), "none");
  EXPECT_EQ(mistake(R"({"hidden_size": 8})"),
            "the model's num_hidden_layers is missing or makes no sense");
  EXPECT_EQ(
      mistake(
          R"({"hidden_size": 8, "num_hidden_layers": 1e8, "num_attention_heads": 2, "vocab_size": 2})"),
      "more than 10,000 layers");
}

TEST(Decoder, OfAModelThatReadsImagesTheLanguageModelIsCounted) {
  const std::string llava =
      std::string(
          R"({"model_type": "llava", "vision_config": {"hidden_size": 1024}, "text_config": )") +
      kLlama3 + "}";
  EXPECT_EQ(flop_formula(decoder(llava), {}), flop_formula(decoder(kLlama3), {}));
  const base::TemporaryFolder folder("rangescope-decoder");
  const std::string file = folder.path() / "config.json";
  ASSERT_TRUE(base::write_file(file, llava).has_value());
  const auto rules = expand_useful({"auto=" + file});
  ASSERT_TRUE(rules.has_value()) << rules.error().what;
  ASSERT_EQ(rules->notes.size(), 1u);
  EXPECT_EQ(
      rules->notes[0],
      "--flops auto: the language model of " + file + " is counted, its vision encoder is not");
}

TEST(Decoder, AutoBecomesRules) {
  const base::TemporaryFolder folder("rangescope-decoder");
  const std::string file = folder.path() / "config.json";
  ASSERT_TRUE(base::write_file(file, kLlama3).has_value());
  const auto rules =
      expand_useful({"other=5", "auto=" + file + ",prompt=512,new=64,batch=4,decode=token"});
  ASSERT_TRUE(rules.has_value()) << rules.error().what;
  ASSERT_EQ(rules->flops.size(), 9u);
  EXPECT_EQ(rules->flops[0], "other=5");
  const Decoder llama = decoder(kLlama3);
  EXPECT_EQ(value(rules->flops[1].substr(8)),
            value(flop_formula(llama, {"512", "256.5", "4", "1"})));
  EXPECT_EQ(value(rules->flops[2].substr(6)), value(flop_formula(llama, {"1", "544.5", "4", "1"})));
  EXPECT_TRUE(rules->bytes[1].starts_with("token="));
  // Of modules: attention and MLP of all layers and the head are the pass.
  const auto parts = [&](const std::vector<std::string>& all, std::size_t from) {
    double sum = 0;
    for (std::size_t i = from; i < from + 3; ++i) {
      EXPECT_TRUE(all[i].starts_with("?regex:^(token)$/*/")) << all[i];
      sum += (i < from + 2 ? llama.layers : 1) * value(all[i].substr(all[i].find('=') + 1));
    }
    return sum;
  };
  EXPECT_NEAR(parts(rules->flops, 6), value(flop_formula(llama, {"1", "544.5", "4", "1"})), 1e3);
  EXPECT_NEAR(parts(rules->bytes, 5), value(bytes_formula(llama, {"1", "544.5", "4", "1"})), 1e3);
  EXPECT_EQ(expand_useful({"auto=" + file + ",promt=5"}).error().what,
            "auto has no argument 'promt=5'");
  EXPECT_EQ(expand_useful({"auto"}).error().what, "the model's config.json is not named");
}

}  // namespace
}  // namespace rangescope::config
