// YAML as this room reads it: one document, a map at the root, YAML 1.2 scalars (yes/no/on/off stay
// text and are taken as booleans only by keys that are booleans), anchors and aliases, no merge
// keys, no tags beyond !!str, every key once.
//
// yaml-cpp accepts duplicate keys silently, so its events are read here and its nodes are not used.
#include "config/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <sstream>
#include <stdexcept>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::config {
namespace {

struct Refused : std::runtime_error {
  Refused(const std::string& text, const YAML::Mark& at, std::string fix = {})
      : std::runtime_error(text), mark(at), hint(std::move(fix)) {}
  YAML::Mark mark;
  std::string hint;
};

class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& name, Source source) : name_(name), source_(source) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(plain_scalar("", place(mark)), mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto named = anchors_.find(anchor);
    if (named == anchors_.end())
      throw Refused("an alias is inside the value that it names", mark);
    count(named->second, mark);
    add(named->second, mark, 0);
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& text) override {
    const bool plain = tag == "?" || tag.empty();
    if (!plain && tag != "!" && tag != "tag:yaml.org,2002:str")
      throw Refused("the tag " + tag + " is not supported", mark, "Leave the tag out.");
    if (plain)
      add(plain_scalar(text, place(mark)), mark, anchor);
    else
      add(text_value(text, place(mark)), mark, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string&,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::kList, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string&,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Origin place(const YAML::Mark& mark) const {
    return {.source = source_, .name = name_, .line = mark.line + 1, .column = mark.column + 1};
  }
  Value root;

 private:
  struct Frame {
    Value value;
    YAML::anchor_t anchor = 0;
    YAML::Mark mark;
    bool has_key = false;
    std::string key;
  };

  /// Aliases of aliases grow exponentially ("billion laughs"); no real configuration has
  /// 100,000 values.
  void count(const Value& value, const YAML::Mark& mark) {
    if (++nodes_ > 100000)
      throw Refused("the aliases of this file make more than 100,000 values", mark);
    for (const Value& item : value.items)
      count(item, mark);
    for (const Entry& entry : value.entries)
      count(entry.value, mark);
  }

  void open(Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (stack_.size() > 200)
      throw Refused("nested more than 200 deep", mark);
    Frame frame;
    frame.value.kind = kind;
    frame.value.origin = place(mark);
    frame.anchor = anchor;
    frame.mark = mark;
    stack_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(frame.value), frame.mark, frame.anchor);
  }

  void add(Value value, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor)
      anchors_[anchor] = value;
    if (stack_.empty()) {
      root = std::move(value);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.value.is_list()) {
      frame.value.items.push_back(std::move(value));
      return;
    }
    if (!frame.has_key) {
      if (!value.is_scalar())
        throw Refused("a key must be a plain word, not a list or a map", mark);
      if (value.text == "<<")
        throw Refused("merge keys (<<) are not supported",
                      mark,
                      "Write the keys out, or put them into a file of a config group.");
      if (const Value* first = frame.value.find(value.text))
        throw Refused("key '" + value.text + "' is in one map twice (first at " +
                          to_string(first->origin) + ")",
                      mark,
                      "Remove one of the two.");
      frame.key = value.text;
      frame.has_key = true;
      return;
    }
    frame.has_key = false;
    frame.value.entries.push_back({std::move(frame.key), std::move(value)});
  }

  const std::string& name_;
  const Source source_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Value> anchors_;
  std::size_t nodes_ = 0;
};

}  // namespace

base::Result<Value> parse_yaml(std::string_view text, const std::string& name, Source source) {
  Builder builder(name, source);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder)) {
      Builder second(name, source);
      if (parser.HandleNextDocument(second))
        return base::fail(base::Code::kConfig,
                          "the file holds more than one YAML document",
                          name,
                          "Keep one document a file.");
    }
  } catch (const Refused& mistake) {
    return refused(mistake.what(), builder.place(mistake.mark), mistake.hint);
  } catch (const YAML::Exception& error) {
    return refused("not YAML: " + error.msg, builder.place(error.mark));
  } catch (const std::exception& error) {
    return base::fail(base::Code::kConfig, std::string("not YAML: ") + error.what(), name);
  }
  Value root = std::move(builder.root);
  if (root.is_null()) {
    root.kind = Kind::kMap;
    root.origin = {.source = source, .name = name};
  }
  if (!root.is_map())
    return refused("the root of a configuration file must be a map of keys",
                   root.origin,
                   "Write `key: value` lines.");
  return root;
}

base::Result<Value> read_yaml(const std::filesystem::path& path) {
  const auto text = TRY(base::read_regular(path, kMostYamlBytes));
  return parse_yaml(text, path.string());
}

}  // namespace rangescope::config
