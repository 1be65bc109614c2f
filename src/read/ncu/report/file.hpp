// The container of an Nsight Compute report (.ncu-rep, .ncu-repz, .nsight-cuprof-report): which
// entries it holds, and where.
//
//   "NVR\0"
//   u32 n, FileHeader                 n bytes of protobuf; field 1 is the version, 7 in every file
//   from 2019 to 2025 until the end of the file, a log of blocks:
//     u32 m, BlockHeader              1 sources, 2 kernel results, 3 session details, 4 string
//     table, 5 payload bytes,
//                                     6 process {1 pid, 2 host, 3 name}, 7 range, 8 command list, 9
//                                     graph results
//     payload: entries, each u32 length and protobuf, in the order sources, kernels, ranges,
//     command lists, graphs
//
// All integers are little endian. Strings of every block's table are appended to one list of the
// whole file, whatever the process; metric names are indexes into it. A .ncu-repz is the same thing
// as one zstd stream (or several, end to end). The numbers of the protobuf fields were found in
// real files of 2019 to 2025: no schema is used, fields that are not known are skipped and counted.
// Opening walks the block headers only: entries stay in the file until they are decoded, so that
// sources (most of a large report) are never touched.
//
// Environments of profiled programs (SessionDetails 9.4) are never read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/find.hpp"
#include "base/fs.hpp"
#include "base/result.hpp"
#include "model/loss.hpp"

namespace rangescope::read::ncu_report {

enum class ResultKind : std::uint8_t { kKernel, kRange, kCommandList, kGraph };

/// One result that was found, not yet decoded.
struct Entry {
  ResultKind kind = ResultKind::kKernel;
  std::uint32_t process = 0;  ///< index into File::processes
  std::uint64_t offset = 0;   ///< of its first byte after the length, in the (decompressed) file
  std::uint32_t size = 0;
};

struct ProcessInfo {
  std::uint32_t pid = 0;
  std::string_view host, name;  ///< name is the path of the executable
};

enum class ValueType : std::uint8_t { kNone, kString, kFloat, kDouble, kUint32, kUint64 };

/// A value as the file holds it: base units, not rounded.
struct Value {
  ValueType type = ValueType::kNone;
  double number = 0;          ///< of kFloat and kDouble
  std::uint64_t integer = 0;  ///< of kUint32 and kUint64
  std::string_view text;      ///< of kString

  [[nodiscard]] bool is_integer() const {
    return type == ValueType::kUint32 || type == ValueType::kUint64;
  }
  [[nodiscard]] bool is_number() const {
    return is_integer() || type == ValueType::kFloat || type == ValueType::kDouble;
  }
  [[nodiscard]] double as_double() const {
    if (is_integer())
      return static_cast<double>(integer);
    return number;
  }
};

struct Attribute {
  std::string_view name;
  Value value;
};

/// A GPU as one process saw it.
struct DeviceInfo {
  std::uint32_t process = 0;
  std::uint32_t id = 0;
  std::string_view name;
  std::vector<Attribute> attributes;  ///< "device__attribute_..." in file order
};

struct VersionInfo {
  std::string_view provider,
      version;  ///< "Nsight Compute Target", "CUDA Version", "PerfWorks", ...
};

/// What is known of the session as a whole; the program's environment is not.
struct SessionInfo {
  std::uint64_t creation_time = 0;  ///< seconds since 1970; 0 where unknown
  std::vector<DeviceInfo> devices;
  std::vector<VersionInfo> versions;
  std::string_view command_line;  ///< of ncu itself
};

/// An opened report. Views and entries point into it; it does not change.
class File {
 public:
  /// Maps (or decompresses) the file and walks its blocks. kBadData with the offset when it is no
  /// report, or nothing of it can be read; a torn or damaged tail becomes a loss.
  [[nodiscard]] static base::Result<File> open(const std::filesystem::path& path);
  /// The same of bytes that the caller keeps; for tests and fuzzing. `name` is what errors call
  /// them.
  [[nodiscard]] static base::Result<File> parse(std::string_view bytes, std::string name);
  /// True when `head` begins like a report (of version 7 and its neighbours) or like a zstd stream
  /// of one.
  [[nodiscard]] static bool sniff(std::string_view head);

  [[nodiscard]] std::string_view bytes(const Entry& entry) const {
    return bytes_.substr(entry.offset, entry.size);
  }
  /// The string of a file-wide index; "" for one that the tables do not reach.
  [[nodiscard]] std::string_view string(std::uint64_t id) const {
    return base::element_or(strings_, id, {});
  }

  /// A pass over the file has reached `offset`: gives the memory of mapped bytes before it back to
  /// the system; they are read again from the page cache when needed. So a pass never holds more of
  /// the file than kKeep. No effect on compressed or parsed reports.
  void passed(std::uint64_t offset) const;

  std::string path;
  std::uint32_t version = 0;  ///< of the file header
  std::vector<ProcessInfo>
      processes;  ///< at least one when there are results; pid 0 where the file has none (2019)
  std::vector<Entry> results;  ///< in file order: the index is the ID that ncu prints
  SessionInfo session;
  std::uint64_t unknown_fields = 0;  ///< fields of block headers that this reader does not know
  std::vector<model::Loss> losses;

  /// "2025.3.1" of the collecting ncu, "" where unknown.
  [[nodiscard]] std::string_view tool_version() const;
  [[nodiscard]] std::size_t string_count() const { return strings_.size(); }

 private:
  friend class BlockWalker;
  base::Result<void> walk();

  static constexpr std::uint64_t kKeep = std::uint64_t{8} << 20;
  mutable std::uint64_t passed_ = 0;
  std::optional<base::Mapping> mapping_;
  std::unique_ptr<std::string> buffer_;  // decompressed bytes
  std::string_view bytes_;
  std::vector<std::string_view> strings_;
};

}  // namespace rangescope::read::ncu_report
