#include "inject/cupti/range_path.hpp"

#include <cstring>

namespace rangescope::inject::cupti {
namespace {

std::uint64_t hash_bytes(std::uint64_t hash, const char* text, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 1099511628211ull;
  return (hash ^ 0xff) * 1099511628211ull;  // names do not run together
}

void begin(RangePath& path, std::uint32_t domain, const char* kind) {
  const char* name = domain_name(domain);
  path.domain = {name, std::strlen(name)};
  path.hash = hash_bytes(hash_bytes(14695981039346656037ull, kind, 1), path.domain.text, path.domain.bytes);
}

void add(RangePath& path, const char* text, std::size_t bytes) {
  path.names[path.depth++] = {text, bytes};
  path.hash = hash_bytes(path.hash, text, bytes);
}

}  // namespace

bool path_of_push(const Event& event, RangePath& path) {
  begin(path, event.domain, "p");
  std::size_t count = 0;
  const OpenRange* open = open_ranges(count);
  // The topmost entry is the range that is being opened: it has no name yet.
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (open[i].domain != event.domain || open[i].gone) continue;
    if (path.depth + 1 >= RangePath::kDeepest) return false;
    add(path, open[i].name, open[i].name_bytes);
  }
  add(path, event.name.text, event.name.bytes);
  return true;
}

void path_of_start(const Event& event, RangePath& path) {
  begin(path, event.domain, "s");
  add(path, event.name.text, event.name.bytes);
}

}  // namespace rangescope::inject::cupti
