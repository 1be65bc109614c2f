#include "read/rocm/events.hpp"

#include "base/text.hpp"

namespace rangescope::read::rocm {
namespace {

struct CopyName {
  std::string_view camel, snake, short_name;
  model::CopyKind kind;
};
constexpr CopyName kCopies[] = {{"HostToDevice", "HOST_TO_DEVICE", "Memcpy HtoD", model::CopyKind::kHostToDevice},
                                {"DeviceToHost", "DEVICE_TO_HOST", "Memcpy DtoH", model::CopyKind::kDeviceToHost},
                                {"DeviceToDevice", "DEVICE_TO_DEVICE", "Memcpy DtoD", model::CopyKind::kDeviceToDevice},
                                {"HostToHost", "HOST_TO_HOST", "Memcpy HtoH", model::CopyKind::kHostToHost}};

const CopyName* copy_of(std::string_view name) {
  for (const CopyName& each : kCopies)
    if (name.find(each.camel) != std::string_view::npos || name.find(each.snake) != std::string_view::npos)
      return &each;
  return nullptr;
}

}  // namespace

std::string_view kernel_name(std::string_view symbol) {
  for (const std::string_view end : {" [clone .kd]", ".kd"})
    if (symbol.ends_with(end) && symbol.size() > end.size()) symbol.remove_suffix(end.size());
  return symbol;
}

model::CopyKind copy_kind(std::string_view name) {
  const CopyName* found = copy_of(name);
  return found == nullptr ? model::CopyKind::kUnknown : found->kind;
}

std::string_view copy_name(std::string_view name) {
  const CopyName* found = copy_of(name);
  return found == nullptr ? "Memcpy" : found->short_name;
}

bool is_fill(std::string_view name) {
  return name.find("Fill") != std::string_view::npos || base::lower(name).find("memset") != std::string::npos;
}

std::uint64_t copied_bytes(std::string_view arguments) {
  constexpr std::string_view kSize = "sizeBytes(";
  const std::size_t at = arguments.find(kSize);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = arguments.substr(at + kSize.size());
  return base::to_uint(rest.substr(0, rest.find(')'))).value_or(0);
}

}  // namespace rangescope::read::rocm
