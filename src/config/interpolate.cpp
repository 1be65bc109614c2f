#include "config/interpolate.hpp"

#include <array>
#include <ctime>
#include <set>

#include "base/redact.hpp"
#include "base/text.hpp"

namespace rangescope::config {
namespace {

// Far more than anybody writes, far less than the stack and the memory hold.
constexpr int kDeepest = 200;
constexpr std::size_t kMostCopied = std::size_t{16} << 20;  // bytes of text, and 64 for each value

std::size_t weight(const Value& value) {
  std::size_t sum = 64 + value.text.size();
  for (const Value& item : value.items)
    sum += weight(item);
  for (const Entry& entry : value.entries)
    sum += weight(entry.value) + entry.key.size();
  return sum;
}

/// Depth-first over references: a value is resolved when it is first needed, and a path met again
/// while it is being resolved is a cycle. Linear in the number of values and references.
class Resolver {
 public:
  Resolver(Value& root, const Surroundings& around) : root_(root), around_(around) {}

  base::Result<void> all(Value& value, const std::string& path) {
    if (done_.count(path))
      return {};
    const Level level(level_);
    if (level_ > kDeepest)
      return too_much("goes deeper than " + std::to_string(kDeepest) + " levels", value);
    if (!open_.insert(path).second)
      return refused("the interpolation of '" + path + "' is circular",
                     value.origin,
                     "Break the circle with a plain value.");
    for (std::size_t i = 0; i < value.items.size(); ++i)
      TRY(all(value.items[i], join(path, std::to_string(i))));
    for (Entry& entry : value.entries)
      TRY(all(entry.value, join(path, entry.key)));
    if (value.kind == Kind::kText && !value.literal && value.text.find("${") != std::string::npos) {
      auto resolved = TRY(text(value, value.text, path));
      resolved.origin = value.origin;
      resolved.literal = true;
      value = std::move(resolved);
    }
    open_.erase(path);
    done_.insert(path);
    return {};
  }

 private:
  static std::string join(const std::string& path, const std::string& name) {
    if (path.empty())
      return name;
    return path + "." + name;
  }

  Value* find(const std::string& path) { return const_cast<Value*>(at_path(root_, path)); }

  base::Result<Value> text(const Value& value, std::string_view source, const std::string& path) {
    const Level level(level_);
    if (level_ > kDeepest)
      return too_much("goes deeper than " + std::to_string(kDeepest) + " levels", value);
    std::string out;
    bool secret = false;
    std::size_t position = 0;
    while (position < source.size()) {
      if (source[position] == '\\' && source.substr(position).starts_with("\\${")) {
        out += "${";
        position += 3;
        continue;
      }
      if (!source.substr(position).starts_with("${")) {
        out += source[position++];
        continue;
      }
      std::size_t end = position + 2;
      for (int depth = 1; end < source.size(); ++end) {
        if (source.substr(end).starts_with("${"))
          ++depth, ++end;
        else if (source[end] == '}' && --depth == 0)
          break;
      }
      if (end >= source.size())
        return refused("the interpolation in '" + std::string(source) + "' is not closed",
                       value.origin,
                       "Close it with }.");
      auto piece = one(value, source.substr(position + 2, end - position - 2), path);
      if (!piece)
        return piece;
      if (position == 0 && end + 1 == source.size())
        return piece;  // alone: keeps its type
      if (!piece->is_scalar())
        return refused("'" + std::string(source) + "' puts a list or a map into a text",
                       value.origin,
                       "Refer to one of its values.");
      secret = secret || piece->secret;
      if (piece->is_null())
        out += "null";
      else
        out += piece->text;
      copied_ += piece->text.size();
      if (copied_ > kMostCopied)
        return too_much("makes more than 16 MiB", value);
      position = end + 1;
    }
    Value result = text_value(out, value.origin);
    result.secret = secret;
    return result;
  }

