#include "read/xla/reader.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "read/kineto/build.hpp"

namespace rangescope::read::xla {
namespace {

using protozero::pbf_reader;
using Names = std::unordered_map<std::int64_t, std::string_view>;

constexpr std::int64_t kMostNs = std::int64_t{1} << 62;

/// Field number and wire type as one number, for switches: what has another type is skipped.
constexpr std::uint32_t varint(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t bytes(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}

std::string_view text(pbf_reader& reader) {
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}

/// An entry of a map from ids to metadata, of which only names matter.
void add_name(pbf_reader entry, Names& names) {
  std::int64_t id = 0;
  std::string_view name;
  while (entry.next()) {
    if (entry.tag_and_type() == varint(1)) {
      id = entry.get_int64();
    } else if (entry.tag_and_type() == bytes(2)) {
      for (pbf_reader metadata = entry.get_message(); metadata.next();)
        if (metadata.tag_and_type() == bytes(2))
          name = text(metadata);
        else
          metadata.skip();
    } else {
      entry.skip();
    }
  }
  names[id] = name;
}

/// "grid:16,1,1" of "regs:32 static_shared:0 grid:16,1,1 block:64,1,1".
std::array<std::uint32_t, 3> triple(std::string_view details, std::string_view key) {
  std::array<std::uint32_t, 3> out{};
  const std::size_t at = details.find(key);
  if (at == std::string_view::npos) return out;
  const std::string_view rest = details.substr(at + key.size());
  const auto parts = base::split(rest.substr(0, rest.find_first_of(" \n")), ',');
  for (std::size_t i = 0; i < out.size() && i < parts.size(); ++i)
    out.at(i) = static_cast<std::uint32_t>(std::min<std::uint64_t>(base::to_uint(parts[i]).value_or(0), UINT32_MAX));
  return out;
}

std::optional<std::uint64_t> number(std::string_view details, std::string_view key) {
  const std::size_t at = details.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = details.substr(at + key.size());
  return base::to_uint(rest.substr(0, rest.find_first_of(" \n")));
}

struct Line {
  std::int64_t id = 0, begin_ns = 0;
  std::string_view name;
  std::vector<pbf_reader> events;
};

class SpaceReader {
 public:
  void plane(pbf_reader reader) {
    name_ = {};
    events_.clear();
    stats_.clear();
    std::vector<Line> lines;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes(2): name_ = text(reader); break;
        case bytes(3): lines.push_back(line(reader.get_message())); break;
        case bytes(4): add_name(reader.get_message(), events_); break;
        case bytes(5): add_name(reader.get_message(), stats_); break;
        default: reader.skip();
      }
    }
    const bool device = name_.starts_with("/device:");
    if (!device && !name_.starts_with("/host:")) return;
    const std::size_t colon = name_.rfind(':');
    device_ = static_cast<std::uint32_t>(base::to_uint(name_.substr(colon + 1)).value_or(0));
    const bool tpu = name_.starts_with("/device:TPU");
    for (const Line& each : lines) {
      if (device && !(tpu ? each.name == "XLA Ops" : each.name.starts_with("Stream"))) continue;
      if (!device) name_thread(each);
      for (const pbf_reader& one : each.events) event(each, one, device);
    }
  }

  [[nodiscard]] std::uint64_t known() const { return builder_.known(); }
  model::Session finish() { return builder_.finish(); }

 private:
  static Line line(pbf_reader reader) {
    Line out;
    std::string_view shown;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case varint(1): out.id = reader.get_int64(); break;
        case bytes(2): out.name = text(reader); break;
        case varint(3): out.begin_ns = reader.get_int64(); break;
        case bytes(4): out.events.push_back(reader.get_message()); break;
        case bytes(11): shown = text(reader); break;
        default: reader.skip();
      }
    }
    if (out.name.empty()) out.name = shown;
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

