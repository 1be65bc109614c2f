// What native captures lack: losses of several files, added up, and what their processes dropped.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/loss.hpp"
#include "wire/native.hpp"

namespace rangescope::read::native {

/// Losses of several files, added up by kind.
class Losses {
 public:
  void add(model::LossKind kind, std::uint64_t count, const std::string& what);
  void move_to(std::vector<model::Loss>& losses) const;

 private:
  std::map<std::string_view, model::Loss> by_kind_;
};

inline constexpr char kWindowEdge[] =
    "ranges that were open when a window began or ended: counted within it";
inline constexpr char kOpenBefore[] =
    "ranges that opened before a window and ended in it: unknown, and not counted";

/// The counts of a capture's header, by wire::native::Drop; `begun`: ranges that it has.
void add_drops(const std::uint64_t (&dropped)[wire::native::kDropReasons],
               std::uint64_t begun,
               Losses& losses);

}  // namespace rangescope::read::native
