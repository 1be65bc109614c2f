#include "inject/nvtx/handles.hpp"

#include <atomic>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/quiet.hpp"

namespace rangescope::inject {
namespace {

constexpr std::uint32_t kMostDomains = 4096;
constexpr std::uint32_t kFirstPool = 1024;  // registered strings: pool k holds kFirstPool << k
constexpr std::uint32_t kPools = 20;

struct Domain {
  const char* name;
  std::uint32_t bytes;
  std::uint32_t hash;
};

std::atomic<const Domain*>
    domains[kMostDomains];  // 0, the default domain, stays null; filled from 1 on
struct Registered {
  Name name;
  std::uint32_t domain;
  Registered* before;  // in its bucket
  void* other;
  std::atomic<bool> ready;  // the name is whole
};
std::atomic<Registered*> pools[kPools];
constexpr std::size_t kBuckets = 64 * 1024;
std::atomic<Registered*> buckets[kBuckets];
void* other_domains[kMostDomains];
std::atomic<std::uint32_t> string_count{0};

const char* keep(const Name& name) {
  auto* text = static_cast<char*>(arena_allocate(std::size_t{name.bytes} + 1));
  if (text != nullptr && name.bytes > 0) std::memcpy(text, name.text, name.bytes);
  return text;
}

bool same(const Domain& domain, const Name& name) {
  return domain.hash == name.hash && domain.bytes == name.bytes &&
         std::memcmp(domain.name, name.text, name.bytes) == 0;
}

const Domain* domain_at(std::uint32_t domain) {
  return domain < kMostDomains ? domains[domain].load(std::memory_order_acquire) : nullptr;
}

const Domain* new_domain(const Name& name) {
  auto* made = arena_array<Domain>(1);
  const char* text = made != nullptr ? keep(name) : nullptr;
  if (text == nullptr) return nullptr;
  *made = {text, name.bytes, name.hash};
  return made;
}

// The pool of that number, made where it is not there yet; null for want of memory.
Registered* pool_at(std::uint32_t pool) {
  Registered* known = pools[pool].load(std::memory_order_acquire);
  if (known != nullptr) return known;
  const std::size_t bytes = sizeof(Registered) * (std::size_t{kFirstPool} << pool);
  auto* fresh = static_cast<Registered*>(pages_allocate(bytes));
  if (fresh == nullptr || pools[pool].compare_exchange_strong(known, fresh)) return fresh;
  pages_free(fresh, bytes);
  return known;
}

// Null for what is no handle of ours.
Registered* registered(const void* handle) {
  const std::uint32_t count = string_count.load(std::memory_order_acquire);
  const auto at = reinterpret_cast<std::uintptr_t>(handle);
  std::uint32_t first = 0;
  for (std::uint32_t pool = 0; pool < kPools && first < count; ++pool) {
    const auto begin =
        reinterpret_cast<std::uintptr_t>(pools[pool].load(std::memory_order_acquire));
    std::uint32_t size = kFirstPool << pool;
    if (size > count - first) size = count - first;
    if (begin != 0 && at >= begin && at < begin + size * sizeof(Registered) &&
        (at - begin) % sizeof(Registered) == 0) {
      auto* found = reinterpret_cast<Registered*>(at);
      return found->ready.load(std::memory_order_acquire) ? found : nullptr;
    }
    first += kFirstPool << pool;
  }
  return nullptr;
}

}  // namespace

std::uint32_t make_domain(const Name& name) {
  const KeepErrno keep_errno;
  const Domain* fresh = nullptr;
  for (std::uint32_t i = 1; i < kMostDomains; ++i) {
    const Domain* known = domains[i].load(std::memory_order_acquire);
    if (known == nullptr) {
      if (fresh == nullptr) fresh = new_domain(name);
      if (fresh == nullptr) break;
      if (domains[i].compare_exchange_strong(known, fresh)) return i;
    }
    if (same(*known, name)) return i;
  }
  capture_count(wire::native::Drop::kTooManyDomains);
  return 0;
}

void* domain_handle(std::uint32_t domain) {
  return domain == 0 ? nullptr : domains + domain;
}

std::uint32_t domain_of(const void* handle) {
  if (handle == nullptr) return 0;
  const auto offset =
      reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(domains);
  const std::uintptr_t index = offset / sizeof domains[0];
  if (offset % sizeof domains[0] != 0 || index >= kMostDomains) return 0;
  return domain_at(static_cast<std::uint32_t>(index)) != nullptr ? static_cast<std::uint32_t>(index)
                                                                 : 0;
}

const char* domain_name(std::uint32_t domain) {
  const Domain* known = domain_at(domain);
  return known != nullptr ? known->name : "";
}

// Each call has a place of its own from the start: one that never comes back (a thread of a fork's
// parent, a handler's siglongjmp) leaves its place empty.
void* make_string(std::uint32_t domain, const Name& name) {
  const KeepErrno keep_errno;
  std::atomic<Registered*>& bucket = buckets[(name.hash ^ domain * 0x9e3779b9u) % kBuckets];
  Registered* const first = bucket.load(std::memory_order_acquire);
  for (Registered* known = first; known != nullptr; known = known->before)
    if (known->domain == domain && known->name.hash == name.hash &&
        known->name.bytes == name.bytes && known->name.cut == name.cut &&
        (name.bytes == 0 || std::memcmp(known->name.text, name.text, name.bytes) == 0))
      return known;
  const char* text = keep(name);
  if (text == nullptr) return nullptr;
  std::uint32_t at = string_count.load(std::memory_order_relaxed);
  constexpr std::uint32_t kMost = kFirstPool * ((1u << kPools) - 1);
  do {
    if (at == kMost) return nullptr;
  } while (!string_count.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel));
  std::uint32_t pool = 0;
  for (; at >= kFirstPool << pool; ++pool) at -= kFirstPool << pool;
  Registered* made = pool_at(pool);
  if (made == nullptr) return nullptr;
  made += at;
  made->name = name;
  made->name.text = text;
  made->name.registered = true;
  made->domain = domain;
  made->ready.store(true, std::memory_order_release);
  made->before =
      first;  // what another thread puts there meanwhile may be the same text: each has its handle
  while (!bucket.compare_exchange_weak(made->before, made, std::memory_order_acq_rel)) {
  }
  return made;
}

Name string_of(const void* handle) {
  const Registered* known = registered(handle);
  return known != nullptr ? known->name : Name{};
}

void* other_domain(std::uint32_t domain) {
  return __atomic_load_n(&other_domains[domain], __ATOMIC_ACQUIRE);
}

void set_other_domain(std::uint32_t domain, void* other) {
  if (domain != 0) __atomic_store_n(&other_domains[domain], other, __ATOMIC_RELEASE);
}

void* other_string(const void* handle) {
  Registered* known = registered(handle);
  return known != nullptr ? __atomic_load_n(&known->other, __ATOMIC_ACQUIRE) : nullptr;
}

void set_other_string(const void* handle, void* other) {
  if (Registered* known = registered(handle); known != nullptr)
    __atomic_store_n(&known->other, other, __ATOMIC_RELEASE);
}

}  // namespace rangescope::inject
