// The three sinks: a string, a file (written beside and renamed, so that a reader sees the old or the new one), and
// standard output.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

#include "report/exporter.hpp"

namespace rangescope::report {

class StringSink final : public Sink {
 public:
  void write(std::string_view bytes) override { text_ += bytes; }
  [[nodiscard]] base::Result<void> finish() override { return {}; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Buffered; the first failure is kept and told by finish(), which also renames into place. A sink that was never
/// finished leaves nothing behind.
class FileSink final : public Sink {
 public:
  explicit FileSink(std::filesystem::path path);
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  ~FileSink() override;
  void write(std::string_view bytes) override;
  [[nodiscard]] base::Result<void> finish() override;

 private:
  std::filesystem::path path_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
  int error_ = 0;
};

/// A descriptor that somebody else owns: standard output or standard error.
class DescriptorSink final : public Sink {
 public:
  DescriptorSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  void write(std::string_view bytes) override;
  [[nodiscard]] base::Result<void> finish() override;

 private:
  void flush();
  int fd_;
  std::string name_;
  std::string buffer_;
  int error_ = 0;
};

}  // namespace rangescope::report
