// Runs of the program before those that are recorded (workload.warmup): without any profiler, and
// silent.
#include "base/log.hpp"
#include "base/text.hpp"
#include "profile/stage.hpp"

namespace rangescope::profile {
namespace {

class WarmUp : public Stage {
 public:
  using Stage::Stage;
  int print() override {
    int code = 0;
    for (std::int64_t i = 1; i <= times(); ++i)
      code |= print_plan("warm-up " + std::to_string(i), plan());
    return code;
  }
  base::Result<void> run() override {
    TRY(run_.record->about_to_run(plan()));
    for (std::int64_t i = 1; i <= times(); ++i) {
      const std::string label = "warmup" + std::to_string(i);
      auto ran = TRY(run_.runner->run(plan(), label, {}, true));
      if (!ran.ended.ok() && !run_.runner->interrupted()) {
        run_.program_failed = ran.ended;
        TRY(run_.record->ended(ran.ended));
        run_.explanations.push_back(
            {"the program failed in its warm-up run, without any profiler: " +
                 base::describe(ran.ended) + "; see warmup/" + label + ".stderr",
             false});
        base::warn(run_.explanations.back().text);
        return {};
      }
      if (run_.runner->interrupted())
        return {};
    }
    return {};
  }

 private:
  [[nodiscard]] std::int64_t times() const {
    return run_.config.integer("workload.warmup").value_or(0);
  }
  [[nodiscard]] collect::Plan plan() const {
    const collect::Request request = base_request(run_.config, run_.folder);
    return {.collector = "warmup",
            .argv = request.command,
            .set_env = request.env,
            .cwd = request.cwd,
            .timeout = request.timeout};
  }
};

}  // namespace

std::unique_ptr<Stage> warm_up_stage(Run& run) {
  return std::make_unique<WarmUp>(run);
}

}  // namespace rangescope::profile
