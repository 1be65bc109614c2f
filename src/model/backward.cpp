#include "model/backward.hpp"

#include "base/units.hpp"
#include "model/session.hpp"

namespace rangescope::model {

bool has_evaluated_functions(const Session& session) {
  for (std::uint32_t id = 0; id < session.strings.size(); ++id)
    if (session.strings.view(id).starts_with(kEvaluates))
      return true;
  return false;
}

std::uint32_t module_domain(Session& session, bool make) {
  const StringId name = session.strings.intern(kModuleDomain);
  for (std::uint32_t d = 0; d < session.domains.size(); ++d)
    if (session.domains[d].name == name)
      return d;
  if (!make)
    return kNone;
  session.domains.push_back({name});
  return static_cast<std::uint32_t>(session.domains.size() - 1);
}

std::string BackwardShares::text(std::string_view noun) const {
  if (total == 0)
    return {};
  const auto share = [this](std::size_t count) {
    return base::format_share(static_cast<double>(count) / static_cast<double>(total));
  };
  return "backward pass by module: " + share(by_number) + " of " + base::counted(total, noun) +
         " by sequence number, " + share(by_place) + " by the function before them, " +
         share(total - by_number - by_place) + " unknown";
}

}  // namespace rangescope::model
