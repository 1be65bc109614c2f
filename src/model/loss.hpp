// What is missing: the run went on, but something that happened is not in the data. Every report prints its losses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "model/loss_kinds.hpp"

namespace rangescope::model {

/// A row of the table of kinds. Made of a literal, which is looked up while compiling.
class LossKind {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): {"torn_tail", count, detail} is how a loss is written
  consteval LossKind(const char* id) : row_(row_of(id)) {
    if (row_ == losses::kTable.size()) throw "the table in model/loss_kinds.hpp lacks this kind";
  }
  [[nodiscard]] constexpr std::string_view id() const { return entry().id; }
  [[nodiscard]] constexpr Severity severity() const { return entry().severity; }
  [[nodiscard]] constexpr LossArea area() const { return entry().area; }
  friend constexpr auto operator<=>(LossKind, LossKind) = default;

 private:
  [[nodiscard]] static constexpr std::size_t row_of(std::string_view id) {
    std::size_t row = 0;
    while (row < losses::kTable.size() && losses::kTable[row].id != id) ++row;
    return row;
  }
  [[nodiscard]] constexpr const LossEntry& entry() const { return losses::kTable[row_]; }
  friend struct Loss;
  std::size_t row_;
};

struct Loss {
  Loss(LossKind what, std::uint64_t how_many, std::string text)
      : kind(what), severity(what.severity()), count(how_many), detail(std::move(text)) {}
  /// As a file has it; a kind that only another version knows is "unknown_loss", and the detail names it.
  [[nodiscard]] static Loss read(std::string_view id, std::string_view severity, std::uint64_t count,
                                 std::string detail) {
    Loss loss("unknown_loss", count, std::move(detail));
    if (const std::size_t row = LossKind::row_of(id); row < losses::kTable.size())
      loss.kind.row_ = row, loss.severity = loss.kind.severity();
    else
      loss.detail = std::string(id) + ": " + loss.detail;
    for (const Severity said : {Severity::kInfo, Severity::kWarning, Severity::kError})
      if (severity_name(said) == severity) loss.severity = said;
    return loss;
  }

  LossKind kind;
  Severity severity;    ///< of the kind, but for what a file or another tool says
  std::uint64_t count;  ///< how many events (or bytes, if `detail` says so); 0 where it cannot be known
  std::string detail;   ///< one sentence for people: what, where, what it means for the numbers
};

}  // namespace rangescope::model
