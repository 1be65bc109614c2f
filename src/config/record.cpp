#include "config/record.hpp"

#include "base/redact.hpp"
#include "config/override.hpp"

namespace rangescope::config {
namespace {

/// Maps of variables go by their names, lists by what precedes a word, texts by what is in them.
void redact(Value& value, const base::Redactor& redactor, bool variables) {
  if (value.is_list()) {
    std::vector<std::string> words;
    for (const Value& item : value.items)
      words.push_back(item.text);
    words = redactor.arguments(words);
    for (std::size_t i = 0; i < words.size(); ++i)
      if (value.items[i].kind == Kind::kText && !value.items[i].secret)
        value.items[i].text = words[i];
  }
  for (Entry& entry : value.entries) {
    if (variables && entry.value.is_scalar())
      entry.value.secret = entry.value.secret || base::secret_variable(entry.key);
    redact(entry.value, redactor, entry.key == "env");
  }
  if (value.kind == Kind::kText && !value.secret)
    value.text = redactor.text(value.text);
}

std::string flow(std::string_view text) {
  return to_flow(text_value(std::string(text), {}));
}

/// A value as it was given, in flow style.
std::string redacted_flow(const Assignment& done, const base::Redactor& redactor) {
  auto value = parse_value(done.value, {});
  if (!value)
    return redactor.text(done.value);
  const auto dot = done.key.rfind('.');
  if (done.key.find(".env.") != std::string::npos &&
      base::secret_variable(done.key.substr(dot + 1)))
    return base::redacted(value->text);
  redact(*value, redactor, done.key.ends_with(".env"));
  return to_flow(*value);
}

/// An override repeats its value, which may be a secret: of variables their names are enough.
std::string recorded_origin(const Assignment& done, const base::Redactor& redactor) {
  const bool is_variable = done.key.find(".env.") != std::string::npos;
  if (!is_variable || done.origin.source != Source::kOverride)
    return redactor.text(to_string(done.origin));
  Origin without_value = done.origin;
  without_value.name = without_value.name.substr(0, without_value.name.find('='));
  return to_string(without_value);
}

}  // namespace

std::string recorded_values(const Config& config) {
  Value resolved = config.root;
  redact(resolved, base::Redactor(), false);
  return "# The configuration of this run, resolved.\n" + to_yaml(resolved);
}

std::string recorded_inputs(const Config& config) {
  const base::Redactor redactor;
  std::string text = "# The sources of config.yaml, later ones over earlier ones.\nfiles:\n";
  for (const std::string& file : config.files)
    text += "  - " + flow(file) + "\n";
  text += "groups:\n";
  for (const Choice& choice : config.choices) {
    std::string option = "null";
    if (!choice.option.empty())
      option = flow(choice.option);
    text += "  - {group: " + choice.group + ", option: " + option;
    text += ", by: " + flow(redactor.text(to_string(choice.origin))) + "}\n";
  }
  text += "values:\n";
  for (const Assignment& done : config.history) {
    text += "  - {key: " + flow(done.key) + ", value: " + flow(redacted_flow(done, redactor));
    text += ", by: " + flow(recorded_origin(done, redactor)) + "}\n";
  }
  return text;
}

}  // namespace rangescope::config
