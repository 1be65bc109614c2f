// `rangescope mcp`: python/rangescope/mcp.py in place of this process, with this program as its
// command.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fs.hpp"
#include "cli/app.hpp"
#include "cli/subcommand.hpp"
#include "config/compose.hpp"

namespace rangescope::cli {
namespace {

// -I: neither the current folder nor PYTHONPATH is searched for modules.
constexpr const char* kStart =
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from rangescope.mcp import main; "
    "sys.exit(main())";

class Mcp final : public Subcommand {
 public:
  Mcp() : Subcommand("mcp") {}
  void options(const Arguments& app) override {
    app.add_flag("--allow-run", allow_run_);
    app.add_option("--runs", root_);
  }

  [[nodiscard]] base::Result<int> run() override {
    const std::filesystem::path self = base::self_path();
    const auto conf = TRY(config::shipped_folder());
    const std::string package = (conf.parent_path() / "python").string();
    if (::setenv("RANGESCOPE", self.c_str(), 1) != 0)
      return base::fail(base::Code::kInternal, std::strerror(errno), "RANGESCOPE", {});
    std::array<const char*, 10> argv{"python3", "-I", "-c", kStart, package.c_str()};
    std::size_t next = 5;
    if (allow_run_)
      argv.at(next++) = "--allow-run";
    if (!root_.empty()) {
      argv.at(next++) = "--runs";
      argv.at(next++) = root_.c_str();
    }
    ::execvp(argv.front(), const_cast<char**>(argv.data()));
    return base::fail(base::Code::kToolMissing,
                      std::string("cannot run python3: ") + std::strerror(errno),
                      "PATH",
                      "Install Python 3.9 or later");
  }

 private:
  bool allow_run_ = false;
  std::string root_;
};

}  // namespace

std::unique_ptr<Subcommand> make_mcp() {
  return std::make_unique<Mcp>();
}

}  // namespace rangescope::cli
