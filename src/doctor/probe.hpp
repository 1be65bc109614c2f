// What a check may look at. Each part is there or not; a check that needs one which is absent answers nothing.
#pragma once

namespace rangescope::doctor {

struct MachineFacts;  // doctor/machine/facts.hpp
struct ProgramLook;   // doctor/program/program.hpp

struct Probe {
  const MachineFacts* machine = nullptr;
  const ProgramLook* program = nullptr;
};

}  // namespace rangescope::doctor
