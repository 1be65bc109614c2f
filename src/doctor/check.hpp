// One check of the doctor: a question about a machine, a command line or a capture, answered with evidence and a cure.
//
// To add one: one file check_<name>.cpp, one line in registry.cpp, one section in docs/manual/causes.md.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/check.hpp"

namespace rangescope::doctor {

struct Probe;  // doctor/probe.hpp: everything that a check may look at, gathered once

class Check {
 public:
  virtual ~Check() = default;
  [[nodiscard]] virtual std::string_view id() const = 0;
  [[nodiscard]] virtual std::string_view question() const = 0;
  /// Findings, none when the check does not apply to this probe.
  [[nodiscard]] virtual std::vector<model::Finding> run(const Probe& probe) const = 0;
};

}  // namespace rangescope::doctor
