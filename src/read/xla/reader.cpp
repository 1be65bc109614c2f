#include "read/xla/reader.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/find.hpp"
#include "base/fs.hpp"
#include "base/text.hpp"
#include "read/kineto/build.hpp"
#include "read/protobuf.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::xla {
namespace {

using proto::each;
using proto::number;
using proto::read;
using proto::text;
using Names = std::unordered_map<std::int64_t, std::string_view>;

constexpr std::int64_t kMostNs = std::int64_t{1} << 62;

/// An entry of a map from ids to metadata, of which only names matter.
void add_name(std::string_view entry, Names& names) {
  std::int64_t id = 0;
  std::string_view name;
  std::uint64_t unused = 0;
  read(entry, unused, number(1, id), each(2, [&](std::string_view metadata) {
         read(metadata, unused, text(2, name));
       }));
  names[id] = name;
}

/// "grid:16,1,1" of "regs:32 static_shared:0 grid:16,1,1 block:64,1,1".
std::array<std::uint32_t, 3> triple(std::string_view details, std::string_view key) {
  std::array<std::uint32_t, 3> out{};
  const std::size_t found = details.find(key);
  if (found == std::string_view::npos)
    return out;
  const std::string_view rest = details.substr(found + key.size());
  const auto parts = base::split(rest.substr(0, rest.find_first_of(" \n")), ',');
  for (std::size_t i = 0; i < out.size() && i < parts.size(); ++i)
    out.at(i) = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(base::to_uint(parts[i]).value_or(0), UINT32_MAX));
  return out;
}

std::optional<std::uint64_t> number(std::string_view details, std::string_view key) {
  const std::size_t found = details.find(key);
  if (found == std::string_view::npos)
    return std::nullopt;
  const std::string_view rest = details.substr(found + key.size());
  return base::to_uint(rest.substr(0, rest.find_first_of(" \n")));
}

struct Line {
  std::int64_t id = 0, begin_ns = 0;
  std::string_view name;
  std::vector<std::string_view> events;
};

class SpaceReader {
 public:
  void plane(std::string_view message) {
    name_ = {};
    events_.clear();
    stats_.clear();
    std::vector<Line> lines;
    read(message,
         unused_,
         text(2, name_),
         each(3, [&](std::string_view m) { lines.push_back(line(m)); }),
         each(4, [&](std::string_view m) { add_name(m, events_); }),
         each(5, [&](std::string_view m) { add_name(m, stats_); }));
    const bool device = name_.starts_with("/device:");
    if (!device && !name_.starts_with("/host:"))
      return;
    const std::size_t colon = name_.rfind(':');
    device_ = static_cast<std::uint32_t>(base::to_uint(name_.substr(colon + 1)).value_or(0));
    const bool is_tpu = name_.starts_with("/device:TPU");
    for (const Line& line : lines) {
      const bool has_work = is_tpu ? line.name == "XLA Ops" : line.name.starts_with("Stream");
      if (device && !has_work)
        continue;
      if (!device)
        name_thread(line);
      for (const std::string_view bytes : line.events)
        event(line, bytes, device);
    }
  }

  [[nodiscard]] std::uint64_t known() const { return builder_.known(); }
  /// What starts the profiler returns into the trace, with the seconds that starting took: the
  /// program's part follows.
  model::Session finish() {
    model::Session session = builder_.finish();
    if (std::erase_if(session.ranges,
                      [&](const auto& range) { return range.end_ns <= started_ns_; }) > 0)
      set_extents(session);
    return session;
  }

 private:
  Line line(std::string_view message) {
    Line out;
    std::string_view shown;
    read(message,
         unused_,
         number(1, out.id),
         text(2, out.name),
         number(3, out.begin_ns),
         each(4, [&](std::string_view m) { out.events.push_back(m); }),
         text(11, shown));
    if (out.name.empty())
      out.name = shown;
    return out;
  }

  void name_thread(const Line& of) {
    kineto::Event event;
    event.phase = 'M';
    event.name = "thread_name";
    event.label = of.name;
    event.pid = 0;
    event.tid = static_cast<std::uint32_t>(of.id);
    builder_.add(event);
  }

