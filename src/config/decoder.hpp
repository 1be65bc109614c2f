// FLOPs and bytes of a decoder, from the config.json in the folder of its weights (Hugging Face).
//
// Of T tokens in one forward pass, each attending to C positions on average, and of N tokens whose
// next one is asked for:
//
//   FLOP  = 2 T P + 2 T C A + 2 N H V
//   bytes = w (P' + H V) + S (C' + T)
//
//   P   weights of the layers that a token meets: attention and MLP of each layer
//         attention      H a d + 2 H k d + a d H                    (a heads of d, k of keys and
//         values: GQA, MQA) MLA            H q + q a (n + r) + H (c + r) + c a (n + v) + a v H
//         (DeepSeek; without q: H a (n + r)) MLP            3 H F where it is gated, else 2 H F MoE
//         the router H E, and the MLPs of the experts that a token is sent to and of shared ones
//   A   sum over layers of a d (scores) and a d (values); MLA: a (n + r) and a v
//   P'  as P with every expert that T tokens can meet: min(E, T times experts a token)
//   S   bytes of a token in the cache: w (2 k d) a layer; MLA: w (c + r)
//   w   bytes of a weight, by torch_dtype or quantization_config
//
// Norms, activations, rotary embedding, softmax and the lookup of the embedding are left out, as
// they are in FLOP counters of frameworks. Each counts a multiplication and an addition as two.
// Sources: A. Chowdhery et al., "PaLM", 2022, appendix B; J. Ainslie et al., "GQA", 2023;
// DeepSeek-V2, 2024; checked by tests/gpu/flops.py against PyTorch's FlopCounterMode.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rangescope::config {

struct Decoder {
  double hidden = 0, vocabulary = 0;
  double layers = 0;
  double attention = 0;           ///< weights of one layer's attention
  double scores = 0, values = 0;  ///< A's two halves, of one layer
  double cache = 0;               ///< elements of a token in one layer's cache
  double dense =
      0;  ///< weights of all MLPs that every token meets: dense layers, shared experts, routers
  double expert = 0, experts = 0;     ///< weights of one expert; experts of a layer; 0 without
  double chosen = 0, moe_layers = 0;  ///< experts that a token is sent to; layers that have experts
  double window = 0,
         windowed = 0;  ///< sliding window of the attention, and how many layers have it
  double weight_bytes = 2, cache_bytes = 2;
  /// "its vision encoder": parts of the model that none of this counts; "" if it has none.
  std::string left_out;
};

/// kBadData with the field that is missing or makes no sense; kConfig with the name of the
/// architecture for what is no decoder (an encoder, a vision model). Of a model that reads images
/// or sound too its language model, with `left_out`.
[[nodiscard]] base::Result<Decoder> read_decoder(const std::filesystem::path& file);

/// Formulas of a forward pass over `tokens` per sequence, each attending to `context` positions,
/// `batch` sequences, `asked` logits per sequence: numbers, or formulas over `payload`.
struct Pass {
  std::string tokens = "1", context = "payload", batch = "1", asked = "1";
};
[[nodiscard]] std::string flop_formula(const Decoder& decoder, const Pass& pass);
[[nodiscard]] std::string bytes_formula(const Decoder& decoder, const Pass& pass);

/// `auto=CONFIG.json[,prefill=RANGE][,decode=RANGE][,prompt=N][,new=N][,batch=N][,tokens=N]` as
/// rules of FLOPs, bytes and tokens; other texts stay in `flops`. Without `prompt` the ranges'
/// payloads are the prompt's length and the cache's. `tokens`: how many an occurrence of decode
/// makes (1). With rules of the modules inside, where a program has such. kUsage with how to write
/// it.
struct UsefulRules {
  std::vector<std::string> flops, bytes, tokens;
  std::vector<std::string> notes;  ///< what of a model they do not count
};
[[nodiscard]] base::Result<UsefulRules> expand_useful(const std::vector<std::string>& flops);

}  // namespace rangescope::config
