#include "config/origin.hpp"

namespace rangescope::config {

bool Origin::on_command_line() const {
  return source == Source::kOverride || source == Source::kFlag;
}

bool Origin::by_user() const {
  return source != Source::kNone && source != Source::kShippedFile;
}

std::string to_string(const Origin& origin) {
  switch (origin.source) {
    case Source::kNone: return {};
    case Source::kShippedFile:
    case Source::kUserFile:
      if (origin.line == 0)
        return origin.name;
      return origin.name + ":" + std::to_string(origin.line) + ":" + std::to_string(origin.column);
    case Source::kEnvironment: return "environment " + origin.name;
    case Source::kOverride:
    case Source::kFlag: return "argument " + std::to_string(origin.argument) + ": " + origin.name;
    case Source::kProgram: return "the program after --";
    case Source::kImplied: return "implied by " + origin.name;
  }
  return {};
}

tl::unexpected<base::Error> refused(std::string what, const Origin& origin, std::string hint) {
  return base::fail(base::Code::kConfig, std::move(what), to_string(origin), std::move(hint));
}

}  // namespace rangescope::config
