#include "read/ncu/report/file.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "read/ncu/report/unpack.hpp"
#include "read/ncu/report/wire.hpp"

namespace rangescope::read::ncu_report {
namespace {

using base::Code;
using base::fail;
using proto::each;
using proto::Field;
using proto::number;
using proto::text;

constexpr std::string_view kMagic{"NVR\0", 4};
constexpr std::size_t kMostHeader = 1024;  // the file header is 2 bytes in real files
constexpr std::uint64_t kLeastVersion = 1, kMostVersion = 64;

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

/// The version in the file header at the start of `head`; nothing when there is none that could be
/// one.
std::optional<std::uint32_t> header_version(std::string_view head) {
  if (!head.starts_with(kMagic) || head.size() < 8)
    return std::nullopt;
  const std::uint32_t size = little_endian(head.substr(4));
  if (size == 0 || size > kMostHeader || head.size() - 8 < size)
    return std::nullopt;
  std::uint64_t version = 0, unknown = 0;
  const auto parsed = proto::parse_message(
      "", [&] { proto::read(head.substr(8, size), unknown, number(1, version)); });
  if (!parsed || version < kLeastVersion || version > kMostVersion)
    return std::nullopt;
  return static_cast<std::uint32_t>(version);
}

std::string at(const std::string& path, std::uint64_t offset) {
  return path + ": offset " + std::to_string(offset);
}

DeviceInfo read_device(std::string_view message, std::uint64_t& unknown) {
  DeviceInfo device;
  proto::read(message,
              unknown,
              number(1, device.id),
              text(2, device.name),
              each(3, [&](std::string_view m) {
                Attribute& attribute = device.attributes.emplace_back();
                proto::read(
                    m, unknown, text(1, attribute.name), each(2, [&](std::string_view value) {
                      attribute.value = proto::read_value(value, unknown);
                    }));
              }));
  return device;
}

}  // namespace

namespace proto {

Value read_value(std::string_view message, std::uint64_t& unknown) {
  Value value;
  for_each_field(message, unknown, [&](Field& field) {
    switch (field.key()) {
      case bytes(1): value = {ValueType::kString, 0, 0, field.text()}; return true;
      case fixed32(2): value = {ValueType::kFloat, field.reader.get_float(), 0, {}}; return true;
      case fixed64(3): value = {ValueType::kDouble, field.reader.get_double(), 0, {}}; return true;
      case varint(4): value = {ValueType::kUint32, 0, field.number32(), {}}; return true;
      case varint(5): value = {ValueType::kUint64, 0, field.number(), {}}; return true;
      default: return false;
    }
  });
  return value;
}

}  // namespace proto

/// Walks the log of blocks; everything is bounds-checked against the file, nothing is allocated by
/// a length in it.
class BlockWalker {
 public:
  explicit BlockWalker(File& file) : file_(file) {}

  void walk(std::uint64_t offset) {
    const std::string_view bytes = file_.bytes_;
    while (offset < bytes.size()) {
      if (bytes.size() - offset < 4)
        return torn(offset, bytes.size() - offset);
      const std::uint32_t size = little_endian(bytes.substr(offset, 4));
      if (size > bytes.size() - offset - 4)
        return torn(offset, bytes.size() - offset);
      const auto header = proto::parse_message(
          at(file_.path, offset), [&] { read_header(bytes.substr(offset + 4, size)); });
      if (!header)
        return damaged(offset, "block header cannot be read");
      offset += 4 + size;
      const std::uint64_t available = bytes.size() - offset;
      read_entries(offset, std::min(payload_, available));
      if (payload_ > available)
        return torn(offset, available);
      offset += payload_;
      file_.passed(offset);  // neighbours of the headers are mapped along with them
    }
  }

 private:
  void read_header(std::string_view message) {
    sources_ = kernels_ = ranges_ = command_lists_ = graphs_ = payload_ = 0;
    std::optional<std::string_view> process, session;
    proto::read(message,
                file_.unknown_fields,
                number(1, sources_),
                number(2, kernels_),
                text(3, session),
                each(4, [&](std::string_view m) { read_strings(m); }),
                number(5, payload_),
                text(6, process),
                number(7, ranges_),
                number(8, command_lists_),
                number(9, graphs_));
    process_ = find_process(process.value_or(std::string_view{}));
    if (session)
      read_session(*session);
  }

  /// Blocks without a process block (2019) are of process 0 without a name.
  std::uint32_t find_process(std::string_view message) {
    const auto [known, is_new] = by_message_.try_emplace(message, 0);
    if (!is_new)
      return known->second;
    ProcessInfo info;
    proto::read(
        message, file_.unknown_fields, number(1, info.pid), text(2, info.host), text(3, info.name));
    const auto [same, added] =
        by_name_.try_emplace(std::tuple(info.pid, info.host, info.name),
                             static_cast<std::uint32_t>(file_.processes.size()));
    if (added)
      file_.processes.push_back(info);
    return known->second = same->second;
  }

  void read_strings(std::string_view message) {
    proto::read(message, file_.unknown_fields, each(1, [&](std::string_view m) {
                  file_.strings_.push_back(m);
                }));
  }

  void read_session(std::string_view message) {
    SessionInfo& session = file_.session;
    // Session details vary most and matter least: unknown fields in them are not worth a word.
    std::uint64_t skipped = 0, time = 0;
    proto::read(message,
                skipped,
                number(2, time),
                each(6,
                     [&](std::string_view m) {
                       DeviceInfo device = read_device(m, skipped);
                       device.process = process_;
                       if (devices_.emplace(device.process, device.id).second)
                         session.devices.push_back(std::move(device));
                     }),
                each(8,
                     [&](std::string_view m) {
                       VersionInfo version;
                       proto::read(m, skipped, text(1, version.provider), text(2, version.version));
                       if (versions_.emplace(version.provider, version.version).second)
                         session.versions.push_back(version);
                     }),
                text(11, session.command_line));
    if (session.creation_time == 0)
      session.creation_time = time;
  }

