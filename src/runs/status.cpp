#include "runs/status.hpp"

#include <unistd.h>

#include "base/embedded.hpp"
#include "base/fs.hpp"
#include "base/process_tree.hpp"
#include "base/redact.hpp"
#include "base/text.hpp"
#include "runs/hold.hpp"
#include "runs/json_text.hpp"

namespace rangescope::runs {
namespace {

constexpr std::string_view kStatusSchema = "rangescope.status/1";
constexpr std::string_view kStatusFile = "status.json";

// A process is (boot, pid, start time): the pid alone may have been given away again.
std::string boot_id() {
  const auto text = base::read_file("/proc/sys/kernel/random/boot_id");
  if (!text)
    return {};
  return std::string(base::trim(*text));
}

// 0 when there is no such process.
std::uint64_t start_time(std::int64_t pid) {
  return base::process_start(static_cast<pid_t>(pid)).value_or(0);
}

OrderedJson as_json(const model::Finding& finding, const base::Redactor& redactor) {
  const auto redacted = [&](const std::string& text) {
    return base::printable(redactor.text(text));
  };
  OrderedJson json;
  json["id"] = finding.id;
  json["question"] = finding.question;
  json["verdict"] = model::verdict_name(finding.verdict);
  json["found"] = redacted(finding.found);
  json["why"] = finding.why;
  json["hint"] = redacted(finding.hint);
  json["commands"] = OrderedJson::array();
  for (const std::string& command : finding.commands)
    json["commands"].push_back(redacted(command));
  return json;
}

/// Does the process that wrote the status still run?
bool writer_is_alive(const nlohmann::json& status, std::int64_t pid) {
  if (status.value("boot", "") != boot_id() || pid <= 0)
    return false;
  const std::uint64_t started = start_time(pid);
  return started != 0 && started == status.value("started", std::uint64_t{0});
}

/// Of a run that has not written how it ended: it still runs, or was interrupted.
Status unfinished_status(const std::filesystem::path& run, const nlohmann::json& json) {
  Status status;
  const auto pid = json.value("pid", std::int64_t{0});
  const auto held = is_held(run);
  const bool is_alive = held ? *held : writer_is_alive(json, pid);
  if (is_alive) {
    status.state = RunState::kRunning;
    return status;
  }
  status.state = RunState::kInterrupted;
  status.outcome = "interrupted";
  status.message = "rangescope was killed before it could finish the run; the capture is kept";
  return status;
}

model::Loss loss_from(const nlohmann::json& json) {
  return model::Loss::read(json.at("kind").get<std::string>(),
                           json.value("severity", "warning"),
                           json.value("count", std::uint64_t{0}),
                           json.value("detail", ""));
}

model::Finding finding_from(const OrderedJson& json) {
  model::Finding finding;
  finding.id = json.at("id").get<std::string>();
  finding.question = json.value("question", "");
  const auto verdict = base::place_of(json.value("verdict", "warn"), model::kVerdictNames);
  if (verdict < std::size(model::kVerdictNames))
    finding.verdict = static_cast<model::Grade>(verdict);
  finding.found = json.value("found", "");
  finding.hint = json.value("hint", "");
  finding.commands = json.value("commands", finding.commands);
  finding.why = json.value("why", "");
  return finding;
}

}  // namespace

std::string_view state_name(RunState state) {
  switch (state) {
    case RunState::kRunning: return "running";
    case RunState::kDone: return "done";
    case RunState::kInterrupted: return "interrupted";
  }
  return "";
}

base::Result<void> write_running(const std::filesystem::path& run) {
  return write_json(run / kStatusFile,
                    {{"schema", kStatusSchema},
                     {"state", "running"},
                     {"pid", ::getpid()},
                     {"boot", boot_id()},
                     {"started", start_time(::getpid())}});
}

base::Result<void> write_done(const std::filesystem::path& run, const Status& status) {
  const base::Redactor redactor;
  OrderedJson losses = OrderedJson::array();
  for (const model::Loss& loss : status.losses)
    losses.push_back(loss_json<OrderedJson>(loss, redactor.text(loss.detail)));
  OrderedJson findings = OrderedJson::array();
  for (const model::Finding& finding : status.findings)
    findings.push_back(as_json(finding, redactor));
  OrderedJson json{{"schema", kStatusSchema},
                   {"state", "done"},
                   {"exit_code", status.exit_code},
                   {"outcome", status.outcome},
                   {"message", base::printable(redactor.text(status.message))},
                   {"program", status.program},
                   {"losses", std::move(losses)},
                   {"findings", std::move(findings)}};
  auto written = write_json(run / kStatusFile, json);
  if (written)
    return written;
  // A full disk takes no other file; the one that contains "running" has a block on it, which this
  // fits into.
  json.erase("losses");
  json.erase("findings");
  if (overwrite_json(run / kStatusFile, json))
    return {};
  return written;
}

base::Result<Status> read_status(const std::filesystem::path& run) {
  auto json = TRY(read_json(run / kStatusFile, kStatusSchema));
  try {
    Status status;
    if (json.at("state").get<std::string>() == "running")
      return unfinished_status(run, json);
    status.state = RunState::kDone;
    status.exit_code = json.value("exit_code", 0);
    status.outcome = json.value("outcome", "");
    status.message = json.value("message", "");
    status.program = json.value("program", "");
    const auto losses = json.find("losses");
    if (losses != json.end())
      for (const auto& loss : *losses)
        status.losses.push_back(loss_from(loss));
    const auto findings = json.find("findings");
    if (findings != json.end())
      for (const auto& finding : *findings)
        status.findings.push_back(finding_from(finding));
    return status;
  } catch (const nlohmann::json::exception& error) {
    return base::fail(base::Code::kBadData,
                      std::string("is not a status: ") + error.what(),
                      (run / kStatusFile).string());
  }
}

}  // namespace rangescope::runs
