#include "config/decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "config/yaml.hpp"

namespace rangescope::config {
namespace {

using base::Code;
using base::Result;

// MLPs of two matrices; all others have three (gate, up, down).
constexpr std::array<std::string_view, 13> kUngated{"gpt2",
                                                    "gpt_neo",
                                                    "gpt_neox",
                                                    "gptj",
                                                    "opt",
                                                    "bloom",
                                                    "falcon",
                                                    "phi",
                                                    "codegen",
                                                    "gpt_bigcode",
                                                    "persimmon",
                                                    "mpt",
                                                    "starcoder2"};
// Layers that are no attention over a cache, or experts in an order of their own.
constexpr std::array<std::string_view, 10> kOther{"mamba",
                                                  "mamba2",
                                                  "rwkv",
                                                  "jamba",
                                                  "bamba",
                                                  "zamba2",
                                                  "recurrent_gemma",
                                                  "qwen3_next",
                                                  "llama4_text",
                                                  "falcon_mamba"};

// Models whose tokens attend to those behind them too, or that read images or sound. Several write
// a vocabulary and layers as decoders do. A blank on both sides of each.
constexpr std::string_view kEncoders =
    " albert bert beit big_bird camembert canine clip clip_text_model clip_vision_model "
    " convbert data2vec-text deberta deberta-v2 deit dinov2 distilbert dpr electra ernie esm "
    " eurobert flaubert fnet funnel hubert layoutlm layoutlmv3 longformer modernbert mpnet "
    " nomic_bert roberta siglip siglip_text_model squeezebert swin vit wav2vec2 xlm-roberta "
    " xlnet ";
// What models are for that are no decoders, by the ends of their classes' names.
constexpr std::string_view kOtherHeads[] = {"ForMaskedLM", "ForPreTraining", "ForCTC"};

class DecoderFields {
 public:
  explicit DecoderFields(const Value& root) : root_(root) {}

  [[nodiscard]] std::optional<double> number(const std::vector<std::string_view>& names) const {
    for (const std::string_view name : names)
      if (const Value* value = root_.find(name);
          value && (value->kind == Kind::kInt || value->kind == Kind::kDouble))
        return value->number;
    return std::nullopt;
  }
  [[nodiscard]] std::string text(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names)
      if (const Value* value = root_.find(name); value && !value->is_null() && value->is_scalar())
        return value->text;
    return {};
  }
  [[nodiscard]] const Value* find(std::string_view name) const { return root_.find(name); }

