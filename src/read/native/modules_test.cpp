#include "read/native/modules.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rangescope::read::native {
namespace modules_test {

/// Model (1) > model (2) > model.layers.0 (3); Model > head (4).
struct Calls {
  Calls() {
    session.processes.push_back({});
    session.threads = {{0, 1, 0}, {0, 2, 0}};
    modules.define(1, 0, "", "Model", false, session);
    modules.define(2, 1, "model", "Decoder", false, session);
    modules.define(3, 2, "layers.0", "Layer", false, session);
    modules.define(4, 1, "head", "Linear", false, session);
  }
  void launch(std::int64_t at, std::uint32_t module, std::uint32_t same, std::uint32_t thread = 0) {
    if (module != 0) modules.launched(static_cast<std::uint32_t>(session.launches.size()), module, same);
    session.launches.push_back({at, at + 5, thread, 0, 0});
  }
  void range(std::int64_t start, std::int64_t end, const char* name) {
    model::Range range;
    range.start_ns = start;
    range.end_ns = end;
    range.name = session.strings.intern(name);
    session.ranges.push_back(range);
  }
  /// "name 10-25, ...": those that are modules.
  std::string placed() {
    modules.place(0, session);
    std::string text;
    for (const model::Range& range : session.ranges) {
      if (!range.module) continue;
      if (!text.empty()) text += ", ";
      text += std::string(session.strings.view(range.name)) + " " + std::to_string(range.start_ns) + "-" +
              std::to_string(range.end_ns);
    }
    return text;
  }
  model::Session session;
  ModuleCalls modules;
};

TEST(ModuleCalls, FromTheFirstToTheLastLaunchOfACall) {
  Calls calls;
  calls.launch(10, 3, 0);
  calls.launch(20, 3, 3);
  calls.launch(30, 4, 1);
  EXPECT_EQ(calls.placed(), "Model 10-35, model (Decoder) 10-25, model.layers.0 (Layer) 10-25, head (Linear) 30-35");
}

TEST(ModuleCalls, AnotherCallIsAnotherOccurrence) {
  Calls calls;
  calls.launch(10, 4, 0);
  calls.launch(20, 4, 1);  // Model went on, its head was called again
  calls.launch(30, 4, 0);
  EXPECT_EQ(calls.placed(), "Model 10-25, head (Linear) 10-15, head (Linear) 20-25, Model 30-35, head (Linear) 30-35");
}

TEST(ModuleCalls, ALaunchOutsideEndsThemAndOneOfAnotherThreadDoesNot) {
  Calls calls;
  calls.launch(10, 1, 0);
  calls.launch(20, 0, 0, 1);
  calls.launch(30, 1, 1);
  calls.launch(40, 0, 0);
  calls.launch(50, 1, 1);
  EXPECT_EQ(calls.placed(), "Model 10-35, Model 50-55");
}

TEST(ModuleCalls, TheyAreInsideOfTheInnermostRangeAndNeverAroundOne) {
  Calls calls;
  calls.range(5, 100, "step");
  calls.range(28, 29, "between");
  calls.range(38, 60, "inner");
  calls.launch(10, 1, 0);
  calls.launch(20, 1, 1);
  calls.launch(30, 1, 1);
  calls.launch(40, 1, 1);
  calls.launch(70, 1, 1);
  EXPECT_EQ(calls.placed(), "Model 10-25, Model 30-35, Model 40-45, Model 70-75");
}

TEST(ModuleCalls, AFunctionBetweenModulesKeepsTheirPath) {
  Calls calls;
  calls.modules.define(5, 2, "", "run_layers", true, calls.session);
  calls.modules.define(6, 5, "layers.1", "Layer", false, calls.session);
  calls.launch(10, 6, 0);
  EXPECT_EQ(calls.placed(), "Model 10-15, model (Decoder) 10-15, run_layers 10-15, model.layers.1 (Layer) 10-15");
}

TEST(ModuleCalls, AFunctionThatStepsBeginsAnewWithEachCallThatItMakes) {
  Calls calls;
  calls.modules.define(5, 0, "", "prefill|decode step", true, calls.session);
  calls.modules.define(6, 5, "", "Model", false, calls.session);
  calls.launch(10, 5, 0);
  calls.launch(20, 6, 1);
  calls.launch(30, 6, 2);
  calls.launch(40, 5, 1);  // it samples a token
  calls.launch(50, 6, 1);
  calls.launch(60, 5, 1);
  calls.launch(70, 6, 1);
  EXPECT_EQ(calls.placed(),
            "prefill 10-45, Model 20-35, decode step 50-65, Model 50-55, decode step 70-75, Model 70-75");
}

TEST(ModuleCalls, AStepThatIsAFunctionOfItsNameIsOneWithIt) {
  Calls calls;
  calls.modules.define(5, 0, "", "prefill|decode step", true, calls.session);
  calls.modules.define(6, 5, "", "Model", false, calls.session);
  calls.modules.define(7, 5, "", "prefill", true, calls.session);
  calls.modules.define(8, 7, "", "Model", false, calls.session);
  calls.range(15, 48, "of the program");
  calls.launch(10, 8, 0);
  calls.launch(20, 8, 2);
  calls.launch(40, 6, 1);
  calls.launch(50, 6, 2);
  EXPECT_EQ(calls.placed(),
            "prefill 10-15, Model 10-15, prefill 20-25, Model 20-25, decode step 40-45, Model 40-45, "
            "decode step 50-55, Model 50-55");
}

TEST(ModuleCalls, WhatWasNeverDefinedIsNoModule) {
  Calls calls;
  calls.modules.define(5, 99, "lost", "Lost", false, calls.session);
  calls.launch(10, 77, 0);
  calls.launch(20, 5, 3);
  EXPECT_EQ(calls.placed(), "lost (Lost) 20-25");
}

}  // namespace modules_test
}  // namespace rangescope::read::native
