#include "read/proton/reader.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/demangle.hpp"
#include "base/fs.hpp"
#include "base/text.hpp"
#include "read/json.hpp"

namespace rangescope::read::proton {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 256;

/// The member `key` of what may be absent itself.
const Json* member_of(const Json* json, const char* key) {
  if (json == nullptr)
    return nullptr;
  return json_member(*json, key);
}

std::optional<double> number(const Json* metrics, const char* key) {
  const Json* member = member_of(metrics, key);
  if (member == nullptr || !member->is_number())
    return std::nullopt;
  const auto value = member->get<double>();
  const bool is_plausible = value >= 0 && value < 9e15;
  if (!is_plausible)
    return std::nullopt;
  return value;
}

class TreeReader {
 public:
  explicit TreeReader(model::Session& session) : s_(session) {}

  void walk(const Json& frame) {
    const Json* name = member_of(json_member(frame, "frame"), "name");
    const Json* metrics = json_member(frame, "metrics");
    if (name == nullptr || !name->is_string() || path_.size() >= kDeepest) {
      ++bad_;
      return;
    }
    const model::StringId id = s_.strings.intern(name->get_ref<const std::string&>());
    if (member_of(metrics, "device_type") != nullptr)
      return kernel(s_.strings.intern(base::demangle(name->get_ref<const std::string&>())),
                    *metrics);
    const bool root = path_.empty() && !rooted_;
    rooted_ = true;
    if (!root)
      open(id, number(metrics, "cpu_time (ns)"));
    if (const Json* children = json_member(frame, "children");
        children != nullptr && children->is_array())
      for (const Json& child : *children)
        walk(child);
    if (!root)
      path_.pop_back();
  }

  void device(std::string_view type, const Json& described) {
    for (const auto& [ordinal, values] : described.items()) {
      const auto number_of = base::to_uint(ordinal);
      if (!number_of || *number_of > 4096)
        continue;
      model::Device& out = s_.devices.emplace_back();
      out.ordinal = static_cast<std::uint32_t>(*number_of);
      const Json* arch = json_member(values, "arch");
      if (arch != nullptr && arch->is_string())
        out.name = s_.strings.intern(std::string(type) + ' ' + arch->get_ref<const std::string&>());
      out.sm_count = static_cast<std::uint32_t>(number(&values, "num_sms").value_or(0));
    }
  }

  [[nodiscard]] std::uint64_t bad() const { return bad_; }

 private:
  struct Place {
    model::StringId joined;  ///< the path as one name
    std::vector<model::StringId> names;
  };

  void open(model::StringId name, std::optional<double> cpu_ns) {
    Place place{name, {name}};
    if (!path_.empty()) {
      place.names = path_.back().names;
      place.names.push_back(name);
      const std::string around(s_.strings.view(path_.back().joined));
      place.joined = s_.strings.intern(around + " > " + std::string(s_.strings.view(name)));
    }
    const bool fresh = s_.summary.paths.emplace(place.joined, place.names).second;
    path_.push_back(std::move(place));
    if (!fresh)
      return;
    model::RangeSummary& range = s_.summary.ranges.emplace_back();
    range.name = path_.back().joined;
    range.occurrences = -1;
    range.total_ns = cpu_ns;
  }

  /// Of the run, and of every range around it.
  void kernel(model::StringId name, const Json& metrics) {
    const auto calls = number(&metrics, "count"), time = number(&metrics, "time (ns)");
    if (!calls || !time || *calls < 1) {
      ++bad_;
      return;
    }
    model::KernelSummary row;
    row.name = name;
    row.calls = std::llround(*calls);
    row.total_ns = *time;
    s_.summary.kernels.push_back(row);
    row.in_range = true;
    row.outside = path_.empty();
    if (row.outside)
      s_.summary.kernels.push_back(row);
    for (const Place& place : path_) {
      row.range = place.joined;
      s_.summary.kernels.push_back(row);
    }
  }

  model::Session& s_;
  std::vector<Place> path_;
  std::uint64_t bad_ = 0;
  bool rooted_ = false;
};

}  // namespace

base::Result<model::Session> read_text(std::string_view text, const std::string& name) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded())
    return base::fail(base::Code::kBadData,
                      "this JSON cannot be read",
                      name,
                      "Check that the file was copied whole.");
  model::Session session;
  TreeReader reader(session);
  if (document.is_array()) {
    for (const Json& part : document) {
      if (json_member(part, "frame") != nullptr) {
        reader.walk(part);
      } else if (part.is_object()) {
        for (const auto& [type, devices] : part.items())
          if (devices.is_object())
            reader.device(type, devices);
      }
    }
  }
  if (session.summary.kernels.empty())
    return base::fail(base::Code::kBadData,
                      "a profile of Proton without kernels that have a time",
                      name,
                      "Give what proton.finalize() wrote, of a session with the metric time.");
  if (reader.bad() > 0)
    session.losses.push_back(
        {"bad_rows", reader.bad(), "frames without a name, a count or a time were left out"});
  session.losses.push_back(
      {"totals_only", 0, "a profile of Proton holds totals by path: overlap cannot be known"});
  session.sources.push_back({name, "proton", "Proton", {}});
  return session;
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path&) {
  const std::string_view text =
      base::trim({reinterpret_cast<const char*>(head.data()), head.size()});
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return text.starts_with('[') && has("\"children\"") && has("\"frame\"") && has("\"metrics\"");
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  auto text = TRY(base::read_file(path));
  return read_text(text, path.string());
}

const Reader kReader{"proton", sniff, read};

}  // namespace rangescope::read::proton