  base::Result<Value> one(const Value& value,
                          std::string_view inner_source,
                          const std::string& path) {
    std::string inner(inner_source);
    if (inner.find("${") != std::string::npos) {
      auto nested = TRY(text(value, inner, path));
      inner = nested.text;
    }
    if (const auto colon = inner.find(':'); colon != std::string::npos)
      return resolver(
          value, std::string(base::trim(inner.substr(0, colon))), inner.substr(colon + 1));
    std::string target = std::string(base::trim(inner));
    if (target.starts_with('.')) {  // one dot is the map that holds this value
      std::string map = path;
      std::size_t dots = 0;
      while (dots < target.size() && target[dots] == '.') {
        ++dots;
        map = std::string(parent_of(map));
      }
      target = join(map, target.substr(dots));
    }
    target = base::replace_all(base::replace_all(target, "[", "."), "]", "");
    Value* found = find(target);
    if (!found)
      return refused(
          "${" + inner + "}: there is no key '" + target + "'", value.origin, suggestion(target));
    TRY(all(*found, target));
    found = find(target);
    if (copied_ += weight(*found); copied_ > kMostCopied)
      return too_much("makes more than 16 MiB", value);
    return *found;
  }

  std::string suggestion(const std::string& target) const {
    std::vector<std::string> known;
    collect(root_, "", known);
    return base::did_you_mean(target, known);
  }
  static void collect(const Value& value, const std::string& path, std::vector<std::string>& out) {
    for (const Entry& entry : value.entries) {
      const std::string key = join(path, entry.key);
      out.push_back(key);
      collect(entry.value, key, out);
    }
  }

  base::Result<Value> resolver(const Value& value,
                               const std::string& name,
                               const std::string& argument) {
    if (name == "env" || name == "oc.env") {
      const auto comma = argument.find(',');
      const std::string variable(base::trim(argument.substr(0, comma)));
      const auto found = around_.environment.find(variable);
      Value result;
      if (found != around_.environment.end()) {
        result = plain_scalar(found->second, value.origin);
      } else if (comma != std::string::npos) {
        std::string fallback(base::trim(argument.substr(comma + 1)));
        if (fallback.size() > 1 && (fallback.front() == '\'' || fallback.front() == '"') &&
            fallback.back() == fallback.front())
          fallback = fallback.substr(1, fallback.size() - 2);
        result = plain_scalar(fallback, value.origin);
      } else {
        return refused("environment variable '" + variable + "' is not set",
                       value.origin,
                       "Set it, or give a default: ${env:" + variable + ",default}.");
      }
      result.secret = found != around_.environment.end() && base::secret_variable(variable);
      return result;
    }
    if (name == "now") {
      const std::time_t moment = std::chrono::system_clock::to_time_t(around_.now);
      std::tm local{};
      localtime_r(&moment, &local);
      std::array<char, 256> buffer{};
      std::string format = "%Y%m%d-%H%M%S";
      if (!argument.empty())
        format = argument;
      const std::size_t length =
          std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
      if (length == 0)
        return refused("${now:" + argument + "} gives no text",
                       value.origin,
                       "Write a strftime format, e.g. ${now:%Y%m%d}.");
      return text_value({buffer.data(), length}, value.origin);
    }
    const std::vector<std::string> known{"env", "oc.env", "now"};
    std::string hint = base::did_you_mean(name, known);
    if (hint.empty())
      hint = "Known are env, oc.env and now.";
    return refused("${" + name + ":...}: there is no resolver '" + name + "'", value.origin, hint);
  }

  /// One more level for as long as it lives.
  struct Level {
    explicit Level(int& depth) : level(depth) { ++level; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --level; }
    int& level;
  };

  static tl::unexpected<base::Error> too_much(const std::string& what, const Value& value) {
    return refused("the interpolation " + what, value.origin, "Write the value itself.");
  }

  Value& root_;
  int level_ = 0;
  std::size_t copied_ = 0;
  const Surroundings& around_;
  std::set<std::string> open_, done_;
};

}  // namespace

base::Result<void> interpolate(Value& root, const Surroundings& around) {
  Resolver resolver(root, around);
  // Leaves only: a map is open while its children are resolved, and a child may refer to its own
  // map's siblings.
  for (Entry& entry : root.entries)
    TRY(resolver.all(entry.value, entry.key));
  return {};
}

}  // namespace rangescope::config
