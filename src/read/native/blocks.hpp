// Takes a file of compressed blocks apart (format: wire/samples.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "model/session.hpp"
#include "wire/samples.hpp"

namespace rangescope::read::native {

struct Block {
  wire::samples::Type type{};
  std::uint32_t items = 0;
  std::string raw;
};

class BlockReader {
 public:
  /// kBadData where it is not `what` ("a stream of samples") of that version.
  [[nodiscard]] static base::Result<BlockReader> open(
      std::span<const std::byte> file,
      const std::string& where,
      const char (&magic)[sizeof(wire::samples::FileHeader::magic)],
      std::uint32_t version,
      const std::string& what);
  /// False at the end, and at a torn tail.
  [[nodiscard]] bool next(Block& block);
  /// Bytes of the torn tail.
  [[nodiscard]] std::size_t torn() const { return torn_; }
  [[nodiscard]] const wire::samples::FileHeader& head() const { return head_; }

 private:
  std::span<const std::byte> file_;
  wire::samples::FileHeader head_{};
  std::size_t at_ = 0, torn_ = 0, raw_total_ = 0;
};

using ReadBlocks = std::function<base::Result<void>(
    std::span<const std::byte>, const std::string& name, model::Session&)>;

/// Reads what ends in `suffix` in the folder `below` of a folder of captures or of a run. What
/// cannot be read becomes a loss.
void read_block_files(const std::filesystem::path& folder,
                      const char* suffix,
                      const char* below,
                      const ReadBlocks& read,
                      model::Session& session);

}  // namespace rangescope::read::native
