// Sources of the rules: `nsys profile --help` of 2020.4.3, 2022.4.2 and 2023.4.4, which were run;
// recorded outputs of 2025.3.1; the 2026 documentation.
#include "collect/nsight/nsys.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "model/range_expression.hpp"
#include "model/range_order.hpp"

namespace rangescope::collect::nsys {
namespace {

using model::looks_like_domain;

class Planner : ToolPlanner {
 public:
  Planner(const Abilities& can, const Options& options, const Request& request)
      : ToolPlanner(can, options, request, "pipeline.nsys."), registered_(options.registered) {}

  base::Result<Plan> run() {
    TRY(has_program());
    plan_.argv = {can_.path.string(), "profile"};
    const std::filesystem::path base = report_base(request_);
    plan_.folders = {base.parent_path()};
    add("--output", base.string());
    add("--force-overwrite", "true");
    for (auto step :
         {&Planner::plain_options, &Planner::trace, &Planner::capture, &Planner::domains})
      TRY((this->*step)());
    TRY(end_with_program());
    return std::move(plan_);
  }

 private:
  /// nsys's manual asks for = with long options.
  void add(std::string_view option, std::string_view value) {
    plan_.argv.push_back(std::string(option) + "=" + std::string(value));
  }

  Done plain_options() {
    for (const Option& row : option_table("nsys")) {
      if (row.is(Option::kCode) || !values(row.key))
        continue;
      const auto option = TRY(option_name(row));
      if (option.empty())
        continue;
      std::string text = value(row.key);
      // nsys 2020 calls sampling of the process tree "cpu", newer versions "process-tree".
      if (row.key == "sample" && text != "none" && !can_.takes(option, text)) {
        const std::string other = text == "cpu" ? "process-tree" : "cpu";
        if (can_.takes(option, other)) {
          note("--sample=" + text + " is called " + other + " in " + me());
          text = other;
        }
      }
      const bool is_open = row.is(Option::kYesNo) || row.key == "gpu_metrics_device" ||
                           row.key == "gpu_metrics_set" || base::to_double(text).has_value();
      if (!is_open && !can_.takes(option, text)) {
        if (!asked(row.key))
          continue;
        return refuse(me() + " does not take " + option + "=" + text,
                      row.key,
                      "It takes " + base::join(can_.options.at(option), ", ") + ".");
      }
      add(option, text);
    }
    return {};
  }

  /// What to write instead of an API that nsys cannot trace.
  [[nodiscard]] std::string trace_hint(const std::string& api) const {
    if (api.find(',') != std::string::npos) {
      const std::string list = base::replace_all(base::replace_all(api, " ", ""), ",", ", ");
      return "Write a list: [" + list + "].";
    }
    const std::vector<std::string>& known_apis = can_.options.at("--trace");
    const std::string nearest = base::did_you_mean(api, known_apis);
    if (!nearest.empty())
      return nearest;
    return "It can trace " + base::join(known_apis, ", ") + ".";
  }

  Done trace() {
    const auto* wanted = values("trace");
    if (!wanted)
      return {};
    for (const std::string& api : *wanted) {
      if (!can_.takes("--trace", api))
        return refuse(me() + " cannot trace '" + api + "'", "trace", trace_hint(api));
    }
    add("--trace", base::join(*wanted, ","));
    if (const std::string graph = value("cuda_graph_trace"); !graph.empty()) {
      const auto option = TRY(option_name(*find_option("nsys", "--cuda-graph-trace")));
      const std::string granularity = graph.substr(0, graph.find(':'));
      if (granularity != "graph" && granularity != "node")
        return refuse("'" + graph + "' is not a granularity of CUDA graph tracing",
                      "cuda_graph_trace",
                      "Write graph or node.");
      if (!option.empty())
        add(option, graph);
    }
    return {};
  }

  Done capture() {
    const std::string range = value("nvtx_capture");
    const std::string kind = capture_kind(range);
    if (kind != "nvtx" && !range.empty() && asked("nvtx_capture")) {
      std::string shown_kind = "none";
      if (!kind.empty())
        shown_kind = kind;
      note("nvtx_capture is not used: capture_range is " + shown_kind);
    }
    if (kind == "nvtx" && range.empty() && request_.ranges.include.size() != 1)
      return refuse("the recording is gated by a range, but none is named",
                    "nvtx_capture",
                    "Set pipeline.nsys.nvtx_capture to one range: decode or LLM@decode.");
    if (kind.empty() || kind == "none") {
      if (asked("capture_range_end"))
        note("capture_range_end is not used: neither gating_nvtx nor capture_range is set");
      return {};
    }
    if (!can_.takes("--capture-range", kind))
      return refuse(me() + " does not take --capture-range=" + kind,
                    "capture_range",
                    "It takes " + base::join(can_.options.at("--capture-range"), ", ") + ".");
    TRY(capture_needs_trace(kind));
    add("--capture-range", kind);
    if (kind == "nvtx")
      TRY(nvtx_capture(range));
    return capture_end();
  }

