// The three sinks: a string, a file (written beside and renamed, so that a reader sees the old or
// the new one), and standard output.
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

/// Buffered; the first failure is kept and told by finish(), which also renames into place
/// (base::Replacement). A sink that was never finished leaves nothing behind.
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

/// A descriptor that somebody else owns: standard output or standard error.
class DescriptorSink final : public Sink {
 public:
  /// `may_leave`: whoever reads there may have had enough (`| head`), which is no failure.
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
