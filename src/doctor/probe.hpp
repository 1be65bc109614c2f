// What a check may look at. Each part is there or not; a check that needs one which is absent answers nothing.
#pragma once

namespace rangescope::doctor {

struct MachineFacts;  // doctor/machine/facts.hpp
struct ProgramFacts;  // doctor/program/facts.hpp

struct Probe {
  const MachineFacts* machine = nullptr;
  const ProgramFacts* program = nullptr;
};

}  // namespace rangescope::doctor