  /// "nvtx", "cudaProfilerApi", "hotkey"; "none" or "" without a gate.
  [[nodiscard]] std::string capture_kind(const std::string& range) const {
    const std::string kind = value("capture_range");
    // A range that the user names is a gate, unless gating is turned off.
    const bool names_gate = !range.empty() && asked("nvtx_capture") && !asked("capture_range");
    const bool has_no_kind = kind.empty() || kind == "none";
    if (has_no_kind && (options_.gating || names_gate))
      return "nvtx";
    return kind;
  }

  [[nodiscard]] Done capture_needs_trace(const std::string& kind) const {
    const auto* traced = values("trace");
    if (kind == "hotkey" || !traced)
      return {};
    const std::string needed = kind == "nvtx" ? "nvtx" : "cuda";
    if (std::ranges::find(*traced, needed) != traced->end())
      return {};
    return refuse("--capture-range=" + kind + " needs --trace=" + needed,
                  "trace",
                  "Add " + needed + " to pipeline.nsys.trace.");
  }

  /// `configured`: the value of nvtx_capture; with "" the one range of the request is the gate.
  Done nvtx_capture(const std::string& configured) {
    const bool is_configured = !configured.empty();
    std::string range = configured;
    if (!is_configured)
      range = request_.ranges.include.front().written;
    const auto translated = TRY(capture_of(range, is_configured));
    if (is_placeholder(range))
      note("nvtx_capture '" + range +
           "' is the placeholder of nsys's help: nothing is recorded unless a range of the "
           "program is called 'range'");
    if (is_configured && range.ends_with("@*"))
      note("nvtx_capture '" + range + "' is nsys's own form: the range '" +
           range.substr(0, range.size() - 2) + "' of any domain");
    else if (translated != range)
      note("nvtx_capture '" + range + "' is '" + translated +
           "' to nsys: range first, domain second, no slash");
    add("--nvtx-capture", translated);
    if (registered_ == true)
      return {};
    plan_.set_env["NSYS_NVTX_PROFILER_REGISTER_ONLY"] = "0";
    if (can_.has("--env-var"))
      add("--env-var", "NSYS_NVTX_PROFILER_REGISTER_ONLY=0");
    note(
        "NSYS_NVTX_PROFILER_REGISTER_ONLY=0 is set for the program, since nsys gates only on "
        "registered strings "
        "without it (PyTorch's and most others are not)");
    return {};
  }

  Done capture_end() {
    constexpr std::string_view kEnds[] = {
        "none", "stop", "stop-shutdown", "repeat", "repeat-shutdown"};
    std::string end = value("capture_range_end");
    if (end.empty())
      end = "stop";  // nsys's default, stop-shutdown, sends the program SIGTERM
    const std::string name = end.substr(0, end.find(':'));
    if (std::ranges::find(kEnds, name) == std::end(kEnds))
      return refuse("'" + end + "' is not a way to end a capture",
                    "capture_range_end",
                    "Write none, stop, stop-shutdown, repeat[:N] or repeat-shutdown:N.");
    if (name == "repeat-shutdown" && end.find(':') == std::string::npos)
      return refuse(
          "repeat-shutdown needs a count", "capture_range_end", "Write repeat-shutdown:N.");
    if (can_.has("--capture-range-end")) {
      add("--capture-range-end", end);
    } else if (can_.has("--stop-on-range-end")) {
      if (name.starts_with("repeat"))
        return refuse(
            me() + " cannot repeat a capture", "capture_range_end", "It came with nsys 2021.3.");
      add("--stop-on-range-end", name == "none" ? "false" : "true");
    }
    return {};
  }

  Done domains() {
    const auto* include = values("nvtx_domain_include");
    const auto* exclude = values("nvtx_domain_exclude");
    if (include && exclude)
      return refuse("nsys takes nvtx_domain_include or nvtx_domain_exclude, not both",
                    "nvtx_domain_include",
                    "Leave one of them out.");
    for (const auto& [key, list] :
         {std::pair{"nvtx_domain_include", include}, {"nvtx_domain_exclude", exclude}}) {
      if (!list)
        continue;
      const auto option =
          TRY(option_name(*find_option("nsys", "--" + base::replace_all(key, "_", "-"))));
      std::vector<std::string> escaped;
      for (const std::string& domain : *list)
        escaped.push_back(escape_domain(domain));
      if (!option.empty())
        add(option, base::join(escaped, ","));
    }
    return {};
  }

