#include "doctor/causes.hpp"

#include <map>

#include "base/log.hpp"
#include "base/text.hpp"
#include "collect/nsight/outcome.hpp"
#include "config/compose.hpp"
#include "config/yaml.hpp"

namespace rangescope::doctor {
namespace {

namespace fs = std::filesystem;

std::string text_of(const config::Value& value, std::string_view key) {
  const config::Value* found = value.find(key);
  if (!found || !found->is_scalar())
    return {};
  return std::string(base::trim(found->text));
}

base::Result<Chapter> chapter(const fs::path& folder, const std::string& name) {
  const auto document = TRY(config::read_yaml(folder / (name + ".yaml")));
  Chapter out{name, text_of(document, "title"), text_of(document, "about"), {}};
  if (const config::Value* causes = document.find("causes"))
    for (const auto& [key, value] : causes->entries)
      out.causes.push_back({name + "." + key,
                            text_of(value, "title"),
                            text_of(value, "means"),
                            text_of(value, "cure"),
                            text_of(value, "known_from"),
                            static_cast<int>(base::to_int(text_of(value, "exit")).value_or(0))});
  return out;
}

/// How the words of a tool's messages are known.
std::string_view source_of_messages(const std::string& tool) {
  if (tool == "ncu")
    return "ncu 2020.3 to 2024.1: run without a GPU; 2025.3.1: recorded; later ones: documentation";
  if (tool == "nsys")
    return "nsys 2022.4 and 2025.3.1: run; later ones: documentation";
  return "the texts of CUDA 11 to 13 and of PyTorch 2";
}

/// One cause for each id of the tool's messages, with all the words by which it is known.
std::vector<Cause> said_by(const std::string& tool) {
  std::vector<Cause> out;
  std::map<std::string_view, std::size_t> place_of_id;
  for (const collect::Message& message : collect::messages(tool)) {
    const std::string words = "`" + std::string(message.words) + "`";
    const auto [place, is_new] = place_of_id.try_emplace(message.id, out.size());
    if (!is_new) {
      std::string& recognized_by = out[place->second].explanation;
      recognized_by.insert(recognized_by.size() - 1, ", " + words);
      continue;
    }
    std::string_view cure = message.cure;
    while (cure.ends_with('.'))
      cure.remove_suffix(1);
    out.push_back({std::string(message.id),
                   std::string(message.explanation),
                   "Recognized by: " + words + ".",
                   std::string(cure),
                   std::string(source_of_messages(tool)),
                   base::exit_code(message.code)});
  }
  return out;
}

std::vector<Chapter> read_chapters() {
  std::vector<Chapter> out;
  const auto conf = config::shipped_folder();
  if (!conf)
    return base::log(conf.error()), out;
  for (const char* name : {"machine", "command", "program", "ncu", "nsys", "cuda"}) {
    auto read = chapter(*conf / "doctor", name);
    if (!read) {
      base::log(read.error());
      continue;
    }
    if (read->name == "ncu" || read->name == "nsys" || read->name == "cuda") {
      std::vector<Cause> said = said_by(name);
      read->causes.insert(read->causes.begin(), said.begin(), said.end());
    }
    out.push_back(std::move(*read));
  }
  return out;
}

}  // namespace

std::span<const Chapter> chapters() {
  static const std::vector<Chapter> all = read_chapters();
  return all;
}

const Cause* find_cause(std::string_view id) {
  for (const Chapter& chapter : chapters())
    for (const Cause& cause : chapter.causes)
      if (cause.id == id)
        return &cause;
  return nullptr;
}

model::Finding finding_of(std::string_view id,
                          model::Grade verdict,
                          std::string found,
                          std::string hint) {
  return explained({std::string(id), {}, verdict, std::move(found), std::move(hint), {}});
}

model::Finding explained(model::Finding finding) {
  if (const Cause* cause = find_cause(finding.id)) {
    finding.why = cause->explanation;
    if (finding.hint.empty())
      finding.hint = cause->cure;
  }
  return finding;
}

model::Finding well(std::string found) {
  return {{}, {}, model::Grade::kOk, std::move(found), {}, {}};
}

model::Finding skipped(std::string why) {
  return {{}, {}, model::Grade::kSkip, std::move(why), {}, {}};
}

int exit_code_of(std::span<const model::Finding> findings) {
  for (const model::Finding& finding : findings) {
    if (finding.verdict != model::Grade::kFail)
      continue;
    if (const Cause* cause = find_cause(finding.id))
      return cause->exit_code;
    return base::exit_code(base::Code::kInternal);
  }
  return 0;
}

std::string causes_page() {
  std::string text =
      "# Causes\n\n"
      "For readers of a doctor's finding: every cause that the doctor knows, what it means, and "
      "what to do. Its id is "
      "stable and\nappears in the doctor's output, in `status.json` and in reports. `rangescope "
      "doctor --causes` "
      "writes this page.\n";
  for (const Chapter& chapter : chapters()) {
    text += "\n## " + chapter.title + "\n\n" + chapter.about + "\n";
    for (const Cause& cause : chapter.causes) {
      text += "\n### `" + cause.id + "`: " + cause.title + "\n\n";
      text += cause.explanation + "\n\n";
      text += "**Remedy:** " + cause.cure + ".\n\n";
      text += "*Known from:* " + cause.known_from + ".\n";
    }
  }
  return text;
}

}  // namespace rangescope::doctor
