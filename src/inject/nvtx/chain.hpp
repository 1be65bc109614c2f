// Another NVTX tool behind ours, whose library RANGESCOPE_CHAIN_NVTX names. It is initialized first
// and gets every call that we take. The program holds our handles; the other tool gets its own.
//
// Without a chained tool none of this runs: the plain callbacks are attached.
#pragma once

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <type_traits>

#include "inject/nvtx/handles.hpp"

namespace rangescope::inject::chain {

/// The library that RANGESCOPE_CHAIN_NVTX names, loaded; null where there is none.
[[nodiscard]] void* library();

/// Initializes the other library, if there is one, for this client of NVTX; true if it accepted
/// the client.
bool initialize(NvtxGetExportTableFunc_t get_table);

/// The function that the other tool attached to a callback; null if it attached none.
[[nodiscard]] NvtxFunctionPointer next(unsigned module, unsigned index);

/// Id that the other tool gave the start/end range whose start is being forwarded; 0: none.
extern thread_local std::uint64_t given_range_id;

// An argument as the other tool must see it.
template <typename T>
T pass(T value) {
  return value;
}
inline nvtxDomainHandle_t pass(nvtxDomainHandle_t domain) {
  return static_cast<nvtxDomainHandle_t>(other_domain(domain_of(domain)));
}
template <typename Attributes>
struct Passed {
  Attributes copy;
  const Attributes* original;
  bool copied;
  // Both kinds of attributes are passed as pointers that the callee only reads.
  operator Attributes*() { return copied ? &copy : const_cast<Attributes*>(original); }  // NOLINT
};
template <typename Attributes>
Passed<Attributes> pass_attributes(const Attributes* a) {
  Passed<Attributes> passed{{}, a, a != nullptr && a->messageType == NVTX_MESSAGE_TYPE_REGISTERED};
  if (passed.copied) {
    passed.copy = *a;
    passed.copy.message.registered =
        static_cast<nvtxStringHandle_t>(other_string(a->message.registered));
  }
  return passed;
}
inline Passed<nvtxEventAttributes_t> pass(const nvtxEventAttributes_t* a) {
  return pass_attributes(a);
}
inline Passed<nvtxResourceAttributes_t> pass(nvtxResourceAttributes_t* a) {
  return pass_attributes(static_cast<const nvtxResourceAttributes_t*>(a));
}

// Chooses what the program gets: our result or the other tool's.
template <typename T>
T join(T own, T) {
  return own;
}
inline nvtxDomainHandle_t join(nvtxDomainHandle_t own, nvtxDomainHandle_t other) {
  set_other_domain(domain_of(own), other);
  return own;
}
inline nvtxStringHandle_t join(nvtxStringHandle_t own, nvtxStringHandle_t other) {
  set_other_string(own, other);
  return own;
}
inline nvtxResourceHandle_t join(nvtxResourceHandle_t, nvtxResourceHandle_t other) {
  return other;
}

/// A callback that calls the other tool first and then records.
template <unsigned module, unsigned index, auto own>
struct Both;
template <unsigned module, unsigned index, typename R, typename... A, R (*own)(A...)>
struct Both<module, index, own> {
  static R call(A... arguments) {
    auto* const other = reinterpret_cast<R (*)(A...)>(next(module, index));
    if (other == nullptr)
      return own(arguments...);
    if constexpr (std::is_void_v<R>) {
      other(pass(arguments)...);
      own(arguments...);
    } else {
      const R theirs = other(pass(arguments)...);
      if constexpr (std::is_same_v<R, nvtxRangeId_t>)
        given_range_id = theirs;
      const R ours = own(arguments...);
      given_range_id = 0;
      return join(ours, theirs);
    }
  }
};

}  // namespace rangescope::inject::chain