  const std::optional<bool> registered_;
};

std::string escape_at(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '@' || c == '\\')
      out += '\\';
    out += c;
  }
  return out;
}

/// `decode@LLM`, nsys's order, as nsys takes it; nullopt for another order.
std::optional<std::string> range_then_domain(std::string_view written) {
  const auto separator = written.find('@');
  if (separator == std::string_view::npos ||
      written.find_first_of("/*\\") != std::string_view::npos)
    return std::nullopt;
  const std::string_view range = written.substr(0, separator),
                         domain = written.substr(separator + 1);
  if (range.empty() || domain.empty() || domain.find('@') != std::string_view::npos)
    return std::nullopt;
  const bool ncu_order = looks_like_domain(range) && !looks_like_domain(domain);
  if (ncu_order || range == model::kDefaultDomain)
    return std::nullopt;
  if (domain == model::kDefaultDomain || domain == model::kDefaultDomainOfNsys)
    return std::string(range);
  return std::string(written);
}

}  // namespace

base::Result<Plan> plan(const Abilities& can, const Options& options, const Request& request) {
  return Planner(can, options, request).run();
}

base::Result<std::string> capture_of(std::string_view written, bool own_form) {
  const std::string key = "pipeline.nsys.nvtx_capture";
  // nsys's only pattern: any domain. In ncu's order it is any range of a domain, which nsys cannot
  // gate on.
  if (own_form && written.ends_with("@*") && written.size() > 2 &&
      written.find('@') == written.size() - 2) {
    const std::string plain = TRY(capture_of(written.substr(0, written.size() - 2)));
    return plain + "@*";
  }
  if (own_form) {
    if (auto capture = range_then_domain(written))
      return *std::move(capture);
  }
  const auto terms = model::parse_terms(written);
  if (!terms) {
    base::Error error = terms.error();
    error.code = base::Code::kConfig;
    error.where = key + ": " + std::string(written);
    return tl::make_unexpected(std::move(error));
  }
  const auto refuse = [&](const std::string& what) {
    return base::fail(base::Code::kConfig,
                      "nsys cannot gate on '" + std::string(written) + "': " + what,
                      key,
                      "Name one range: decode, or LLM@decode.");
  };
  if (terms->size() != 1)
    return refuse("it takes one range, not a list");
  const auto& parts = terms->front().forms.front().parts();
  std::string domain = parts.domain.value_or("");
  if (parts.regex) {
    // `*@decode` (any domain) is the one pattern that nsys has: decode@*.
    if (!written.starts_with("*@") || written.find_first_of("*", 2) != std::string_view::npos)
      return refuse("it knows no patterns");
    const std::string plain = TRY(capture_of(written.substr(2)));
    return plain + "@*";
  }
  if (parts.elements.size() != 1 ||
      parts.elements[0].kind != model::RangeExpression::Element::Kind::kName)
    return refuse("it knows no nesting");
  if (domain == model::kDefaultDomain)
    domain.clear();
  const std::string name = escape_at(parts.elements[0].text);
  if (domain.empty())
    return name;
  return name + "@" + escape_at(domain);
}

bool is_placeholder(std::string_view capture) {
  return capture == "range" || capture == "range@domain";
}

std::string escape_domain(std::string_view domain) {
  if (domain == model::kDefaultDomain)
    return "default";
  return base::replace_all(std::string(domain), ",", "\\,");
}

std::filesystem::path report_base(const Request& request) {
  return request.run_dir / "nsys" / "nsys";
}

Plan import_plan(const std::filesystem::path& importer,
                 const std::filesystem::path& stream,
                 const std::filesystem::path& report) {
  Plan plan;
  plan.collector = "nsys";
  plan.argv = {importer.string(),
               "-i",
               stream.string(),
               "-o",
               report.string()};  // 2020.4.3 does not know -f
  plan.cwd = stream.parent_path();
  plan.timeout = std::chrono::minutes(30);
  return plan;
}

Plan export_plan(const Abilities& abilities,
                 const std::filesystem::path& report,
                 const std::filesystem::path& sqlite) {
  Plan plan;
  plan.collector = "nsys";
  plan.argv = {abilities.path.string(),
               "export",
               "--type=sqlite",
               "--force-overwrite=true",
               "--output=" + sqlite.string(),
               report.string()};
  plan.set_env = {{"LC_ALL", "C"}};
  plan.cwd = report.parent_path();
  plan.timeout = std::chrono::minutes(60);
  return plan;
}

}  // namespace rangescope::collect::nsys
