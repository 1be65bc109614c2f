// What other profilers write, each by the reader that knows it: profiles of Proton and XLA, tables,
// traces and databases of rocprof. A session whose links lie within it, or an error.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "links.hpp"
#include "read/proton/reader.hpp"
#include "read/rocm/reader.hpp"
#include "read/xla/reader.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = [&]() -> base::Result<model::Session> {
    if (text.starts_with("SQLite format 3")) {
      static const std::filesystem::path path = [] {
        const std::filesystem::path folder = std::filesystem::is_directory("/dev/shm")
                                                 ? "/dev/shm"
                                                 : std::filesystem::temp_directory_path();
        return folder / ("rangescope-fuzz-others-" + std::to_string(::getpid()) + ".db");
      }();
      std::ofstream(path, std::ios::binary)
          .write(text.data(), static_cast<std::streamsize>(text.size()));
      auto session = read::rocm::read_database(path);
      std::filesystem::remove(path);
      return session;
    }
    if (text.starts_with('\n'))
      return read::xla::read_bytes(text, "fuzz");
    if (text.starts_with('['))
      return read::proton::read_text(text, "fuzz");
    return read::rocm::read_text(text, "fuzz");
  }();
  if (!read) {
    rangescope::fuzz::check(!read.error().what.empty());
    return ::fuzz::count(false);
  }
  rangescope::fuzz::check_links(*read);
  return ::fuzz::count(true);
}