 private:
  const Value& root_;
};

/// Of a number of this type; 2 for bfloat16, float16 and any other type.
double bytes_of_type(const std::string& type) {
  if (type == "float64")
    return 8;
  if (type == "float32")
    return 4;
  if (type.starts_with("float8"))
    return 1;
  return 2;
}

/// Bits of quantized weights, by what the common methods write.
std::optional<double> quantized_bytes(const DecoderFields& fields) {
  const Value* quantization = fields.find("quantization_config");
  if (!quantization || !quantization->is_map())
    return std::nullopt;
  const DecoderFields how(*quantization);
  if (const auto bits = how.number({"bits", "w_bit"}))
    return *bits / 8;
  const auto yes = [&](std::string_view name) { return how.find(name) && how.find(name)->boolean; };
  if (yes("load_in_4bit") || how.text({"quant_method"}) == "mxfp4")
    return 0.5;
  if (yes("load_in_8bit") || how.text({"quant_method"}) == "fp8")
    return 1;
  return std::nullopt;
}

void add_experts(const DecoderFields& fields, Decoder& out, double inner, double matrices) {
  out.experts = fields.number({"num_local_experts", "num_experts", "n_routed_experts"}).value_or(0);
  if (out.experts <= 1) {
    out.experts = 0;
    out.dense = out.layers * matrices * out.hidden * inner;
    return;
  }
  out.chosen =
      fields.number({"num_experts_per_tok", "num_experts_per_token", "moe_topk"}).value_or(1);
  const double size = fields.number({"moe_intermediate_size"}).value_or(inner);
  out.expert = matrices * out.hidden * size;
  const double first = fields.number({"first_k_dense_replace"}).value_or(0);
  const double step =
      std::max(1.0, fields.number({"decoder_sparse_step", "moe_layer_freq"}).value_or(1));
  const int first_number = fields.find("decoder_sparse_step") ? 1 : 0;
  const Value* only = fields.find("mlp_only_layers");
  for (double layer = 0; layer < out.layers; ++layer) {
    const bool named = only && std::ranges::any_of(only->items, [&](const Value& item) {
                         return item.number == layer;
                       });
    // Qwen counts layers from 1, DeepSeek from 0; with a step of 1 they agree.
    const double counted = layer + first_number;
    if (layer >= first && !named && std::fmod(counted, step) == 0)
      ++out.moe_layers;
  }
  const double shared_size = fields.number({"shared_expert_intermediate_size"}).value_or(0);
  const double shared = fields.number({"n_shared_experts"}).value_or(0) * size + shared_size;
  const double gate = shared_size > 0 ? out.hidden : 0;
  out.dense = (out.layers - out.moe_layers) * matrices * out.hidden * inner +
              out.moe_layers * (out.hidden * out.experts + matrices * out.hidden * shared + gate);
}

void add_window(const DecoderFields& fields, const std::string& type, Decoder& out) {
  out.window = fields.number({"sliding_window"}).value_or(0);
  const Value* use = fields.find("use_sliding_window");
  if (out.window <= 0 || (use && !use->boolean)) {
    out.window = 0;
    return;
  }
  const Value* types = fields.find("layer_types");
  if (types && types->is_list())
    out.windowed = static_cast<double>(std::ranges::count_if(
        types->items, [](const Value& one) { return one.text == "sliding_attention"; }));
  else if (const auto pattern = fields.number({"sliding_window_pattern"}); pattern && *pattern > 0)
    out.windowed = out.layers - std::floor(out.layers / *pattern);
  else if (type == "gemma2")
    out.windowed = std::ceil(out.layers / 2);
  else
    out.windowed = out.layers;
  if (out.windowed == 0)
    out.window = 0;
}

std::string number_text(double value) {
  const bool is_whole = value == std::floor(value) && std::fabs(value) < 1e15;
  if (is_whole)
    return fmt::format("{:.0f}", value);
  return fmt::format("{:.17g}", value);
}

/// Weights of the layers that T tokens meet once each, and per token.
double linear_weights(const Decoder& decoder) {
  return decoder.layers * decoder.attention + decoder.dense +
         decoder.moe_layers * decoder.chosen * decoder.expert;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_true(const Value* value) {
  return value != nullptr && value->boolean;
}

/// "BertForMaskedLM", the class that the weights were written by; "" where the file names none.
std::string architecture_of(const Value& document) {
  const Value* classes = document.find("architectures");
  if (classes == nullptr || !classes->is_list() || classes->items.empty())
    return {};
  return classes->items.front().text;
}

/// Empty for a decoder, else how its architecture is called.
std::string refused_architecture(const Value& document, const DecoderFields& fields) {
  const std::string type = fields.text({"model_type"}), architecture = architecture_of(document);
  const auto ends_so = [&](std::string_view end) { return architecture.ends_with(end); };
  const bool has_type = !type.empty();
  const bool is_listed = has_type && kEncoders.find(" " + type + " ") != std::string_view::npos;
  const bool is_encoder = is_listed || std::ranges::any_of(kOtherHeads, ends_so);
  const bool reads_both_ways = is_encoder && !is_true(fields.find("is_decoder"));
  const bool is_translator = is_true(fields.find("is_encoder_decoder"));
  if (!reads_both_ways && !is_translator && !contains(kOther, type))
    return {};
  std::string name = "a model of type '" + base::printable(type) + "'";
  if (!architecture.empty())
    name += " (" + base::printable(architecture) + ")";
  return name;
}

/// "its vision encoder" of a model that reads more than text; "" for others.
std::string other_parts(const Value& document) {
  using KeyAndPart = std::pair<std::string_view, std::string_view>;
  constexpr KeyAndPart kParts[] = {
      {"vision_config", "vision encoder"},
      {"audio_config", "audio encoder"},
      {"speech_config", "speech encoder"},
  };
  std::vector<std::string> parts;
  for (const auto& [key, part] : kParts) {
    const Value* value = document.find(key);
    if (value != nullptr && value->is_map())
      parts.push_back("its " + std::string(part));
  }
  return base::join(parts, " and ");
}

/// Reads hidden size, layers and vocabulary into `out`; returns the number of attention heads.
Result<double> read_sizes(const DecoderFields& fields, const std::string& file, Decoder& out) {
  double heads = 0;
  struct Size {
    double* value;
    std::vector<std::string_view> names;
  };
  for (const auto& [size, names] : {Size{&out.hidden, {"hidden_size", "n_embd", "d_model"}},
                                    Size{&out.layers, {"num_hidden_layers", "n_layer", "n_layers"}},
                                    Size{&heads, {"num_attention_heads", "n_head", "n_heads"}},
                                    Size{&out.vocabulary, {"vocab_size"}}}) {
    const auto value = fields.number(names);
    if (!value || *value < 1 || *value > 1e9)
      return base::fail(
          Code::kBadData,
          "the model's " + std::string(names.front()) + " is missing or makes no sense",
          file,
          "Name the config.json of a decoder from Hugging Face.");
    *size = *value;
  }
  if (out.layers > 10'000)
    return base::fail(
        Code::kBadData, "more than 10,000 layers", file, "Name the config.json of a decoder.");
  return heads;
}

/// Keys and values are kept as one vector of `rank` numbers (multi-head latent attention).
void add_latent_attention(const DecoderFields& fields, double heads, double rank, Decoder& out) {
  const double plain = fields.number({"qk_nope_head_dim"}).value_or(128);
  const double rotary = fields.number({"qk_rope_head_dim"}).value_or(64);
  const double value = fields.number({"v_head_dim"}).value_or(128);
  const double query = heads * (plain + rotary);
  double query_weights = out.hidden * query;
  if (const auto query_rank = fields.number({"q_lora_rank"}))
    query_weights = out.hidden * *query_rank + *query_rank * query;
  out.attention = query_weights + out.hidden * (rank + rotary) + rank * heads * (plain + value) +
                  heads * value * out.hidden;
  out.scores = query;
  out.values = heads * value;
  out.cache = rank + rotary;
}

void add_attention(const DecoderFields& fields, double heads, Decoder& out) {
  if (const auto rank = fields.number({"kv_lora_rank"})) {
    add_latent_attention(fields, heads, *rank, out);
    return;
  }
  const double size = fields.number({"head_dim"}).value_or(out.hidden / heads);
  const Value* multi_query = fields.find("multi_query");
  const bool shares_one = multi_query != nullptr && multi_query->boolean;
  const double default_heads = shares_one ? 1 : heads;
  const double key_value_heads =
      fields.number({"num_key_value_heads", "num_kv_heads"}).value_or(default_heads);
  out.attention = 2 * out.hidden * heads * size + 2 * out.hidden * key_value_heads * size;
  out.scores = out.values = heads * size;
  out.cache = 2 * key_value_heads * size;
}

}  // namespace

Result<Decoder> read_decoder(const std::filesystem::path& file) {
  const Value document = TRY(read_yaml(file));  // JSON is YAML
  const Value* root = &document;
  if (const Value* text = root->find("text_config"); text && text->is_map())
    root = text;
  const DecoderFields fields(*root);
  const std::string type = fields.text({"model_type"});
  if (const std::string refused = refused_architecture(document, fields); !refused.empty())
    return base::fail(Code::kConfig,
                      "no formula is known for " + refused,
                      file.string(),
                      "Give its FLOPs yourself: --flops decode=2.1e9.");
  Decoder out;
  const double heads = TRY(read_sizes(fields, file.string(), out));
  add_attention(fields, heads, out);
  const bool is_gated = std::ranges::find(kUngated, type) == kUngated.end();
  const int matrices = is_gated ? 3 : 2;
  const double inner = fields.number({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"})
                           .value_or(4 * out.hidden);
  add_experts(fields, out, inner, matrices);
  add_window(fields, type, out);
  out.left_out = other_parts(document);
  out.cache_bytes = bytes_of_type(fields.text({"torch_dtype", "dtype"}));
  out.weight_bytes = quantized_bytes(fields).value_or(out.cache_bytes);
  return out;
}

std::string flop_formula(const Decoder& decoder, const Pass& pass) {
  const double attended = 2 * (decoder.scores + decoder.values);
  std::string context = fmt::format(
      "{}*({})", number_text(attended * (decoder.layers - decoder.windowed)), pass.context);
  if (decoder.windowed > 0)
    context += fmt::format(" + {}*min({},{})",
                           number_text(attended * decoder.windowed),
                           pass.context,
                           number_text(decoder.window));
  return fmt::format("({})*(({})*({} + {}) + ({})*{})",
                     pass.batch,
                     pass.tokens,
                     number_text(2 * linear_weights(decoder)),
                     context,
                     pass.asked,
                     number_text(2 * decoder.hidden * decoder.vocabulary));
}

std::string bytes_formula(const Decoder& decoder, const Pass& pass) {
  const double always =
      decoder.layers * decoder.attention + decoder.dense + decoder.hidden * decoder.vocabulary;
  std::string weights = number_text(always * decoder.weight_bytes);
  if (decoder.experts > 0)
    weights += fmt::format(" + {}*min({},({})*({})*{})",
                           number_text(decoder.moe_layers * decoder.expert * decoder.weight_bytes),
                           number_text(decoder.experts),
                           pass.batch,
                           pass.tokens,
                           number_text(decoder.chosen));
  const double token = decoder.cache * decoder.cache_bytes;
  std::string cache = fmt::format(
      "{}*({})", number_text(token * (decoder.layers - decoder.windowed)), pass.context);
  if (decoder.windowed > 0)
    cache += fmt::format(" + {}*min({},{})",
                         number_text(token * decoder.windowed),
                         pass.context,
                         number_text(decoder.window));
  return fmt::format("{} + ({})*({} + {}*({}))",
                     weights,
                     pass.batch,
                     cache,
                     number_text(token * decoder.layers),
                     pass.tokens);
}

namespace {

/// Rules of the modules of PyTorch that a pass calls, by the names that Hugging Face gives them:
/// each is a decoder that lacks the rest. Layers that differ have none.
void add_modules(const Decoder& decoder,
                 const std::string& range,
                 const Pass& flops,
                 const Pass& bytes,
                 UsefulRules& out) {
  const bool plain = std::ranges::all_of(range, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == ' ' || c == '-' || c == ';';
  });
  if (!plain)
    return;
  std::string names = range;
  std::ranges::replace(names, ';', '|');
  Decoder attention = decoder, mlp = decoder, head;
  attention.layers = mlp.layers = 1;
  attention.dense = attention.moe_layers = attention.experts = attention.vocabulary = 0;
  mlp.attention = mlp.scores = mlp.values = mlp.cache = mlp.vocabulary = mlp.windowed = 0;
  mlp.dense /= decoder.layers;
  mlp.moe_layers /= decoder.layers;
  head.hidden = decoder.hidden;
  head.vocabulary = decoder.vocabulary;
  head.weight_bytes = decoder.weight_bytes;
  const auto add = [&](const char* module, const Decoder& part) {
    const std::string rule = "?regex:^(" + names + ")$/*/" + module + "=";
    out.flops.push_back(rule + flop_formula(part, flops));
    out.bytes.push_back(rule + bytes_formula(part, bytes));
  };
  if (decoder.windowed == 0)
    add("\\.(self_attn|attn|attention) \\(", attention);
  if (decoder.moe_layers == 0 || decoder.moe_layers == decoder.layers)
    add("\\.(mlp|feed_forward|block_sparse_moe) \\(", mlp);
  add("^lm_head \\(", head);
}

/// `--flops auto=config.json,prompt=512,...` as it was written.
struct Auto {
  std::string model;                                               ///< the path of its config.json
  std::string prefill = "prefill", decode = "decode;decode step";  ///< ranges
  std::string prompt, generated;  ///< lengths in tokens; "" where they were not given
  std::string batch = "1", tokens = "1";
};

Result<Auto> parse_auto(const std::string& written) {
  const auto refuse = [&](std::string what) {
    return base::fail(Code::kUsage,
                      std::move(what),
                      "--flops " + written,
                      "Write --flops auto=config.json,prompt=512,new=64 (and batch=, tokens=, "
                      "prefill=RANGE, decode=RANGE), or "
                      "give the ranges their lengths as payloads.");
  };
  Auto out;
  const std::map<std::string_view, std::string*> arguments{{"prefill", &out.prefill},
                                                           {"decode", &out.decode},
                                                           {"prompt", &out.prompt},
                                                           {"new", &out.generated},
                                                           {"batch", &out.batch},
                                                           {"tokens", &out.tokens}};
  std::string_view rest = written;
  rest.remove_prefix(std::min(rest.size(), std::string_view("auto=").size()));
  const auto parts = base::split(rest, ',');
  if (parts.empty() || parts.front().empty())
    return refuse("the model's config.json is not named");
  out.model = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto equals = parts[i].find('=');
    const auto argument = arguments.find(parts[i].substr(0, equals));
    if (equals == std::string_view::npos || argument == arguments.end())
      return refuse("auto has no argument '" + base::printable(parts[i]) + "'");
    *argument->second = parts[i].substr(equals + 1);
    const bool is_range = argument->first == "prefill" || argument->first == "decode";
    if (!is_range && !base::to_double(*argument->second))
      return refuse("'" + base::printable(parts[i]) + "' is not a number");
  }
  return out;
}

void add_rules(const Decoder& decoder, const Auto& given, UsefulRules& out) {
  std::string prompt = "payload";
  if (!given.prompt.empty())
    prompt = given.prompt;
  // A causal prefill: token i attends to i positions.
  const Pass prefill{prompt, "(" + prompt + " + 1)/2", given.batch, "1"};
  const Pass prefill_bytes{prompt, "0", given.batch, "1"};
  std::string context = prompt;
  if (!given.prompt.empty() && !given.generated.empty())
    context += " + (" + given.generated + " + 1)/2";
  const Pass decode{"1", context, given.batch, "1"};
  // An occurrence of several tokens is as many passes.
  const auto repeated = [&](const std::string& formula) {
    if (given.tokens == "1")
      return formula;
    return given.tokens + "*(" + formula + ")";
  };
  out.flops.push_back(given.prefill + "=" + flop_formula(decoder, prefill));
  out.flops.push_back(given.decode + "=" + repeated(flop_formula(decoder, decode)));
  out.bytes.push_back(given.prefill + "=" + bytes_formula(decoder, prefill_bytes));
  out.bytes.push_back(given.decode + "=" + repeated(bytes_formula(decoder, decode)));
  add_modules(decoder, given.prefill, prefill, prefill_bytes, out);
  add_modules(decoder, given.decode, decode, decode, out);
  out.tokens.push_back(given.prefill + "=" + given.batch + "*" + prompt);
  out.tokens.push_back(given.decode + "=" + given.batch + "*" + given.tokens);
}

}  // namespace

Result<UsefulRules> expand_useful(const std::vector<std::string>& flops) {
  UsefulRules out;
  for (const std::string& written : flops) {
    if (written != "auto" && !written.starts_with("auto=")) {
      out.flops.push_back(written);
      continue;
    }
    const Auto given = TRY(parse_auto(written));
    const Decoder decoder = TRY(read_decoder(given.model));
    if (!decoder.left_out.empty())
      out.notes.push_back(
          fmt::format("--flops auto: the language model of {} is counted, {} is not",
                      given.model,
                      decoder.left_out));
    add_rules(decoder, given, out);
  }
  return out;
}

}  // namespace rangescope::config
