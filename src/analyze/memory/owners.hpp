// Whose an allocation is, as text: module, line of the program, range, or operator.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/memory/uses.hpp"
#include "analyze/tree/contexts.hpp"
#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

/// Distinct owners by number; 0 is "": unknown.
class MemoryOwners {
 public:
  MemoryOwners(const Regions& regions, const Contexts& contexts, const Steps& steps);

  /// `context`: of the point at which it was allocated, 0 where there is none.
  [[nodiscard]] std::uint32_t owner_of(const model::Allocation& allocation, std::uint32_t context);
  [[nodiscard]] std::uint32_t owner_of(const model::FailedAllocation& failure,
                                       std::uint32_t context);
  [[nodiscard]] const std::string& text(std::uint32_t owner) const { return texts_[owner]; }
  /// Is it no part of the program, but a time: "before the recording"?
  [[nodiscard]] bool is_time(std::uint32_t owner) const { return times_.contains(owner); }
  /// The texts of `owners`; modules and ranges of which four or more differ by a number only have
  /// `#` in its place.
  [[nodiscard]] std::vector<std::string> folded_texts(
      const std::vector<std::uint32_t>& owners) const;

 private:
  enum class Rank : std::uint8_t { kNothing, kOperator, kRange, kModule };
  struct OfContext {
    Rank rank = Rank::kNothing;
    std::uint32_t owner = 0;
  };

  [[nodiscard]] std::uint32_t number(std::string text);
  [[nodiscard]] std::uint32_t number_of_time(std::string text);
  [[nodiscard]] const OfContext& of_context(std::uint32_t context);
  [[nodiscard]] std::uint32_t of_stack(std::uint32_t stack);
  [[nodiscard]] std::uint32_t of_step(std::int64_t at_ns);
  [[nodiscard]] std::uint32_t of_name(model::StringId name);
  [[nodiscard]] std::uint32_t chosen(std::uint32_t context,
                                     std::uint32_t stack,
                                     std::int64_t at_ns);
  [[nodiscard]] Rank rank_of(std::uint32_t occurrence) const;
  [[nodiscard]] std::string text_of(std::uint32_t occurrence, Rank rank) const;
  [[nodiscard]] std::string text_of_frames(const std::vector<std::uint32_t>& frames) const;

  const Regions& regions_;
  const Contexts& contexts_;
  const Steps& steps_;
  std::vector<std::string> texts_{""};
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::set<std::uint32_t> ranges_;  ///< owners that are modules or ranges
  std::set<std::uint32_t> times_;
  std::unordered_map<std::uint32_t, OfContext> of_context_;
  std::unordered_map<std::uint32_t, std::uint32_t> of_stack_;
};

}  // namespace rangescope::analyze
