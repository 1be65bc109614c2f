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
    if (module != 0)
      modules.launched(static_cast<std::uint32_t>(session.launches.size()), module, same);
    session.launches.push_back({at, at + 5, thread, 0, 0});
  }
  void range(std::int64_t start, std::int64_t end, const char* name, const char* domain = "") {
    model::Range range;
    if (*domain != '\0') {
      session.domains.push_back({session.strings.intern(domain)});
      range.domain = static_cast<std::uint32_t>(session.domains.size() - 1);
    }
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
      if (!range.module)
        continue;
      if (!text.empty())
        text += ", ";
      text += std::string(session.strings.view(range.name)) + " " + std::to_string(range.start_ns) +
              "-" + std::to_string(range.end_ns);
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
  EXPECT_EQ(
      calls.placed(),
      "Model 10-35, model (Decoder) 10-25, model.layers.0 (Layer) 10-25, head (Linear) 30-35");
}

TEST(ModuleCalls, ACallThatLaunchesNothingDoesNotEndThem) {
  Calls calls;
  calls.launch(10, 4, 0);
  calls.launch(20, 0, 0);
  calls.session.launches.back().kind = model::LaunchKind::kOther;  // cuEventRecord
  calls.launch(30, 4, 2);
  EXPECT_EQ(calls.placed(), "Model 10-35, head (Linear) 10-35");
}

TEST(ModuleCalls, AnotherCallIsAnotherOccurrence) {
  Calls calls;
  calls.launch(10, 4, 0);
  calls.launch(20, 4, 1);  // Model went on, its head was called again
  calls.launch(30, 4, 0);
  EXPECT_EQ(
      calls.placed(),
      "Model 10-25, head (Linear) 10-15, head (Linear) 20-25, Model 30-35, head (Linear) 30-35");
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
  EXPECT_EQ(calls.placed(), "Model 10-25, Model 30-35, Model 70-75");  // it is around `inner`
}

TEST(ModuleCalls, ARangeHasTheCallsThatBeganInsideOfIt) {
  Calls calls;
  calls.range(18, 37, "attention");
  calls.launch(10, 2, 0);
  calls.launch(20, 3, 2);
  calls.launch(30, 3, 3);
  calls.launch(40, 2, 2);
  EXPECT_EQ(calls.placed(),
            "Model 10-15, model (Decoder) 10-15, model.layers.0 (Layer) 20-35, Model 40-45, model "
            "(Decoder) 40-45");
}

TEST(ModuleCalls, ACallThatGoesOnBehindARangeIsAroundIt) {
  Calls calls;
  calls.range(8, 17, "first layer");
  calls.range(18, 27, "second layer");
  calls.launch(10, 3, 0);  // the first launch of all: Model and model began before the range
  calls.launch(20, 3, 2);
  EXPECT_EQ(calls.placed(), "model.layers.0 (Layer) 10-15, model.layers.0 (Layer) 20-25");
}

TEST(ModuleCalls, ACallThatBeganInsideARangeIsItsOwnThoughItGoesOnBehindIt) {
  Calls calls;
  calls.range(8, 27, "popped by another function");
  calls.launch(10, 4, 0);
  calls.launch(20, 3, 1);
  calls.launch(30, 3, 3);
  EXPECT_EQ(calls.placed(),
            "head (Linear) 10-15, model (Decoder) 20-25, model.layers.0 (Layer) 20-25, Model "
            "30-35, model (Decoder) 30-35, model.layers.0 (Layer) 30-35");
}

TEST(ModuleCalls, EachCallOfAModuleInALoopIsWholeInItsRange) {
  Calls calls;
  calls.range(8, 27, "step");
  calls.range(28, 47, "step");
  calls.launch(10, 4, 0);
  calls.launch(20, 4, 2);
  calls.launch(30, 4, 0);
  calls.launch(40, 4, 2);
  EXPECT_EQ(calls.placed(), "Model 10-25, head (Linear) 10-25, Model 30-45, head (Linear) 30-45");
}

