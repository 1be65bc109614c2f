#include "sample/cpu/space.hpp"

#include <algorithm>

namespace rangescope::sample::cpu {
namespace {

constexpr char kRest[] = "//more";

}  // namespace

Tables* Module::tables() {
  if (!tried_)
    tables_ = Tables::open(path, pid);
  tried_ = true;
  return tables_.get();
}

Module& Modules::find(std::string_view path, std::uint32_t pid) {
  const bool file = path.starts_with('/') && !path.starts_with("//");
  const bool shared = file || path == "[vdso]";
  std::string key(path);
  if (!shared)
    key += '\n' + std::to_string(pid);
  if (const auto found = by_name_.find(key); found != by_name_.end()) {
    if (file)
      found->second->mapped_by(pid);
    return *found->second;
  }
  if (crowded()) {
    if (const auto rest = by_name_.find(kRest); rest != by_name_.end())
      return *rest->second;
    key = path = kRest;
    pid = 0;
  }
  text_bytes_ += 2 * path.size();
  auto module = std::make_unique<Module>();
  module->number = static_cast<std::uint32_t>(all_.size());
  module->path = path;
  module->pid = pid;
  by_name_.emplace(std::move(key), module.get());
  all_.push_back(std::move(module));
  return *all_.back();
}

void Space::map(const Area& area) {
  if (area.end <= area.start)
    return;
  auto entry = areas_.lower_bound(area.start);
  if (entry != areas_.begin() && std::prev(entry)->second.end > area.start)
    --entry;
  while (entry != areas_.end() && entry->second.start < area.end) {
    Area old = entry->second;
    entry = areas_.erase(entry);
    if (old.start < area.start) {
      Area below = old;
      below.end = area.start;
      areas_[below.start] = below;
    }
    if (old.end > area.end) {
      Area above = old;
      above.offset += area.end - old.start;
      above.start = area.end;
      entry = std::next(areas_.insert_or_assign(above.start, above).first);
    }
  }
  Area& added = areas_[area.start] = area;
  added.number = ++mapped_;
  if (areas_.size() <= kMost)
    return;
  forget(false);
  if (areas_.size() > kMost / 4 * 3)
    forget(true);
  forgot_ = true;
}

void Space::forget(bool files) {
  std::vector<std::uint64_t> numbers;
  for (const auto& [start, area] : areas_)
    numbers.push_back(area.number);
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  std::erase_if(areas_, [&](const auto& entry) {
    const Area& area = entry.second;
    return area.number < *middle && (files || !area.module->file());
  });
}

const Area* Space::find(std::uint64_t address) const {
  const auto after = areas_.upper_bound(address);
  if (after == areas_.begin())
    return nullptr;
  const Area& area = std::prev(after)->second;
  return address < area.end ? &area : nullptr;
}

Place place_of(const Space& space, std::uint64_t address) {
  const Area* area = space.find(address);
  if (area == nullptr)
    return {};
  if (!area->module->file() && area->module->path != "[vdso]")
    return {area->module, address};
  const std::uint64_t offset = address - area->start + area->offset;
  const Tables* tables = area->module->tables();
  return {area->module, tables != nullptr ? tables->address_of(offset) : offset};
}

}  // namespace rangescope::sample::cpu
