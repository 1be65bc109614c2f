#include "analyze/names/nest.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace rangescope::analyze {
namespace {

using model::Session;
using model::StringId;

class Nester {
 public:
  Nester(Session& session, std::string_view separator) : session_(session), separator_(separator) {}

  void ranges() {
    struct Open {
      std::vector<StringId> path;
      std::vector<std::int64_t> ends;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Open> stacks;  // of a thread and domain
    std::vector<model::Range> out;
    std::vector<std::uint32_t> moved,
        outermost;  // where the range of an index is now, and its first level
    out.reserve(session_.ranges.size());
    moved.reserve(session_.ranges.size());
    for (model::Range range : session_.ranges) {
      outermost.push_back(static_cast<std::uint32_t>(out.size()));
      if (range.kind == model::RangeKind::kPushPop) {
        Open& open = stacks[{range.thread, range.domain}];
        while (!open.ends.empty() && open.ends.back() != model::kOpen &&
               open.ends.back() <= range.start_ns) {
          open.ends.pop_back();
          open.path.pop_back();
        }
        const auto levels = split(range.name);
        for (std::size_t i = known(open.path, levels); i < levels.size(); ++i) {
          range.name = levels[i];
          open.path.push_back(range.name);
          open.ends.push_back(range.end_ns);
          if (i + 1 < levels.size())
            out.push_back(range);
        }
      }
      moved.push_back(static_cast<std::uint32_t>(out.size()));
      out.push_back(range);
    }
    session_.ranges = std::move(out);
    const std::size_t unlisted = session_.unlisted.size();
    for (std::size_t u = 0; u < unlisted; ++u) {
      const std::uint32_t before = session_.unlisted[u].range;
      session_.unlisted[u].range = moved[before];
      for (std::uint32_t level = outermost[before]; level < moved[before]; ++level) {
        model::Unlisted around = session_.unlisted[u];  // filled by the level inside
        around.range = level;
        around.inside_ns = static_cast<std::int64_t>(around.wall.moments.sum);
        around.inside_recorded_ns =
            around.inside_ns - static_cast<std::int64_t>(around.unrecorded.moments.sum);
        session_.unlisted.push_back(std::move(around));
      }
    }
    for (model::UnlistedInside& inside : session_.unlisted_inside)
      inside.range = moved[inside.range];
    for (model::Projection& projection : session_.projections)
      if (projection.range < moved.size())
        projection.range = moved[projection.range];
  }

  void path(std::vector<model::OpenRange>& ranges) {
    std::map<std::uint32_t, std::vector<StringId>> paths;
    std::vector<model::OpenRange> out;
    for (model::OpenRange range : ranges) {
      if (range.kind != model::RangeKind::kPushPop) {
        out.push_back(range);
        continue;
      }
      std::vector<StringId>& path = paths[range.domain];
      const auto levels = split(range.name);
      for (std::size_t i = known(path, levels); i < levels.size(); ++i) {
        range.name = levels[i];
        path.push_back(range.name);
        out.push_back(range);
      }
    }
    ranges = std::move(out);
  }

  void path(std::vector<StringId>& names) {
    std::vector<StringId> out;
    for (const StringId name : names) {
      const auto levels = split(name);
      for (std::size_t i = known(out, levels); i < levels.size(); ++i)
        out.push_back(levels[i]);
    }
    names = std::move(out);
  }

 private:
  const std::vector<StringId>& split(StringId id) {
    const auto [found, added] = split_.try_emplace(id);
    if (!added)
      return found->second;
    const std::string name(session_.strings.view(id));
    for (std::size_t start = 0; start <= name.size();) {
      const std::size_t end = std::min(name.find(separator_, start), name.size());
      if (end > start)
        found->second.push_back(
            session_.strings.intern(std::string_view(name).substr(start, end - start)));
      start = end + separator_.size();
    }
    if (found->second.empty())
      found->second.push_back(id);
    return found->second;
  }

  /// How many first levels of a name are the last ones of the path; never all of them, so that none
  /// is lost.
  static std::size_t known(const std::vector<StringId>& path, const std::vector<StringId>& levels) {
    for (std::size_t n = std::min(path.size(), levels.size() - 1); n > 0; --n)
      if (std::equal(levels.begin(),
                     levels.begin() + static_cast<std::ptrdiff_t>(n),
                     path.end() - static_cast<std::ptrdiff_t>(n)))
        return n;
    return 0;
  }

  Session& session_;
  std::string_view separator_;
  std::map<StringId, std::vector<StringId>> split_;
};

}  // namespace

void nest_names(Session& session, std::string_view separator) {
  if (separator.empty())
    return;
  Nester nester(session, separator);
  nester.ranges();
  for (model::Measurement& result : session.measurements)
    nester.path(result.ranges);
  for (auto& path : session.captured_paths)
    nester.path(path);
  for (model::CounterWait& wait : session.counter_waits)
    nester.path(wait.path);
}

}  // namespace rangescope::analyze
