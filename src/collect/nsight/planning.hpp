// What planning nsys and planning ncu share: options by key, what the person asked for, refusals
// that name the key.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collect/collector.hpp"
#include "collect/nsight/options.hpp"

namespace rangescope::collect {

/// pipeline.nsys, or pipeline.ncu.ncu_cli.
struct ToolOptions {
  std::map<std::string, std::vector<std::string>>
      values;  ///< key of option_table() -> its value(s), as texts; durations in seconds
  std::set<std::string> asked;  ///< keys that the user set: they may not be dropped silently
  bool gating =
      false;  ///< ncu: pass the range expressions; nsys: record only while nvtx_capture is open
  std::map<std::string, std::string> env;
  std::vector<std::string> extra_args;
};

class ToolPlanner {
 protected:
  using Done = base::Result<void>;

  ToolPlanner(const Abilities& can,
              const ToolOptions& options,
              const Request& request,
              std::string section)
      : can_(can), options_(options), request_(request), section_(std::move(section)) {
    plan_.collector = can.tool;
    plan_.cwd = request.cwd;
    plan_.timeout = request.timeout;
    plan_.set_env = request.env;
    for (const auto& [name, value] : options.env)
      plan_.set_env[name] = value;
  }

  void note(std::string text) { plan_.notes.push_back(std::move(text)); }
  [[nodiscard]] const std::vector<std::string>* values(std::string_view key) const {
    const auto found = options_.values.find(std::string(key));
    if (found == options_.values.end() || found->second.empty())
      return nullptr;
    return &found->second;
  }
  [[nodiscard]] std::string value(std::string_view key) const {
    const auto* configured = values(key);
    if (!configured)
      return {};
    return configured->front();
  }
  [[nodiscard]] bool asked(std::string_view key) const {
    return options_.asked.count(std::string(key)) > 0;
  }
  [[nodiscard]] std::string me() const { return can_.tool + " " + to_string(can_.version); }
  [[nodiscard]] tl::unexpected<base::Error> refuse(std::string what,
                                                   std::string_view key,
                                                   std::string hint) const {
    return base::fail(
        base::Code::kConfig, std::move(what), section_ + std::string(key), std::move(hint));
  }
  /// The name of an option in this version; "" if it has none and the user did not set it.
  [[nodiscard]] base::Result<std::string> option_name(const Option& row) const {
    const std::string_view name = name_of(row, can_);
    if (!name.empty() || !asked(row.key))
      return std::string(name);
    std::string hint = "Leave it out.";
    if (!row.since.empty())
      hint = "It came with " + can_.tool + " " + std::string(row.since) +
             "; leave it out or use a newer " + can_.tool + ".";
    return refuse(me() + " has no " + std::string(row.name), row.key, hint);
  }
  /// What every plan needs first and last.
  [[nodiscard]] Done has_program() const {
    if (!request_.command.empty())
      return {};
    return base::fail(
        base::Code::kUsage, "there is no program to profile", {}, "Write it after --.");
  }
  [[nodiscard]] Done end_with_program() {
    TRY(add_extra_args(options_.extra_args, can_, section_ + "extra_args", plan_.argv));
    TRY(fits_a_command(plan_.argv));
    plan_.argv.insert(plan_.argv.end(), request_.command.begin(), request_.command.end());
    return {};
  }

  const Abilities& can_;
  const ToolOptions& options_;
  const Request& request_;
  const std::string section_;
  Plan plan_;
};

}  // namespace rangescope::collect
