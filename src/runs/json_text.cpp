#include "runs/json_text.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

#include "base/fs.hpp"
#include "base/held_folder.hpp"

namespace rangescope::runs {

// A manifest has a line a file: 100,000 files are 15 MB. A list of digests may be larger.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

std::string text_of(const OrderedJson& json) {
  return base::printable_json(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace)) +
         "\n";
}

base::Result<void> write_json(const std::filesystem::path& path,
                              const nlohmann::ordered_json& json) {
  return base::write_file(path, text_of(json));
}

bool overwrite_json(const std::filesystem::path& path, const OrderedJson& json) {
  std::string text = text_of(json);
  std::error_code error;
  const auto before = std::filesystem::file_size(path, error);
  if (error)
    return false;
  if (text.size() < before)
    text.insert(text.size() - 1, before - text.size(), ' ');
  const int file = ::open(base::in_place(path).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0)
    return false;
  const bool is_written =
      ::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  return ::close(file) == 0 && is_written;
}

namespace {

std::optional<std::string> schema_in(const nlohmann::json& json) {
  if (!json.is_object())
    return std::nullopt;
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_string())
    return std::nullopt;
  return schema->get<std::string>();
}

}  // namespace

base::Result<nlohmann::json> read_json(const std::filesystem::path& path, std::string_view schema) {
  auto text = TRY(base::read_regular(path, kMostBytes));
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return base::fail(
        base::Code::kBadData, "is not JSON", path.string() + ":+" + std::to_string(error.byte));
  }
  const std::optional<std::string> found = schema_in(json);
  if (!found)
    return base::fail(
        base::Code::kBadData, "has no schema; expected " + std::string(schema), path.string());
  if (*found != schema)
    return base::fail(base::Code::kBadData,
                      "has the schema '" + *found + "'; expected " + std::string(schema),
                      path.string());
  return json;
}

std::string text_in(const nlohmann::json& object, const char* key) {
  const auto value = object.find(key);
  if (value == object.end() || !value->is_string())
    return {};
  return value->get<std::string>();
}

std::string valid_utf8(const std::string& text) {
  if (base::is_utf8(text))
    return text;
  return base::printable(text);
}

bool lies_in_run(const std::filesystem::path& name) {
  if (name.empty() || !name.is_relative())
    return false;
  const auto is_parent = [](const std::filesystem::path& part) { return part == ".."; };
  return std::ranges::none_of(name, is_parent);
}

}  // namespace rangescope::runs
