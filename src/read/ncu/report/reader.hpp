// The reader of Nsight Compute reports (file.hpp has the format).
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::ncu_report {

class NcuReportReader final : public Reader {
 public:
  [[nodiscard]] std::string_view name() const override { return "ncu-report"; }
  [[nodiscard]] bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) const override;
  [[nodiscard]] base::Result<model::Session> read(const std::filesystem::path& path,
                                                  const Options& options) const override;
};

}  // namespace rangescope::read::ncu_report
