// How the command line asks the injected library's CUPTI about metrics: which there are on a chip,
// what they mean, how many passes a set takes. No GPU is needed: CUPTI's host library knows every
// chip.
//
// The library exports one function, `rangescope_planner`, that gives a table of functions (so that
// the only code that knows CUPTI is in one place, and the command line needs no CUPTI to be built).
// A library built without CUPTI has a table whose open() says so. All strings are UTF-8 and valid
// during the call they are handed out in. Not thread-safe.
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
  int (*metrics)(const char* chip, MetricKind kind, EmitName emit, void* context, char* why,
                 std::size_t why_bytes);
  /// What a metric is: description, hardware unit, dimension. 1 when the chip has no such metric.
  int (*describe)(const char* chip, const char* metric, EmitName description, EmitName hardware,
                  EmitName dimension, void* context, char* why, std::size_t why_bytes);
  /// Passes that the whole set takes. 1 when a metric is refused by itself, `refused` is its index
  /// then; 2 when each can be counted, but not in one configuration.
  int (*passes)(const char* chip, const char* const* metrics, std::size_t count,
                std::size_t* passes, std::size_t* refused, char* why, std::size_t why_bytes);
};

using GetTable = const Table* (*)();

}  // namespace rangescope::wire::planner
