// SQLite exports of Nsight Systems: the whole reader over a file in shared memory (SQLite
// follows links, so that a memfd's path leads it nowhere).
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "links.hpp"
#include "read/nsys/sqlite/reader.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path path = [] {
    const std::filesystem::path folder = std::filesystem::is_directory("/dev/shm")
                                             ? "/dev/shm"
                                             : std::filesystem::temp_directory_path();
    return folder / ("rangescope-fuzz-" + std::to_string(::getpid()) + ".sqlite");
  }();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  rangescope::read::Options options;
  options.threads = 1;
  const auto session = rangescope::read::nsys_sqlite::kReader.read(path, options);
  if (session) {
    rangescope::fuzz::check_links(*session);
  } else {
    rangescope::fuzz::check(!session.error().what.empty() &&
                            session.error().code != rangescope::base::Code::kNoInput);
  }
  std::filesystem::remove(path);
  return ::fuzz::count(session.has_value());
}