TEST(ModuleCalls, WhereCallsAreNotKnownARangeHasAllModules) {
  Calls calls;
  calls.range(18, 37, "attention");
  const auto at = [](std::int64_t start, std::uint32_t module) {
    return ModuleCalls::Step{start, start + 5, module, 64};
  };
  calls.modules.place({{0, {at(10, 2), at(20, 3)}}}, false, calls.session);
  EXPECT_EQ(calls.placed(),
            "Model 10-15, model (Decoder) 10-15, Model 20-25, model (Decoder) 20-25, "
            "model.layers.0 (Layer) 20-25");
}

TEST(ModuleCalls, TheyAreAroundRangesOfLibraries) {
  Calls calls;
  calls.range(5, 100, "step", "mine");
  calls.range(18, 37, "cub::DeviceScan::InclusiveScan", "CCCL");
  calls.range(38, 47, "cub::DeviceScan::InclusiveScan", "CCCL");
  calls.range(68, 90, "cub::DeviceScan::InclusiveScan", "CCCL");
  calls.launch(10, 1, 0);
  calls.launch(20, 1, 1);
  calls.launch(30, 1, 1);
  calls.launch(40, 1, 0);
  calls.launch(50, 3, 1);
  calls.launch(70, 4, 0);
  EXPECT_EQ(calls.placed(),
            "Model 10-37, Model 38-55, model (Decoder) 50-55, model.layers.0 (Layer) 50-55, Model "
            "68-90, head (Linear) "
            "68-90");
  EXPECT_EQ(
      calls.session.strings.view(calls.session.domains[calls.session.ranges.back().domain].name),
      "mine");
}

TEST(ModuleCalls, AFunctionBetweenModulesKeepsTheirPath) {
  Calls calls;
  calls.modules.define(5, 2, "", "run_layers", true, calls.session);
  calls.modules.define(6, 5, "layers.1", "Layer", false, calls.session);
  calls.launch(10, 6, 0);
  EXPECT_EQ(calls.placed(),
            "Model 10-15, model (Decoder) 10-15, run_layers 10-15, model.layers.1 (Layer) 10-15");
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
  EXPECT_EQ(
      calls.placed(),
      "prefill 10-45, Model 20-35, decode step 50-65, Model 50-55, decode step 70-75, Model 70-75");
}