  void read_entries(std::uint64_t offset, std::uint64_t size) {
    const std::uint64_t end = offset + size;
    const auto next = [&](std::uint64_t& entry, std::uint32_t& length) {
      if (end - offset < 4)
        return false;
      length = little_endian(file_.bytes_.substr(offset, 4));
      if (length > end - offset - 4)
        return false;
      entry = offset + 4;
      offset += 4 + std::uint64_t{length};
      return true;
    };
    const auto take = [&](std::uint64_t count, auto&& add) {
      for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t entry = 0;
        std::uint32_t length = 0;
        if (!next(entry, length)) {
          missing_ += count - i;
          return;
        }
        add(entry, length);
      }
    };
    const auto results = [&](ResultKind kind) {
      return [this, kind](std::uint64_t entry, std::uint32_t length) {
        file_.results.push_back({kind, process_, entry, length});
      };
    };
    missing_ = 0;
    take(sources_, [](std::uint64_t, std::uint32_t) {});
    take(kernels_, results(ResultKind::kKernel));
    take(ranges_, results(ResultKind::kRange));
    take(command_lists_, results(ResultKind::kCommandList));
    take(graphs_, results(ResultKind::kGraph));
    if (missing_ > 0) {
      file_.losses.push_back(
          {"damaged_block",
           missing_,
           "entries of a block are not there or longer than the block, " + at(file_.path, offset)});
    } else if (offset != end) {
      file_.losses.push_back(
          {"unknown_entries",
           end - offset,
           "bytes at the end of a block were not understood, " + at(file_.path, offset)});
    }
  }

  void torn(std::uint64_t offset, std::uint64_t bytes) {
    file_.losses.push_back({"torn_tail",
                            bytes,
                            "the report ends in the middle of a block; bytes left over from " +
                                at(file_.path, offset)});
  }
  void damaged(std::uint64_t offset, std::string_view what) {
    file_.losses.push_back({"damaged_block",
                            file_.bytes_.size() - offset,
                            std::string(what) + "; the rest of the file was not read, bytes from " +
                                at(file_.path, offset)});
  }

  File& file_;
  std::uint64_t sources_ = 0, kernels_ = 0, ranges_ = 0, command_lists_ = 0, graphs_ = 0,
                payload_ = 0, missing_ = 0;
  std::uint32_t process_ = 0;
  std::unordered_map<std::string_view, std::uint32_t> by_message_;
  std::map<std::tuple<std::uint32_t, std::string_view, std::string_view>, std::uint32_t> by_name_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> devices_;
  std::set<std::pair<std::string_view, std::string_view>> versions_;
};

bool File::sniff(std::string_view head) {
  if (is_zstd(head))
    return header_version(unpack_head(head, 64)).has_value();
  return header_version(head).has_value();
}

base::Result<File> File::open(const std::filesystem::path& path) {
  auto mapping = TRY(base::Mapping::open(path));
  File file;
  file.path = path.string();
  file.bytes_ = mapping.text();
  file.mapping_ = std::move(mapping);
  TRY(file.walk());
  return file;
}

base::Result<File> File::parse(std::string_view bytes, std::string name) {
  File file;
  file.path = std::move(name);
  file.bytes_ = bytes;
  TRY(file.walk());
  return file;
}

base::Result<void> File::walk() {
  if (is_zstd(bytes_)) {
    auto unpacked = TRY(unpack(bytes_, path));
    if (unpacked.torn) {
      losses.push_back({"torn_tail", 0, "the compressed report ends in the middle: " + path});
    }
    buffer_ = std::make_unique<std::string>(std::move(unpacked.bytes));
    bytes_ = *buffer_;
    mapping_.reset();
  }
  if (!bytes_.starts_with(kMagic)) {
    return fail(Code::kBadData,
                "is not an Nsight Compute report: it does not start with 'NVR'",
                at(path, 0),
                "Give a .ncu-rep that ncu -o wrote; other files: rangescope report FILE");
  }
  const auto found = header_version(bytes_);
  if (!found) {
    return fail(
        Code::kBadData,
        "starts like an Nsight Compute report, but its file header is damaged or of another kind",
        at(path, 4),
        "Check that the file was copied whole, and was written by ncu.");
  }
  version = *found;
  const std::uint64_t begin = 8 + std::uint64_t{little_endian(bytes_.substr(4))};
  BlockWalker(*this).walk(begin);
  if (results.empty() && !losses.empty()) {
    return fail(Code::kBadData,
                "no result can be read: " + losses.front().detail,
                at(path, begin),
                "Check that the file was copied whole; ncu writes it anew with --force-overwrite.");
  }
  return {};
}

void File::passed(std::uint64_t offset) const {
  if (offset < passed_)
    passed_ = 0;  // another pass
  if (!mapping_ || offset <= passed_ + kKeep || offset > bytes_.size())
    return;
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t begin = (passed_ + kPage - 1) / kPage * kPage, end = offset / kPage * kPage;
  passed_ = offset;
  // NOLINTNEXTLINE: madvise takes no const pointer, and changes nothing of a read-only mapping
  ::madvise(const_cast<char*>(bytes_.data() + begin), end - begin, MADV_DONTNEED);
}

std::string_view File::tool_version() const {
  for (const VersionInfo& info : session.versions) {
    if (info.provider != "Nsight Compute Target" && info.provider != "Nsight Compute")
      continue;
    const std::string_view text = info.version;
    return text.substr(0, std::min(text.find(' '), text.size()));
  }
  return {};
}

}  // namespace rangescope::read::ncu_report
