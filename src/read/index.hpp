// The processes, threads, streams ... of a session by what distinguishes them.
//
// A recording names these by numbers of its own, many million times; the session has each of them
// once. O(1) a lookup. Entries that the session already had are found too, by the key that they had
// at the first lookup.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/demangle.hpp"
#include "base/numbering.hpp"
#include "model/kernel_name.hpp"
#include "model/session.hpp"

namespace rangescope::read {

[[nodiscard]] inline std::array<std::uint32_t, 2> key_of(const model::Process& process) {
  return {process.pid, process.name};
}
[[nodiscard]] inline std::array<std::uint32_t, 2> key_of(const model::Thread& thread) {
  return {thread.process, thread.tid};
}
[[nodiscard]] inline std::array<std::uint32_t, 1> key_of(const model::Domain& domain) {
  return {domain.name};
}
[[nodiscard]] inline std::array<std::uint32_t, 2> key_of(const model::Device& device) {
  return {device.process, device.ordinal};
}
[[nodiscard]] inline std::array<std::uint32_t, 4> key_of(const model::Stream& stream) {
  return {stream.process, stream.device, stream.context, stream.id};
}
[[nodiscard]] inline std::array<std::uint32_t, 3> key_of(const model::KernelName& name) {
  return {name.demangled, name.short_name, name.mangled};
}
[[nodiscard]] inline model::KernelShape key_of(const model::KernelShape& shape) {
  return shape;
}

/// Items of a vector that only grows.
template <class Item>
class Placed {
 public:
  explicit Placed(std::vector<Item>& items) : items_(items) {}
  /// The index of the item that has the key of `item`, which is put behind the others where there
  /// is none.
  std::uint32_t of(const Item& item) {
    for (; seen_ < items_.size(); ++seen_)
      if (numbers_.number(key_of(items_[seen_])) == places_.size())
        places_.push_back(seen_);
    const std::uint32_t number = numbers_.number(key_of(item));
    if (number == places_.size()) {
      places_.push_back(seen_++);
      items_.push_back(item);
    }
    return places_[number];
  }

 private:
  std::vector<Item>& items_;
  base::Numbering<decltype(key_of(std::declval<const Item&>()))> numbers_;
  std::vector<std::uint32_t> places_;  ///< by number
  std::uint32_t seen_ = 0;
};

struct Index {
  explicit Index(model::Session& session)
      : strings(session.strings),
        processes(session.processes),
        threads(session.threads),
        domains(session.domains),
        devices(session.devices),
        streams(session.streams),
        kernel_names(session.kernel_names),
        shapes(session.kernel_shapes) {}

  std::uint32_t domain(std::string_view name) { return domains.of({strings.intern(name)}); }
  /// Of a kernel whose mangled name is unknown.
  std::uint32_t kernel_name(std::string_view demangled) {
    const model::StringId name = strings.intern(demangled);
    const auto [at, fresh] = plain_.try_emplace(name, 0);
    if (!fresh)
      return at->second;
    const std::string_view shorter = model::short_kernel_name(demangled);
    return at->second =
               kernel_names.of({name, shorter.empty() ? name : strings.intern(shorter), 0});
  }

  std::uint32_t mangled_kernel_name(std::string_view mangled) {
    const model::StringId name = strings.intern(mangled);
    const std::string plain = base::demangle(std::string(mangled));
    return kernel_names.of(
        {strings.intern(plain), strings.intern(model::short_kernel_name(plain)), name});
  }

  model::Strings& strings;
  Placed<model::Process> processes;  ///< by pid and name
  Placed<model::Thread> threads;
  Placed<model::Domain> domains;
  Placed<model::Device> devices;  ///< by process and ordinal
  Placed<model::Stream> streams;
  Placed<model::KernelName> kernel_names;
  Placed<model::KernelShape> shapes;

 private:
  std::unordered_map<model::StringId, std::uint32_t>
      plain_;  ///< kernel names that were given as text
};

}  // namespace rangescope::read