  void event(const Line& of, std::string_view message, bool device) {
    kineto::Event out;
    std::optional<std::int64_t> id;
    std::int64_t offset_ps = 0, duration_ps = 0;
    std::string_view kernel, copy, set;
    read(message,
         unused_,
         number(1, id),
         number(2, offset_ps),
         number(3, duration_ps),
         each(4, [&](std::string_view m) { stat(m, out, kernel, copy, set); }));
    out.name = name_in(events_, id);
    if (of.begin_ns < 0 || of.begin_ns >= kMostNs || offset_ps < 0)
      return builder_.bad();
    if (duration_ps < 0)
      return builder_.bad_length();
    out.phase = 'X';
    out.start_ns = of.begin_ns + offset_ps / 1000;
    out.length_ns =
        (offset_ps + std::min(duration_ps, INT64_MAX - offset_ps)) / 1000 - offset_ps / 1000;
    out.fraction = true;
    out.pid = 0;
    out.tid = static_cast<std::uint32_t>(of.id);
    if (device) {
      out.device = device_;
      out.stream = out.tid;
      const bool is_copy = !copy.empty() || out.name.starts_with("Memcpy");
      const bool is_set = !set.empty() || out.name.starts_with("Memset");
      out.category = "kernel";
      if (is_set)
        out.category = "gpu_memset";
      if (is_copy)
        out.category = "gpu_memcpy";
      if (const auto size = number(is_copy ? copy : set, "size:");
          size && *size < (std::uint64_t{1} << 62))
        out.bytes = static_cast<std::int64_t>(*size);
      out.grid = triple(kernel, "grid:");
      out.block = triple(kernel, "block:");
      if (const auto registers = number(kernel, "regs:"); registers && *registers < UINT32_MAX)
        out.registers = static_cast<std::uint32_t>(*registers);
    } else if (out.correlation) {
      out.category = "cuda_driver";
    } else if (out.name.starts_with('$')) {
      out.category = "python_function";
      out.name.remove_prefix(1);
      if (out.name.starts_with("profiler.py:") && out.name.ends_with(" start_trace")) {
        started_ns_ = std::max(started_ns_, *out.start_ns + *out.length_ns);
        return;
      }
    } else {
      out.category = "user_annotation";
    }
    builder_.add(out);
  }

  static std::string_view name_in(const Names& names, std::optional<std::int64_t> id) {
    if (!id)
      return {};
    return base::find_or(names, *id, {});
  }

  void stat(std::string_view message,
            kineto::Event& out,
            std::string_view& kernel,
            std::string_view& copy,
            std::string_view& set) {
    std::optional<std::int64_t> id, reference;
    std::string_view value;
    std::int64_t integer = -1;
    read(message,
         unused_,
         number(1, id),
         number(3, integer),
         number(4, integer),
         text(5, value),
         number(7, reference));
    if (reference)
      value = name_in(stats_, reference);
    const std::string_view name = name_in(stats_, id);
    if (name == "correlation_id" && integer > 0 && integer < UINT32_MAX)
      out.correlation = static_cast<std::uint32_t>(integer);
    if (name == "kernel_details")
      kernel = value;
    if (name == "memcpy_details")
      copy = value;
    if (name == "memset_details")
      set = value;
  }

  kineto::Events builder_;
  std::string_view name_;
  Names events_, stats_;
  std::uint32_t device_ = 0;
  std::int64_t started_ns_ = 0;
  std::uint64_t unused_ = 0;  // fields
};

}  // namespace

base::Result<model::Session> read_bytes(std::string_view data, const std::string& name) {
  SpaceReader reader;
  std::string broken;
  std::string_view host;
  try {
    std::uint64_t unused = 0;
    proto::read(data,
                unused,
                proto::each(1, [&](std::string_view m) { reader.plane(m); }),
                proto::text(4, host));
  } catch (const protozero::exception& error) {
    broken = error.what();
  }
  if (reader.known() == 0)
    return base::fail(
        base::Code::kBadData,
        broken.empty() ? "a profile of XLA without kernels, calls and ranges"
                       : "this profile of XLA cannot be read: " + broken,
        name,
        "Give what jax.profiler.trace(DIR) wrote, and check that it was copied whole.");
  model::Session session = reader.finish();
  if (!broken.empty())
    session.losses.push_back(
        {"torn_tail", 1, "the profile ends early: " + broken + "; what follows is missing"});
  for (model::Process& process : session.processes)
    process.host = session.strings.intern(host);
  session.sources.push_back({name, "xplane", "XLA profiler", {}});
  return session;
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path&) {
  const std::string_view whole(reinterpret_cast<const char*>(head.data()), head.size());
  if (!whole.starts_with('\x0a'))
    return false;  // field 1 of XSpace: a plane, whose name comes first
  const std::string_view begin = whole.substr(0, 64);
  for (const std::string_view name : {"/host:", "/device:", "Task Environment"})
    if (begin.find(name) != std::string_view::npos)
      return true;
  return false;
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  const auto mapping = TRY(base::Mapping::open(path));
  const auto data = mapping.bytes();
  return read_bytes({reinterpret_cast<const char*>(data.data()), data.size()}, path.string());
}

const Reader kReader{"xplane", sniff, read};

}  // namespace rangescope::read::xla