TEST(ModuleCalls, TheFirstStepInAWindowMayBeAny) {
  Calls calls;
  calls.modules.define(5, 0, "", "prefill|decode step", true, calls.session);
  calls.modules.define(6, 5, "", "Model", false, calls.session);
  calls.session.windows.emplace_back();
  calls.launch(10, 6, 0);
  calls.launch(20, 6, 1);
  calls.launch(30, 6, 0);
  EXPECT_EQ(calls.placed(),
            "prefill or decode step 10-15, Model 10-15, decode step 20-25, Model 20-25, prefill "
            "30-35, Model 30-35");
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
  EXPECT_EQ(
      calls.placed(),
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

// The thread of autograd's engine runs no Python: its launches have the numbers of the operators
// that made them.
struct Backward : Calls {
  using MadeBy = wire::gpu::MadeBy;
  void forward(std::int64_t at, std::uint32_t module, std::uint32_t same, std::uint32_t sequence) {
    note(at, 0, module, same, {sequence, 7, MadeBy::kOperator});
  }
  void function(std::int64_t at, std::uint32_t sequence, std::uint16_t of = 7) {
    note(at, 1, 0, 0, {sequence, of, MadeBy::kFunction});
  }
  void note(
      std::int64_t at, std::uint32_t thread, std::uint32_t module, std::uint32_t same, MadeBy of) {
    modules.launched(static_cast<std::uint32_t>(session.launches.size()), module, same, at, of);
    session.launches.push_back({at, at + 5, thread, 0, 0});
  }
  static constexpr std::uint32_t kSums = MadeBy::kNoNumber;
};

TEST(ModuleCalls, TheBackwardPassIsInTheModulesOfItsOperators) {
  Backward calls;
  calls.forward(10, 3, 0, 2);  // operator 1 launched nothing
  calls.forward(20, 4, 1, 3);
  calls.forward(30, 0, 0, 4);  // the loss
  calls.function(40, 4);
  calls.function(50, 3);
  calls.function(60, calls.kSums);
  calls.function(70, 1);
  EXPECT_EQ(
      calls.placed(),
      "Model 10-25, model (Decoder) 10-15, model.layers.0 (Layer) 10-15, head (Linear) 20-25, "
      "backward 40-75, "
      "Model 50-75, head (Linear) 50-65, model (Decoder) 70-75, model.layers.0 (Layer) 70-75");
  EXPECT_EQ(calls.session.backward.text("launch"),
            "backward pass by module: 75.0 % of 4 launches by sequence number, 25.0 % by the "
            "function before them, 0.0 % "
            "unknown");
  EXPECT_EQ(
      calls.session.strings.view(calls.session.domains[calls.session.ranges.back().domain].name),
      "nn.Module");
}

TEST(ModuleCalls, NumbersThatGrowBeginAnotherBackwardPass) {
  Backward calls;
  calls.forward(10, 4, 0, 1);
  calls.function(20, 1);
  calls.function(30, 1);  // one function, two launches
  calls.forward(40, 4, 0, 2);
  calls.function(50, 2);
  EXPECT_EQ(calls.placed(),
            "Model 10-15, head (Linear) 10-15, Model 40-45, head (Linear) 40-45, backward 20-35, "
            "Model 20-35, "
            "head (Linear) 20-35, backward 50-55, Model 50-55, head (Linear) 50-55");
}

TEST(ModuleCalls, ACollectiveOfTheBackwardPassIsOfNoModule) {
  Backward calls;
  calls.forward(10, 4, 0, 1);
  calls.function(20, 1);
  calls.function(30, calls.kSums);
  calls.function(40, calls.kSums);
  calls.session.kernel_names.push_back(
      {.short_name = calls.session.strings.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL")});
  calls.session.kernels.push_back({.launch = 2});
  EXPECT_EQ(calls.placed(),
            "Model 10-15, head (Linear) 10-15, backward 20-45, Model 20-25, head (Linear) 20-25, "
            "Model 40-45, head "
            "(Linear) 40-45");
}

TEST(ModuleCalls, WhatNoRecordedOperatorMadeIsUnknown) {
  Backward calls;
  calls.forward(10, 4, 0, 100);
  calls.forward(90, 4, 0, 101);  // after the function
  calls.function(20, 1);         // long before: those between were not recorded
  calls.function(30, 101);
  calls.function(40, 100, 8);  // of another thread
  EXPECT_EQ(calls.placed(),
            "Model 10-15, head (Linear) 10-15, Model 90-95, head (Linear) 90-95, backward 20-25, "
            "backward "
            "30-45");
  EXPECT_EQ(calls.session.backward.by_number, 0u);
}

TEST(ModuleCalls, PythonBelowTheEngineIsInTheModuleOfTheFunction) {
  Backward calls;
  calls.modules.define(5, 0, "", "[mm, relu]", true, calls.session);  // compiled code
  calls.modules.define(6, 0, "", "Layer", false, calls.session);      // a checkpoint's
  calls.forward(10, 4, 0, 1);
  calls.note(20, 1, 5, 0, {1, 7, Backward::MadeBy::kFunction});
  calls.note(30, 1, 6, 0, {9, 8, Backward::MadeBy::kOperator, 1});
  EXPECT_EQ(calls.placed(),
            "Model 10-15, head (Linear) 10-15, backward 20-35, Model 20-35, head (Linear) 20-35, "
            "[mm, relu] 20-25, "
            "Layer 30-35");
}

TEST(ModuleCalls, PythonThatCallsTheEngineIsAroundIt) {
  Backward calls;
  calls.modules.define(5, 0, "", "train", true, calls.session);
  calls.forward(10, 4, 0, 1);
  calls.note(20, 0, 5, 0, {1, 7, Backward::MadeBy::kFunction});
  EXPECT_EQ(calls.placed(),
            "Model 10-15, head (Linear) 10-15, train 20-25, Model 20-25, head (Linear) 20-25");
}

TEST(ModuleCalls, RangesOfEmitNvtxTellMore) {
  Backward calls;
  calls.range(15, 16, "autograd::engine::evaluate_function: MmBackward0, op_id = 7");
  calls.forward(10, 4, 0, 1);
  calls.function(20, 1);
  EXPECT_EQ(calls.placed(), "Model 10-15, head (Linear) 10-15");
}

}  // namespace modules_test
}  // namespace rangescope::read::native
