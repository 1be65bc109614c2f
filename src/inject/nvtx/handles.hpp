// NVTX domains and registered strings: what their handles point to. Made once, never freed, checked
// before use, so that a handle of another tool or a stale one is an unknown handle and no crash. No
// lock: safe in signal handlers and in the child of a fork, whenever they come.
#pragma once

#include <cstdint>

#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {

/// Id of the domain of this name, made when it is new (equal names are one domain); 0, the default
/// domain, when there are too many (counted).
[[nodiscard]] std::uint32_t make_domain(const Name& name);
[[nodiscard]] void* domain_handle(std::uint32_t domain);
/// 0 for null and for what is no handle of ours.
[[nodiscard]] std::uint32_t domain_of(const void* handle);

/// A handle for a registered string; null without memory. Equal texts of a domain have one handle:
/// programs register the same text in each step.
[[nodiscard]] void* make_string(std::uint32_t domain, const Name& name);
/// An empty name for null and for what is no handle of ours.
[[nodiscard]] Name string_of(const void* handle);

/// What a chained tool gave for the same domain or string; null where none is chained.
[[nodiscard]] void* other_domain(std::uint32_t domain);
void set_other_domain(std::uint32_t domain, void* other);
[[nodiscard]] void* other_string(const void* handle);
void set_other_string(const void* handle, void* other);

}  // namespace rangescope::inject
