#include "inject/handles.hpp"

#include <sched.h>

#include <atomic>

#include "inject/arena.hpp"

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

Domain domains[kMostDomains];  // 0 is the default domain
std::atomic<std::uint32_t> domain_count{1};
struct Registered {
  Name name;
  void* other;
};
Registered* pools[kPools];
void* other_domains[kMostDomains];
std::atomic<std::uint32_t> string_count{0};
std::atomic<int> making{0};

class Lock {  // domains and strings are made rarely; signal handlers never come here while the lock is held by their
              // thread
 public:
  Lock() {
    int free = 0;
    while (!making.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
      free = 0;
      sched_yield();
    }
  }
  ~Lock() { making.store(0, std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

const char* keep(const Name& name) {
  auto* text = static_cast<char*>(arena_allocate(std::size_t{name.bytes} + 1));
  if (text != nullptr && name.bytes > 0) std::memcpy(text, name.text, name.bytes);
  return text;
}

std::uint32_t find(const Name& name, std::uint32_t count) {
  for (std::uint32_t i = 1; i < count; ++i) {
    if (domains[i].hash == name.hash && domains[i].bytes == name.bytes &&
        std::memcmp(domains[i].name, name.text, name.bytes) == 0)
      return i;
  }
  return 0;
}

// Null for what is no handle of ours.
Registered* registered(const void* handle) {
  const std::uint32_t count = string_count.load(std::memory_order_acquire);
  const auto at = reinterpret_cast<std::uintptr_t>(handle);
  std::uint32_t first = 0;
  for (std::uint32_t pool = 0; pool < kPools && first < count; ++pool) {
    const auto begin = reinterpret_cast<std::uintptr_t>(__atomic_load_n(&pools[pool], __ATOMIC_ACQUIRE));
    std::uint32_t size = kFirstPool << pool;
    if (size > count - first) size = count - first;
    if (at >= begin && at < begin + size * sizeof(Registered) && (at - begin) % sizeof(Registered) == 0)
      return reinterpret_cast<Registered*>(at);
    first += kFirstPool << pool;
  }
  return nullptr;
}

}  // namespace

std::uint32_t make_domain(const Name& name) {
  const Lock lock;
  const std::uint32_t count = domain_count.load(std::memory_order_relaxed);
  if (const std::uint32_t known = find(name, count); known != 0) return known;
  const char* text = count < kMostDomains ? keep(name) : nullptr;
  if (text == nullptr) {
    capture_count(wire::native::Drop::kTooManyDomains);
    return 0;
  }
  domains[count] = {text, name.bytes, name.hash};
  domain_count.store(count + 1, std::memory_order_release);
  return count;
}

void* domain_handle(std::uint32_t domain) {
  return domain == 0 ? nullptr : domains + domain;
}

std::uint32_t domain_of(const void* handle) {
  if (handle == nullptr) return 0;
  const auto offset = reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(domains);
  const std::uintptr_t index = offset / sizeof(Domain);
  if (offset % sizeof(Domain) != 0 || index >= domain_count.load(std::memory_order_acquire)) return 0;
  return static_cast<std::uint32_t>(index);
}

const char* domain_name(std::uint32_t domain) {
  if (domain == 0 || domain >= domain_count.load(std::memory_order_acquire)) return "";
  return domains[domain].name;
}

void* make_string(const Name& name) {
  const Lock lock;
  const std::uint32_t count = string_count.load(std::memory_order_relaxed);
  std::uint32_t pool = 0;
  std::uint32_t first = 0;
  while (pool < kPools && count >= first + (kFirstPool << pool)) {
    first += kFirstPool << pool;
    ++pool;
  }
  if (pool == kPools) return nullptr;
  if (pools[pool] == nullptr) {
    auto* fresh = static_cast<Registered*>(pages_allocate(sizeof(Registered) * (std::size_t{kFirstPool} << pool)));
    if (fresh == nullptr) return nullptr;
    __atomic_store_n(&pools[pool], fresh, __ATOMIC_RELEASE);
  }
  const char* text = keep(name);
  if (text == nullptr) return nullptr;
  Registered* made = pools[pool] + (count - first);
  made->name = name;
  made->name.text = text;
  made->name.registered = true;
  string_count.store(count + 1, std::memory_order_release);
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

void handles_after_fork() {
  making.store(0, std::memory_order_relaxed);
}

}  // namespace rangescope::inject
