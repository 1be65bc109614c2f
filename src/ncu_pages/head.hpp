// What every page prints of a result before its metrics: id columns as CSV, heading and NVTX state as text; and text
// tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ncu_pages/pages.hpp"
#include "read/ncu/report/decode.hpp"

namespace rangescope::ncu_pages {

/// The id columns. NVTX columns are there when any result has an NVTX state, block and grid when any is a kernel.
class CsvHead {
 public:
  CsvHead(const File& file, const PageOptions& options) : file_(file), options_(options), labels_(file) {}
  void see(const Result& result);
  void names(std::string& out) const;
  void blanks(std::string& out) const;
  void values(std::string& out, std::uint32_t id, const Result& result) const;
  [[nodiscard]] const DeviceLabels& labels() const { return labels_; }

 private:
  const File& file_;
  const PageOptions& options_;
  DeviceLabels labels_;
  bool nvtx_ = false, kernels_ = false;
};

/// The heading of a process when it changes, then that of a result with its NVTX state.
class TextHead {
 public:
  TextHead(const File& file, const PageOptions& options) : file_(file), options_(options), labels_(file) {}
  void print(std::string& out, const Result& result, const DeviceLabel& device);
  void process(std::string& out, std::uint32_t process);
  [[nodiscard]] const DeviceLabels& labels() const { return labels_; }

 private:
  const File& file_;
  const PageOptions& options_;
  DeviceLabels labels_;
  std::uint32_t process_ = UINT32_MAX;
};

/// A table as ncu draws it: rules of dashes, the first column to the left, the others to the right. Widths are bytes.
class TextTable {
 public:
  TextTable(std::vector<std::string> heads, std::size_t indent, std::size_t left_columns = 1);
  void add(std::vector<std::string> cells);
  /// Columns are at least so wide.
  void widen(const std::vector<std::size_t>& least);
  /// Around the heads and behind the rows; the session page draws no closing one, the raw page only that below its
  /// heads.
  enum class Rules : std::uint8_t { kAll, kAroundHeads, kBelowHeads };
  void print(std::string& out, Rules rules = Rules::kAll) const;

 private:
  void rule(std::string& out) const;
  void row(std::string& out, const std::vector<std::string>& cells) const;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> heads_;
  std::vector<std::size_t> widths_;
  std::size_t indent_, left_columns_;
};

/// `text` broken at blanks into lines of at most `width` bytes, one less where a line goes on from the one before (ncu
/// counts the blank it broke at); words that are longer are cut.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace rangescope::ncu_pages
