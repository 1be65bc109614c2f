// Built where libdw is not there: call chains by frame pointers, addresses without names.
#include "sample/cpu/symbols.hpp"
#include "sample/cpu/unwind.hpp"

namespace rangescope::sample::cpu {

bool has_tables() {
  return false;
}

std::unique_ptr<Tables> Tables::open(const std::string& /*path*/, std::uint32_t /*pid*/) {
  return nullptr;
}

void name_each(int /*file*/,
               const std::string& /*name*/,
               std::span<const std::uint64_t> /*addresses*/,
               const std::function<void(const Named&)>& /*told*/) {}

}  // namespace rangescope::sample::cpu
