#include "read/native/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "base/fs.hpp"
#include "base/units.hpp"
#include "read/append_allocators.hpp"
#include "read/snapshot/reader.hpp"
#include "wire/gpu.hpp"

namespace rangescope::read::native {
namespace {

namespace fs = std::filesystem;
namespace gpu = wire::gpu;

bool was_recorded(std::string_view state) {
  return state == gpu::kMemoryOn || state == gpu::kMemoryOfProgram;
}

void lose_missing(const fs::path& stream, std::string_view state, model::Session& session) {
  const bool says_nothing = state.empty() || state == gpu::kMemoryOff || state == gpu::kMemoryWaits;
  if (says_nothing)
    return;
  const std::string prefix = stream.filename().string() + ": ";
  if (was_recorded(state))
    session.losses.push_back({"memory_not_saved",
                              1,
                              prefix + "the process ended before Python could save what PyTorch "
                                       "recorded of its memory"});
  else
    session.losses.push_back({"memory_not_recorded", 1, prefix + std::string(state)});
}

void lose_dropped_events(const fs::path& stream,
                         const model::Allocators& allocators,
                         model::Session& session) {
  for (const model::Allocator& allocator : allocators.allocators) {
    if (!allocator.is_cut)
      continue;
    std::string detail = fmt::format("{}: the first allocations and frees of GPU {} were dropped",
                                     stream.filename().string(),
                                     allocator.ordinal);
    if (allocator.stated_peak_bytes > 0)
      detail += fmt::format("; the peak of the whole program was {}",
                            base::format_bytes(static_cast<double>(allocator.stated_peak_bytes)));
    session.losses.push_back({"memory_events_lost", 1, std::move(detail)});
  }
}

}  // namespace

void read_memory_file(const fs::path& stream,
                      const GpuStreamHead& head,
                      std::string_view state,
                      std::uint32_t process,
                      model::Session& session) {
  fs::path path = stream;
  path.replace_extension(gpu::kMemorySuffix);
  std::error_code error;
  if (!fs::exists(path, error))
    return lose_missing(stream, state, session);
  const auto file = base::Mapping::open(path);
  auto recorded = file.and_then([&](const base::Mapping& mapping) {
    return snapshot::read_bytes(mapping.text(), path.filename().string());
  });
  if (!recorded) {
    session.losses.push_back({"memory_not_saved", 1, base::to_string(recorded.error())});
    return;
  }
  std::ranges::move(recorded->losses, std::back_inserter(session.losses));
  lose_dropped_events(stream, recorded->allocators, session);

  const std::int64_t shift_ns = head.start_ns - head.start_unix_ns;  // the snapshot has UTC
  const auto shift = [shift_ns](std::int64_t& at_ns) {
    if (at_ns != model::kOpen)
      at_ns += shift_ns;
  };
  const auto place = [&](auto& item) {
    if constexpr (requires { item.process; }) {
      item.process = process;
      item.name = session.strings.intern(recorded->strings.view(item.name));
    }
    if constexpr (requires { item.thread; })
      item.thread = model::kNone;
    if constexpr (requires { item.first_ns; })
      shift(item.first_ns), shift(item.last_ns);
    if constexpr (requires { item.start_ns; })
      shift(item.start_ns), shift(item.end_ns);
    if constexpr (requires { item.at_ns; })
      shift(item.at_ns);
  };
  append_allocators(
      std::move(recorded->allocators), session.allocators, place, [&](model::StringId id) {
        return session.strings.intern(recorded->strings.view(id));
      });
}

}  // namespace rangescope::read::native
