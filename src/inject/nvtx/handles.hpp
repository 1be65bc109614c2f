// NVTX domains and registered strings, which their handles point to. They are made once and never
// freed. Handles are checked before use: a stale handle, or one of another tool, is unknown and
// does not crash. No lock: safe in signal handlers and in the child of a fork at any moment.
#pragma once

#include <cstdint>

#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {

/// Id of the domain of this name, made if it is new (equal names are one domain). 0, the default
/// domain, if there are too many, which is counted.
[[nodiscard]] std::uint32_t make_domain(const Name& name);
[[nodiscard]] void* domain_handle(std::uint32_t domain);
/// 0 for null and for a handle that is not ours.
[[nodiscard]] std::uint32_t domain_of(const void* handle);

/// A handle for a registered string; null without memory. Equal texts of a domain have one handle,
/// because programs register the same text in each step.
[[nodiscard]] void* make_string(std::uint32_t domain, const Name& name);
/// An empty name for null and for a handle that is not ours.
[[nodiscard]] Name string_of(const void* handle);

/// The chained tool's handle of the same domain or string; null if no tool is chained.
[[nodiscard]] void* other_domain(std::uint32_t domain);
void set_other_domain(std::uint32_t domain, void* other);
[[nodiscard]] void* other_string(const void* handle);
void set_other_string(const void* handle, void* other);

}  // namespace rangescope::inject
