// --page session: how the report was collected, the processes, the devices. Never the program's environment.
#include <ctime>

#include "ncu_pages/format.hpp"
#include "ncu_pages/head.hpp"
#include "ncu_pages/pages.hpp"

namespace rangescope::ncu_pages {
namespace {

/// "2026-Nov-20 11:46:17", UTC.
std::string time_text(std::uint64_t seconds) {
  const std::time_t time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[64];
  if (::gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds);
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%b-%d %H:%M:%S", &parts);
  return {text, size};
}

void table(std::string& out, bool csv, std::string_view title, std::vector<std::string> heads,
           const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return;
  if (!out.empty()) out += '\n';
  out.append(title).append("\n");
  if (csv) {
    csv_line(out, heads);
    for (const auto& row : rows) csv_line(out, row);
    return;
  }
  constexpr std::size_t kWidth = 120;
  const std::size_t columns = heads.size();
  TextTable text(std::move(heads), 0, columns);
  for (const auto& row : rows) {
    // a value longer than the page goes on below itself
    const std::string& value = row[1];
    for (std::size_t at = 0; at == 0 || at < value.size(); at += kWidth)
      text.add({at == 0 ? row[0] : "", value.substr(at, kWidth)});
  }
  text.print(out, TextTable::Rules::kAroundHeads);
}

}  // namespace

base::Result<void> print_session(const File& file, const PageOptions& options, const Out& out) {
  const SessionInfo& session = file.session;
  std::string text;
  std::vector<std::vector<std::string>> launch, info, processes;
  const auto add = [](auto& rows, std::string_view name, std::string_view value) {
    if (!value.empty()) rows.push_back({std::string(name), std::string(value)});
  };
  add(launch, "Executable", session.executable);
  add(launch, "Working Directory", session.working_directory);
  add(launch, "Arguments", session.arguments);
  add(launch, "Profiler Command Line", session.command_line);
  if (session.creation_time != 0) add(info, "Created", time_text(session.creation_time));
  const auto system = [&](const std::optional<SystemInfo>& of, const std::string& who, std::string_view name) {
    if (!of) return;
    add(info, who + " " + std::string(name), of->host);
    if (who == "Target") add(info, "Target IP Addresses", of->addresses);
    add(info, who + " OS", std::string(of->os) + " - " + std::string(of->os_version));
    add(info, who + " Architecture", of->architecture);
    add(info, who + " Processor", of->cpu);
  };
  system(session.host, "Host", "Name");
  system(session.target, "Target", "Name");
  for (const VersionInfo& version : session.versions) add(info, version.provider, version.version);
  for (const ProcessInfo& process : file.processes)
    add(processes, std::to_string(process.pid), process.name.empty() ? "(not recorded)" : process.name);
  table(text, options.csv, "Launch Settings", {"Launch Attribute", "Value"}, launch);
  table(text, options.csv, "Session Info", {"Session Attribute", "Value"}, info);
  table(text, options.csv, "Processes", {"Process Id", "Process Name"}, processes);
  constexpr std::string_view kPrefix = "device__attribute_";
  for (const DeviceInfo& device : session.devices) {
    std::vector<std::vector<std::string>> rows;
    for (const std::string_view name : {"confidential_computing_mode", "multiprocessor_count", "display_name",
                                        "compute_capability_major", "compute_capability_minor", "total_memory"}) {
      for (const Attribute& attribute : device.attributes) {
        if (!attribute.name.starts_with(kPrefix) || attribute.name.substr(kPrefix.size()) != name) continue;
        std::string value;
        PageOptions plain = options;
        plain.fp = false;
        Formatter(plain).plain(value, attribute.value);
        rows.push_back({std::string(name), std::move(value)});
      }
    }
    table(text, options.csv, "Device Attributes", {"Device Attribute", "Device " + std::to_string(device.id)}, rows);
  }
  out(text);
  return {};
}

}  // namespace rangescope::ncu_pages
