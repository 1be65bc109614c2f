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

std::atomic<const Domain*> domains[kMostDomains];  // filled from 1; 0, the default domain, is null
struct Registered {
  Name name;
  std::uint32_t domain;
  Registered* next_in_bucket;
  void* other;              // the chained tool's handle
  std::atomic<bool> ready;  // everything above is written
};
std::atomic<Registered*> pools[kPools];
constexpr std::size_t kBuckets = 64 * 1024;
std::atomic<Registered*> buckets[kBuckets];
void* other_domains[kMostDomains];
std::atomic<std::uint32_t> string_count{0};

const char* keep(const Name& name) {
  auto* text = static_cast<char*>(arena_allocate(std::size_t{name.bytes} + 1));
  if (text != nullptr && name.bytes > 0)
    std::memcpy(text, name.text, name.bytes);
  return text;
}

bool same(const Domain& domain, const Name& name) {
  return domain.hash == name.hash && domain.bytes == name.bytes &&
         std::memcmp(domain.name, name.text, name.bytes) == 0;
}

const Domain* domain_at(std::uint32_t domain) {
  if (domain >= kMostDomains)
    return nullptr;
  return domains[domain].load(std::memory_order_acquire);
}

const Domain* new_domain(const Name& name) {
  auto* domain = arena_array<Domain>(1);
  if (domain == nullptr)
    return nullptr;
  const char* text = keep(name);
  if (text == nullptr)
    return nullptr;
  *domain = {text, name.bytes, name.hash};
  return domain;
}

// The pool of that number, allocated if it does not exist yet; null without memory.
Registered* pool_at(std::uint32_t pool) {
  Registered* existing = pools[pool].load(std::memory_order_acquire);
  if (existing != nullptr)
    return existing;
  const std::size_t bytes = sizeof(Registered) * (std::size_t{kFirstPool} << pool);
  auto* allocated = static_cast<Registered*>(pages_allocate(bytes));
  if (allocated == nullptr)
    return nullptr;
  if (pools[pool].compare_exchange_strong(existing, allocated))
    return allocated;
  pages_free(allocated, bytes);  // another thread was first
  return existing;
}

// Null for a handle that is not ours.
Registered* registered(const void* handle) {
  const std::uint32_t count = string_count.load(std::memory_order_acquire);
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  std::uint32_t first = 0;
  for (std::uint32_t pool = 0; pool < kPools && first < count; ++pool) {
    const auto begin =
        reinterpret_cast<std::uintptr_t>(pools[pool].load(std::memory_order_acquire));
    std::uint32_t size = kFirstPool << pool;
    if (size > count - first)
      size = count - first;
    const bool is_in_pool =
        begin != 0 && address >= begin && address < begin + size * sizeof(Registered);
    if (is_in_pool && (address - begin) % sizeof(Registered) == 0) {
      auto* string = reinterpret_cast<Registered*>(address);
      if (!string->ready.load(std::memory_order_acquire))
        return nullptr;
      return string;
    }
    first += kFirstPool << pool;
  }
  return nullptr;
}

bool same(const Registered& string, std::uint32_t domain, const Name& name) {
  const Name& text = string.name;
  if (string.domain != domain || text.hash != name.hash)
    return false;
  if (text.bytes != name.bytes || text.cut != name.cut)
    return false;
  return name.bytes == 0 || std::memcmp(text.text, name.text, name.bytes) == 0;
}

// A place in the pools that no other call uses; null if there are too many strings, or no memory.
Registered* new_place() {
  constexpr std::uint32_t kMostStrings = kFirstPool * ((1u << kPools) - 1);
  std::uint32_t number = string_count.load(std::memory_order_relaxed);
  do {
    if (number == kMostStrings)
      return nullptr;
  } while (!string_count.compare_exchange_weak(number, number + 1, std::memory_order_acq_rel));
  std::uint32_t pool = 0;
  for (; number >= kFirstPool << pool; ++pool)
    number -= kFirstPool << pool;
  Registered* const strings = pool_at(pool);
  if (strings == nullptr)
    return nullptr;
  return strings + number;
}

}  // namespace

std::uint32_t make_domain(const Name& name) {
  const KeepErrno keep_errno;
  const Domain* added = nullptr;
  for (std::uint32_t i = 1; i < kMostDomains; ++i) {
    const Domain* existing = domains[i].load(std::memory_order_acquire);
    if (existing == nullptr) {
      if (added == nullptr)
        added = new_domain(name);
      if (added == nullptr)
        break;
      if (domains[i].compare_exchange_strong(existing, added))
        return i;
    }
    if (same(*existing, name))
      return i;
  }
  capture_count(wire::native::Drop::kTooManyDomains);
  return 0;
}

void* domain_handle(std::uint32_t domain) {
  if (domain == 0)
    return nullptr;
  return domains + domain;
}

std::uint32_t domain_of(const void* handle) {
  if (handle == nullptr)
    return 0;
  const auto offset =
      reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(domains);
  const auto index = static_cast<std::uint32_t>(offset / sizeof domains[0]);
  const bool is_slot = offset % sizeof domains[0] == 0 && offset / sizeof domains[0] < kMostDomains;
  if (!is_slot || domain_at(index) == nullptr)
    return 0;
  return index;
}

const char* domain_name(std::uint32_t domain) {
  const Domain* existing = domain_at(domain);
  if (existing == nullptr)
    return "";
  return existing->name;
}

// A call that never returns (a thread of a fork's parent, a handler's siglongjmp) leaves its place
// in the pool empty, and affects no other call.
void* make_string(std::uint32_t domain, const Name& name) {
  const KeepErrno keep_errno;
  std::atomic<Registered*>& bucket = buckets[(name.hash ^ domain * 0x9e3779b9u) % kBuckets];
  Registered* const first = bucket.load(std::memory_order_acquire);
  for (Registered* string = first; string != nullptr; string = string->next_in_bucket)
    if (same(*string, domain, name))
      return string;
  const char* text = keep(name);
  if (text == nullptr)
    return nullptr;
  Registered* const added = new_place();
  if (added == nullptr)
    return nullptr;
  added->name = name;
  added->name.text = text;
  added->name.registered = true;
  added->domain = domain;
  added->ready.store(true, std::memory_order_release);
  // Another thread may add the same text at the same time: then each has its own handle.
  added->next_in_bucket = first;
  while (!bucket.compare_exchange_weak(added->next_in_bucket, added, std::memory_order_acq_rel)) {
  }
  return added;
}

Name string_of(const void* handle) {
  const Registered* string = registered(handle);
  if (string == nullptr)
    return {};
  return string->name;
}

void* other_domain(std::uint32_t domain) {
  return __atomic_load_n(&other_domains[domain], __ATOMIC_ACQUIRE);
}

void set_other_domain(std::uint32_t domain, void* other) {
  if (domain != 0)
    __atomic_store_n(&other_domains[domain], other, __ATOMIC_RELEASE);
}

void* other_string(const void* handle) {
  Registered* string = registered(handle);
  if (string == nullptr)
    return nullptr;
  return __atomic_load_n(&string->other, __ATOMIC_ACQUIRE);
}

void set_other_string(const void* handle, void* other) {
  if (Registered* string = registered(handle); string != nullptr)
    __atomic_store_n(&string->other, other, __ATOMIC_RELEASE);
}

}  // namespace rangescope::inject
