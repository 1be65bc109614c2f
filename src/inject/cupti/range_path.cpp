#include "inject/cupti/range_path.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstring>

#include "inject/hash.hpp"

namespace rangescope::inject::cupti {
namespace {

std::uint64_t hash_bytes(std::uint64_t hash, const char* text, std::size_t bytes) {
  return fnv1a("\xff", 1, fnv1a(text, bytes, hash));  // names do not run together
}

void begin(RangePath& path, std::uint32_t domain, const char* kind) {
  const char* name = domain_name(domain);
  path.domain = {name, std::strlen(name)};
  path.hash = hash_bytes(hash_bytes(kFnvSeed, kind, 1), path.domain.text, path.domain.bytes);
}

bool is_whole(const Payload& payload) {
  return payload.type == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 ||
         payload.type == NVTX_PAYLOAD_TYPE_INT64 ||
         payload.type == NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 ||
         payload.type == NVTX_PAYLOAD_TYPE_INT32;
}

void add(RangePath& path, const char* text, std::size_t bytes, const Payload& payload,
         bool by_payload) {
  const bool told_apart = by_payload && is_whole(payload);
  path.payloads[path.depth] = told_apart ? payload : Payload{};
  path.names[path.depth++] = {text, bytes};
  path.hash = hash_bytes(path.hash, text, bytes);
  if (told_apart)
    path.hash =
        hash_bytes(path.hash, reinterpret_cast<const char*>(&payload.bits), sizeof payload.bits);
}

}  // namespace

bool path_of_push(const Event& event, bool by_payload, RangePath& path) {
  begin(path, event.domain, "p");
  std::size_t count = 0;
  const OpenRange* open = open_ranges(count);
  // The topmost entry is the range that is being opened: it has no name yet.
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (open[i].domain != event.domain || open[i].gone) continue;
    if (path.depth + 1 >= RangePath::kDeepest) return false;
    add(path, open[i].name, open[i].name_bytes, open[i].payload, by_payload);
  }
  add(path, event.name.text, event.name.bytes, event.payload, by_payload);
  return true;
}

void path_of_start(const Event& event, bool by_payload, RangePath& path) {
  begin(path, event.domain, "s");
  add(path, event.name.text, event.name.bytes, event.payload, by_payload);
}

std::size_t shown_name(const RangePath& path, std::size_t index, char* text, std::size_t most) {
  const counters::Piece& name = path.names[index];
  const std::size_t bytes = name.bytes < most ? name.bytes : most;
  std::memcpy(text, name.text, bytes);
  const Payload& payload = path.payloads[index];
  if (payload.type == 0) return bytes;
  char suffix[32];
  const bool is_signed =
      payload.type == NVTX_PAYLOAD_TYPE_INT64 || payload.type == NVTX_PAYLOAD_TYPE_INT32;
  const int more = is_signed ? std::snprintf(suffix, sizeof suffix, " [%lld]",
                                             static_cast<long long>(payload.bits))
                             : std::snprintf(suffix, sizeof suffix, " [%llu]",
                                             static_cast<unsigned long long>(payload.bits));
  const auto added = static_cast<std::size_t>(more > 0 ? more : 0);
  if (bytes + added > most) return bytes;
  std::memcpy(text + bytes, suffix, added);
  return bytes + added;
}

}  // namespace rangescope::inject::cupti
