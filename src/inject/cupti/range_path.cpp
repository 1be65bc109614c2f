#include "inject/cupti/range_path.hpp"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "inject/hash.hpp"

namespace rangescope::inject::cupti {
namespace {

std::uint64_t hash_bytes(std::uint64_t hash, const char* text, std::size_t bytes) {
  return fnv1a("\xff", 1, fnv1a(text, bytes, hash));  // a separator: "a", "bc" is not "ab", "c"
}

void begin(RangePath& path, std::uint32_t domain, const char* kind) {
  const char* name = domain_name(domain);
  path.domain = {name, std::strlen(name)};
  path.hash = hash_bytes(hash_bytes(kFnvSeed, kind, 1), path.domain.text, path.domain.bytes);
}

bool is_integer(const Payload& payload) {
  switch (payload.type) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
    case NVTX_PAYLOAD_TYPE_INT64:
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
    case NVTX_PAYLOAD_TYPE_INT32: return true;
    default: return false;
  }
}

void add(
    RangePath& path, const char* text, std::size_t bytes, const Payload& payload, bool by_payload) {
  const bool uses_payload = by_payload && is_integer(payload);
  path.payloads[path.depth] = uses_payload ? payload : Payload{};
  path.names[path.depth++] = {text, bytes};
  path.hash = hash_bytes(path.hash, text, bytes);
  if (!uses_payload)
    return;
  const auto* value = reinterpret_cast<const char*>(&payload.bits);
  path.hash = hash_bytes(path.hash, value, sizeof payload.bits);
}

}  // namespace

bool path_of_push(const Event& event, bool by_payload, RangePath& path) {
  begin(path, event.domain, "p");
  std::size_t count = 0;
  const OpenRange* open = open_ranges(count);
  // The topmost entry is the range that is being opened: it has no name yet.
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (open[i].domain != event.domain || open[i].gone)
      continue;
    if (path.depth + 1 >= RangePath::kDeepest)
      return false;
    add(path, open[i].name, open[i].name_bytes, open[i].payload, by_payload);
  }
  add(path, event.name.text, event.name.bytes, event.payload, by_payload);
  return true;
}

void path_of_start(const Event& event, bool by_payload, RangePath& path) {
  begin(path, event.domain, "s");
  add(path, event.name.text, event.name.bytes, event.payload, by_payload);
}

std::size_t shown_name(const RangePath& path, std::size_t index, char* text, std::size_t capacity) {
  const counters::Piece& name = path.names[index];
  const auto bytes = std::min<std::size_t>(name.bytes, capacity);
  std::memcpy(text, name.text, bytes);
  const Payload& payload = path.payloads[index];
  if (payload.type == 0)
    return bytes;
  char suffix[32];
  const bool is_signed =
      payload.type == NVTX_PAYLOAD_TYPE_INT64 || payload.type == NVTX_PAYLOAD_TYPE_INT32;
  if (is_signed)
    std::snprintf(suffix, sizeof suffix, " [%lld]", static_cast<long long>(payload.bits));
  else
    std::snprintf(suffix, sizeof suffix, " [%llu]", static_cast<unsigned long long>(payload.bits));
  const std::size_t suffix_bytes = std::strlen(suffix);
  if (bytes + suffix_bytes > capacity)
    return bytes;
  std::memcpy(text + bytes, suffix, suffix_bytes);
  return bytes + suffix_bytes;
}

}  // namespace rangescope::inject::cupti
