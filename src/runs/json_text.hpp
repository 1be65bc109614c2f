// JSON of the small files in a run directory: written whole, indented, always valid UTF-8.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace rangescope::runs {

using OrderedJson = nlohmann::ordered_json;  ///< what is written: keys stay in the order given

/// Indented by two, with a newline at the end; bytes that are not UTF-8 were made printable before.
[[nodiscard]] base::Result<void> write_json(const std::filesystem::path& path, const OrderedJson& json);
/// Writes over what is there, padded with blanks to its length: where a full disk has no room for a file beside it.
[[nodiscard]] bool overwrite_json(const std::filesystem::path& path, const OrderedJson& json);
/// A regular file of at most 256 MiB. kNoInput, or kBadData with the byte where it stops being JSON, or kBadData where
/// `schema` is another one.
[[nodiscard]] base::Result<nlohmann::json> read_json(const std::filesystem::path& path, std::string_view schema);

/// The text of a key; "" where there is none.
[[nodiscard]] std::string text_in(const nlohmann::json& object, const char* key);

/// Does this name of a file, written in a run's JSON, lie in the run: relative, without `..`? Whoever made the run may
/// have written it.
[[nodiscard]] bool lies_in_run(const std::filesystem::path& name);

/// May a field of a list's items be missing: in files of older versions; where it is empty, so that it is left out.
enum class Missing : std::uint8_t { kNever, kOld, kEmpty };

/// {"schema": ..., KEY: [{...}, ...]}, by visit(item, field), which calls field(name, member) or field(name, member,
/// missing) for each member in order.
template <class Item>
[[nodiscard]] base::Result<void> write_list(const std::filesystem::path& file, std::string_view schema, const char* key,
                                            const std::vector<Item>& items, auto visit) {
  OrderedJson list = OrderedJson::array();
  for (const Item& item : items) {
    OrderedJson one = OrderedJson::object();
    visit(item, [&](const char* name, const auto& value, Missing missing = Missing::kNever) {
      if constexpr (requires { value.has_value(); })
        one[name] = value ? OrderedJson(*value) : OrderedJson(nullptr);
      else if constexpr (!requires { value.c_str(); })
        one[name] = value;
      else if (missing != Missing::kEmpty || !value.empty())
        one[name] = base::printable(value);
    });
    list.push_back(std::move(one));
  }
  return write_json(file, {{"schema", schema}, {key, std::move(list)}});
}

/// Empty where there is no such file; kBadData for a damaged one.
template <class Item>
[[nodiscard]] base::Result<std::vector<Item>> read_list(const std::filesystem::path& file, std::string_view schema,
                                                        const char* key, auto visit) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::vector<Item>{};
  const auto json = TRY(read_json(file, schema));
  std::vector<Item> out;
  try {
    for (const nlohmann::json& one : json.at(key)) {
      visit(out.emplace_back(), [&]<class T>(const char* name, T& value, Missing missing = Missing::kNever) {
        const auto found = one.find(name);
        if (found == one.end() && missing != Missing::kNever) return;
        if constexpr (requires { value.has_value(); }) {
          if (!one.at(name).is_null()) value = one.at(name).get<typename T::value_type>();
        } else {
          value = one.at(name).get<T>();
        }
      });
    }
  } catch (const std::exception& error) {
    return base::fail(base::Code::kBadData, std::string("damaged: ") + error.what(), file.string());
  }
  return out;
}

}  // namespace rangescope::runs
