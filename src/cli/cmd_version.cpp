#include <cstdio>

#include "base/version.hpp"
#include "cli/app.hpp"
#include "cli/subcommands.hpp"

namespace rangescope::cli {
namespace {

class Version final : public Subcommand {
 public:
  Version() : Subcommand("version", "Print the version") {}
  void options(const Arguments&) override {}
  [[nodiscard]] int run() override {
    std::puts(base::tool_version().c_str());
    return 0;
  }
};

}  // namespace

std::unique_ptr<Subcommand> make_version() {
  return std::make_unique<Version>();
}

}  // namespace rangescope::cli
