// What a victim did, counted by itself in a file that it shares with its children and that survives
// them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

struct Truth {
  std::atomic<std::uint64_t> begun;   ///< pairs whose push was about to be called
  std::atomic<std::uint64_t> done;    ///< pairs whose pop has returned
  std::atomic<std::uint64_t> others;  ///< what the scenario says

  /// Mapped for good; null where the file cannot be had.
  static Truth* open(const char* path) {
    const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
      return nullptr;
    void* at = MAP_FAILED;
    if (::ftruncate(file, sizeof(Truth)) == 0)
      at = ::mmap(nullptr, sizeof(Truth), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return at == MAP_FAILED ? nullptr : static_cast<Truth*>(at);
  }
};
