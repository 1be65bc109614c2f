#include "profile/kernel_list.hpp"

#include <limits>

#include "analyze/tree/meant.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "config/yaml.hpp"
#include "model/kernel_name.hpp"
#include "read/registry.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

/// The text that an anchored regex without any operator matches; "" for other ones.
std::string only_match(std::string_view regex) {
  if (!regex.starts_with('^') || !regex.ends_with('$'))
    return {};
  std::string text;
  for (std::size_t i = 1; i + 1 < regex.size(); ++i) {
    const bool is_operator = std::string_view(".*+?()[]{}|^$").find(regex[i]) != std::string::npos;
    if (is_operator)
      return {};
    const bool is_escape = regex[i] == '\\' && i + 2 < regex.size();
    if (is_escape)
      ++i;
    text += regex[i];
  }
  return text;
}

base::Result<std::string> text_of(const config::Value& kernel, std::string_view key) {
  const config::Value* value = kernel.find(key);
  if (value == nullptr || value->is_null())
    return std::string();
  if (!value->is_scalar())
    return base::fail(
        base::Code::kConfig, std::string(key) + " is no text", config::to_string(value->origin));
  return value->text;
}

base::Result<std::vector<ListedKernel>> read_yaml_list(const fs::path& file) {
  const config::Value root = TRY(config::read_yaml(file));
  const config::Value* list = root.find("kernels");
  if (list == nullptr || !list->is_list())
    return base::fail(base::Code::kConfig,
                      "there is no list `kernels` in it",
                      file.string(),
                      "Write kernels: [{name: ...}], or give a table of nsys (cuda_gpu_kern_sum)");
  std::vector<ListedKernel> kernels;
  for (const config::Value& item : list->items) {
    ListedKernel kernel;
    kernel.name = TRY(text_of(item, "name"));
    kernel.regex = TRY(text_of(item, "regex"));
    kernel.description = TRY(text_of(item, "description"));
    if (kernel.name.empty() && kernel.regex.empty())
      return base::fail(base::Code::kConfig,
                        "a kernel without name and regex",
                        config::to_string(item.origin),
                        "Add its name");
    if (!kernel.name.empty() && only_match(kernel.regex) == kernel.name)
      kernel.regex.clear();
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

base::Result<std::vector<ListedKernel>> read_recorded_list(const fs::path& file) {
  const model::Session session = TRY(read::read_any(file));
  return listed_of(TRY(analyze::top_kernels(session, {}, std::numeric_limits<std::size_t>::max())));
}

}  // namespace

std::string listed_title(const ListedKernel& kernel) {
  if (kernel.name.empty())
    return kernel.regex;
  return std::string(model::short_kernel_name(kernel.name));
}

std::vector<ListedKernel> listed_of(std::span<const analyze::ChosenKernel> chosen) {
  std::vector<ListedKernel> kernels;
  for (const analyze::ChosenKernel& kernel : chosen) {
    std::string description = "Kernel #" + std::to_string(kernels.size() + 1) + " - ";
    description += base::format_ns(kernel.total_ns) + " of GPU time, ";
    description += base::counted(static_cast<std::uint64_t>(kernel.calls), "call");
    kernels.push_back({kernel.name, {}, std::move(description)});
  }
  return kernels;
}

base::Result<std::vector<ListedKernel>> read_kernel_list(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return base::fail(base::Code::kNoInput,
                      "there is no such file",
                      file.string(),
                      "Give a number of kernels, a list in YAML, or a table of nsys "
                      "(cuda_gpu_kern_sum)");
  const std::string extension = file.extension().string();
  const bool is_yaml = extension == ".yaml" || extension == ".yml";
  auto kernels = is_yaml ? read_yaml_list(file) : read_recorded_list(file);
  if (kernels && kernels->empty())
    return base::fail(base::Code::kNothingCaptured, "there is no kernel in it", file.string());
  return kernels;
}

std::string kernel_list_text(std::span<const ListedKernel> kernels) {
  const config::Origin origin;
  config::Value root;
  root.kind = config::Kind::kMap;
  config::Value& list = root.get_or_add("kernels", origin);
  list.kind = config::Kind::kList;
  for (const ListedKernel& kernel : kernels) {
    config::Value& item = list.items.emplace_back();
    item.kind = config::Kind::kMap;
    item.get_or_add("name", origin) = config::text_value(kernel.name, origin);
    if (!kernel.regex.empty())
      item.get_or_add("regex", origin) = config::text_value(kernel.regex, origin);
    item.get_or_add("description", origin) = config::text_value(kernel.description, origin);
  }
  return config::to_yaml(root);
}

}  // namespace rangescope::profile
