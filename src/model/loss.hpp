// What is missing: the run went on, but something that happened is not in the data. Every report
// prints its losses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "model/loss_kinds.hpp"

namespace rangescope::model {

/// The id of a row in the table of kinds.
class LossKind {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): {"torn_tail", count, detail} is how a loss is
  // written
  consteval LossKind(const char* id) : id_(id) {}
  [[nodiscard]] constexpr std::string_view id() const { return id_; }
  [[nodiscard]] Severity severity() const { return loss_entry(id_).severity; }
  [[nodiscard]] LossArea area() const { return loss_entry(id_).area; }
  friend constexpr auto operator<=>(LossKind, LossKind) = default;

 private:
  friend struct Loss;
  std::string_view id_;  ///< of a literal, or in the table
};

struct Loss {
  Loss(LossKind what, std::uint64_t how_many, std::string text)
      : kind(what), severity(what.severity()), count(how_many), detail(std::move(text)) {}
  /// As a file has it; a kind that only another version knows is "unknown_loss", and the detail
  /// names it.
  [[nodiscard]] static Loss read(std::string_view id,
                                 std::string_view severity,
                                 std::uint64_t count,
                                 std::string detail) {
    Loss loss("unknown_loss", count, std::move(detail));
    if (const LossEntry& entry = loss_entry(id); entry.id == id)
      loss.kind.id_ = entry.id, loss.severity = entry.severity;
    else
      loss.detail = std::string(id) + ": " + loss.detail;
    for (const Severity said : {Severity::kInfo, Severity::kWarning, Severity::kError})
      if (severity_name(said) == severity)
        loss.severity = said;
    return loss;
  }

  LossKind kind;
  Severity severity;  ///< of the kind, but for what a file or another tool says
  std::uint64_t
      count;  ///< how many events (or bytes, if `detail` says so); 0 where it cannot be known
  std::string detail;  ///< one sentence for people: what, where, what it means for the numbers
};

/// Says why a program that uses NVTX was not recorded, and so why there may be no ranges.
[[nodiscard]] inline bool explains_missing_ranges(const Loss& loss) {
  return std::ranges::find(kNotRecordedKinds, loss.kind.id()) != std::end(kNotRecordedKinds);
}

}  // namespace rangescope::model
