// JSON of the small files in a run directory: written whole, indented, always valid UTF-8.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "model/loss.hpp"

namespace rangescope::runs {

using OrderedJson = nlohmann::ordered_json;  ///< what is written: keys stay in the order given

/// Indented by two, with a newline at the end; bytes that are not UTF-8 were made printable before.
[[nodiscard]] base::Result<void> write_json(const std::filesystem::path& path,
                                            const OrderedJson& json);
/// Writes over the file, padded with blanks to its length: for a full disk, which has no room for a
/// second file.
[[nodiscard]] bool overwrite_json(const std::filesystem::path& path, const OrderedJson& json);
/// A regular file of at most 256 MiB. kNoInput, or kBadData with the byte where it stops being
/// JSON, or kBadData where `schema` is another one.
[[nodiscard]] base::Result<nlohmann::json> read_json(const std::filesystem::path& path,
                                                     std::string_view schema);

/// The text of a key; "" where there is none.
[[nodiscard]] std::string text_in(const nlohmann::json& object, const char* key);

/// This name of a file, read from a run's JSON, lies in the run: it is relative, without `..`. Runs
/// may come from other users.
[[nodiscard]] bool lies_in_run(const std::filesystem::path& name);

/// May a field of a list's items be missing: in files of older versions; where it is empty, so that
/// it is left out.
enum class Missing : std::uint8_t { kNever, kOld, kEmpty };

/// A loss as status.json and baselines have it.
template <class Json>
[[nodiscard]] Json loss_json(const model::Loss& loss, const std::string& detail) {
  return {{"kind", loss.kind.id()},
          {"severity", model::severity_name(loss.severity)},
          {"count", loss.count},
          {"detail", base::printable(detail)}};
}

/// The value; null where there is none.
template <class Json = OrderedJson, class T>
[[nodiscard]] Json json_or_null(const std::optional<T>& value) {
  if (!value)
    return nullptr;
  return *value;
}

/// Text that is valid UTF-8 stays as it is, with its control characters; other text is printable.
[[nodiscard]] std::string valid_utf8(const std::string& text);

/// Null where an optional is empty; texts are printable.
template <class Json, class T>
void put_field(Json& object, const char* name, const T& value, Missing missing = Missing::kNever) {
  if constexpr (requires { value.has_value(); })
    object[name] = json_or_null<Json>(value);
  else if constexpr (!requires { value.c_str(); })
    object[name] = value;
  else if (missing != Missing::kEmpty || !value.empty())
    object[name] = base::printable(value);
}

/// Back; a field that is missing or null where it may be stays as it is. Throws what nlohmann::json
/// throws.
template <class T>
void take_field(const nlohmann::json& object,
                const char* name,
                T& value,
                Missing missing = Missing::kNever) {
  const auto found = object.find(name);
  if (missing != Missing::kNever && (found == object.end() || found->is_null()))
    return;
  if constexpr (requires { value.has_value(); }) {
    if (!object.at(name).is_null())
      value = object.at(name).get<typename T::value_type>();
  } else {
    value = object.at(name).get<T>();
  }
}

/// {"schema": ..., KEY: [{...}, ...]}, by visit(item, field), which calls field(name, member) or
/// field(name, member, missing) for each member in order.
template <class Item>
[[nodiscard]] base::Result<void> write_list(const std::filesystem::path& file,
                                            std::string_view schema,
                                            const char* key,
                                            const std::vector<Item>& items,
                                            auto visit) {
  OrderedJson list = OrderedJson::array();
  for (const Item& item : items) {
    OrderedJson one = OrderedJson::object();
    visit(item, [&](const auto&... of) { put_field(one, of...); });
    list.push_back(std::move(one));
  }
  return write_json(file, {{"schema", schema}, {key, std::move(list)}});
}

/// Empty where there is no such file; kBadData for a damaged one.
template <class Item>
[[nodiscard]] base::Result<std::vector<Item>> read_list(const std::filesystem::path& file,
                                                        std::string_view schema,
                                                        const char* key,
                                                        auto visit) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    return std::vector<Item>{};
  const auto json = TRY(read_json(file, schema));
  std::vector<Item> out;
  try {
    for (const nlohmann::json& item : json.at(key))
      visit(out.emplace_back(), [&](auto&&... field) { take_field(item, field...); });
  } catch (const std::exception& error) {
    return base::fail(base::Code::kBadData, std::string("damaged: ") + error.what(), file.string());
  }
  return out;
}

}  // namespace rangescope::runs
