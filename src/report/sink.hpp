// The three sinks: a string, a file (a temporary file that is renamed, so that readers see the old
// or the new one) and a file descriptor.
#pragma once

#include <filesystem>
#include <string>

#include "base/fs.hpp"
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

/// Buffered. finish() reports the first error, or renames the file into place (base::Replacement).
/// Without finish() no file is left.
class FileSink final : public Sink {
 public:
  explicit FileSink(const std::filesystem::path& path) : file_(base::Replacement::begin(path)) {}
  void write(std::string_view bytes) override;
  [[nodiscard]] base::Result<void> finish() override;

 private:
  void flush();
  base::Result<base::Replacement> file_;
  std::string buffer_;
};

/// A descriptor that it does not own: standard output or standard error.
class DescriptorSink final : public Sink {
 public:
  /// `may_leave`: a reader may close its end early (`| head`) without an error.
  DescriptorSink(int fd, std::string name, bool may_leave = false)
      : fd_(fd), name_(std::move(name)), may_leave_(may_leave) {}
  void write(std::string_view bytes) override;
  [[nodiscard]] base::Result<void> finish() override;

 private:
  void flush();
  int fd_;
  std::string name_;
  std::string buffer_;
  bool may_leave_;
  int error_ = 0;
};

}  // namespace rangescope::report
