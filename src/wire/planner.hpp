// How the command line asks CUPTI, through the injected library, about metrics: which ones a chip
// has, what they mean, how many passes a set takes. No GPU is needed: CUPTI's host library knows
// every chip.
//
// The library exports one function, `rangescope_planner`, which returns a table of functions: so
// only one library uses CUPTI, and the command line is built without it. All strings are UTF-8 and
// valid during the call that passes them. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rangescope::wire::planner {

inline constexpr std::uint32_t kVersion = 2;
inline constexpr char kSymbol[] = "rangescope_planner";

enum class MetricKind : std::uint32_t { kCounter = 0, kRatio = 1, kThroughput = 2 };

using EmitName = void (*)(void* context, const char* name);

struct Table {
  std::uint32_t version;
  std::uint32_t bytes;  ///< of this struct

  /// Loads CUPTI. 0, or -1 with one sentence in `why`.
  int (*open)(char* why, std::size_t why_bytes);
  /// Where CUPTI was found and its version ("13.0.1").
  const char* (*library)();
  const char* (*library_version)();
  /// Every chip that CUPTI knows.
  int (*chips)(EmitName emit, void* context, char* why, std::size_t why_bytes);
  /// Base names of the metrics of a chip, of one kind.
  int (*metrics)(const char* chip,
                 MetricKind kind,
                 EmitName emit,
                 void* context,
                 char* why,
                 std::size_t why_bytes);
  /// Description, hardware unit and dimension of a metric. 1 if the chip has no such metric.
  int (*describe)(const char* chip,
                  const char* metric,
                  EmitName description,
                  EmitName hardware,
                  EmitName dimension,
                  void* context,
                  char* why,
                  std::size_t why_bytes);
  /// The passes of the whole set. 1 if a metric is refused individually, with its index in
  /// `refused`; 2 if each can be counted, but not in one configuration.
  int (*passes)(const char* chip,
                const char* const* metrics,
                std::size_t count,
                std::size_t* passes,
                std::size_t* refused,
                char* why,
                std::size_t why_bytes);
};

using GetTable = const Table* (*)();

}  // namespace rangescope::wire::planner
