// What NVTX ranges a program had open when a result of a report began: stacks by thread, start/end
// ranges, and the domains that give them their names. Views into the file.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace rangescope::read::ncu_report {

/// What a range is called where it has no name of its own: its NVTX message.
struct NvtxMessage {
  bool registered = false;  ///< the text is the domain's string of this handle
  std::string_view text;
  std::uint64_t handle = 0;
};

struct NvtxRange {
  std::uint64_t id = 0;      ///< start/end ranges, and push/pop ranges of process scope; else 0
  std::uint32_t domain = 0;  ///< id, see NvtxState::domain_name
  std::string_view name;     ///< as stored; effective_name() falls back on the message
  std::uint64_t last_api_call =
      0;  ///< API calls of the process before it began: tells occurrences apart
  NvtxMessage message;
};

struct NvtxDomain {
  std::uint32_t id = 0;
  std::string_view name;
  std::vector<std::pair<std::uint64_t, std::string_view>> strings;  ///< registered, by handle
};

/// The push/pop stacks of one thread, domain by domain in file order, each bottom to top.
struct NvtxThread {
  std::uint64_t tid = 0;
  std::vector<NvtxRange> stack;
};

/// What was open when the result began.
struct NvtxState {
  std::vector<NvtxDomain> domains;
  std::vector<NvtxThread> threads;
  std::vector<NvtxRange> start_end;
  bool process_scope =
      false;  ///< --nvtx-push-pop-scope process: push/pop ranges of every thread, numbered

  [[nodiscard]] const NvtxDomain* domain(std::uint32_t id) const;
  /// Name, or where it is empty the message (registered strings looked up in the domain).
  [[nodiscard]] std::string_view effective_name(const NvtxRange& range) const;
};

/// Decodes the NVTX message of one result. Unknown fields are counted in `unknown`.
[[nodiscard]] NvtxState decode_nvtx(std::string_view message, std::uint64_t& unknown);

}  // namespace rangescope::read::ncu_report