  void event(const Line& of, pbf_reader reader, bool device) {
    kineto::Event out;
    std::int64_t offset_ps = 0, duration_ps = 0;
    std::string_view kernel, copy, set;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case varint(1): {
          const auto found = events_.find(reader.get_int64());
          if (found != events_.end()) out.name = found->second;
          break;
        }
        case varint(2): offset_ps = reader.get_int64(); break;
        case varint(3): duration_ps = reader.get_int64(); break;
        case bytes(4): stat(reader.get_message(), out, kernel, copy, set); break;
        default: reader.skip();
      }
    }
    if (of.begin_ns < 0 || of.begin_ns >= kMostNs || offset_ps < 0 || duration_ps < 0) return builder_.bad();
    out.phase = 'X';
    out.start_ns = of.begin_ns + offset_ps / 1000;
    out.length_ns = (offset_ps + std::min(duration_ps, INT64_MAX - offset_ps)) / 1000 - offset_ps / 1000;
    out.fraction = true;
    out.pid = 0;
    out.tid = static_cast<std::uint32_t>(of.id);
    if (device) {
      out.device = device_;
      out.stream = out.tid;
      const bool is_copy = !copy.empty() || out.name.starts_with("Memcpy");
      const bool is_set = !set.empty() || out.name.starts_with("Memset");
      out.category = is_copy ? "gpu_memcpy" : is_set ? "gpu_memset" : "kernel";
      if (const auto size = number(is_copy ? copy : set, "size:"); size && *size < (std::uint64_t{1} << 62))
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
    } else {
      out.category = "user_annotation";
    }
    builder_.add(out);
  }

  void stat(pbf_reader reader, kineto::Event& out, std::string_view& kernel, std::string_view& copy,
            std::string_view& set) const {
    std::string_view name, value;
    std::int64_t whole = -1;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case varint(1): {
          const auto found = stats_.find(reader.get_int64());
          if (found != stats_.end()) name = found->second;
          break;
        }
        case varint(3):
        case varint(4): whole = reader.get_int64(); break;
        case bytes(5): value = text(reader); break;
        case varint(7): {
          const auto found = stats_.find(reader.get_int64());
          if (found != stats_.end()) value = found->second;
          break;
        }
        default: reader.skip();
      }
    }
    if (name == "correlation_id" && whole > 0 && whole < UINT32_MAX)
      out.correlation = static_cast<std::uint32_t>(whole);
    if (name == "kernel_details") kernel = value;
    if (name == "memcpy_details") copy = value;
    if (name == "memset_details") set = value;
  }

  kineto::Events builder_;
  std::string_view name_;
  Names events_, stats_;
  std::uint32_t device_ = 0;
};

}  // namespace

base::Result<model::Session> read_bytes(std::string_view data, const std::string& name) {
  SpaceReader reader;
  std::string broken, host;
  try {
    for (pbf_reader space(data.data(), data.size()); space.next();) {
      if (space.tag_and_type() == bytes(1))
        reader.plane(space.get_message());
      else if (space.tag_and_type() == bytes(4))
        host = text(space);
      else
        space.skip();
    }
  } catch (const protozero::exception& error) {
    broken = error.what();
  }
  if (reader.known() == 0)
    return base::fail(base::Code::kBadData,
                      broken.empty() ? "a profile of XLA without kernels, calls and ranges"
                                     : "this profile of XLA cannot be read: " + broken,
                      name, "Give what jax.profiler.trace(DIR) wrote, and check that it was copied whole.");
  model::Session session = reader.finish();
  if (!broken.empty())
    session.losses.push_back({"torn_tail", 1, "the profile ends early: " + broken + "; what follows is missing"});
  for (model::Process& process : session.processes) process.host = session.strings.intern(host);
  session.sources.push_back({name, "xplane", "XLA profiler", {}});
  return session;
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path&) {
  const std::string_view whole(reinterpret_cast<const char*>(head.data()), head.size());
  if (!whole.starts_with('\x0a')) return false;  // field 1 of XSpace: a plane, whose name comes first
  const std::string_view begin = whole.substr(0, 64);
  for (const std::string_view name : {"/host:", "/device:", "Task Environment"})
    if (begin.find(name) != std::string_view::npos) return true;
  return false;
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  const auto mapping = TRY(base::Mapping::open(path));
  const auto data = mapping.bytes();
  return read_bytes({reinterpret_cast<const char*>(data.data()), data.size()}, path.string());
}

const Reader kReader{"xplane", sniff, read};

}  // namespace rangescope::read::xla
