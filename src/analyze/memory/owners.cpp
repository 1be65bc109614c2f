#include "analyze/memory/owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "analyze/names/fold.hpp"
#include "base/text.hpp"
#include "model/backward.hpp"

namespace rangescope::analyze {
namespace {

constexpr std::size_t kFewestAlike = 4;  ///< siblings that a table puts together

/// Files of PyTorch, of installed packages and of Python itself, and frames without a file.
bool is_of_library(std::string_view file) {
  constexpr std::string_view kParts[] = {
      "/site-packages/", "/dist-packages/", "/torch/", "<frozen", "??"};
  const bool is_python = file.ends_with(".py");
  const bool is_installed = std::ranges::any_of(
      kParts, [&](std::string_view part) { return file.find(part) != std::string_view::npos; });
  return is_installed || !is_python;
}

}  // namespace

MemoryOwners::MemoryOwners(const Regions& regions, const Contexts& contexts, const Steps& steps)
    : regions_(regions), contexts_(contexts), steps_(steps) {}

std::vector<std::string> MemoryOwners::folded_texts(
    const std::vector<std::uint32_t>& owners) const {
  std::map<std::string, std::set<std::uint32_t>> alike;
  for (const std::uint32_t owner : owners)
    alike[folded_name(texts_[owner], FoldNames::kNumbers)].insert(owner);
  std::vector<std::string> texts;
  for (const std::uint32_t owner : owners) {
    std::string folded = folded_name(texts_[owner], FoldNames::kNumbers);
    const bool is_range = ranges_.contains(owner);
    const bool is_one_of_many = alike[folded].size() >= kFewestAlike;
    texts.push_back(is_range && is_one_of_many ? std::move(folded) : texts_[owner]);
  }
  return texts;
}

std::uint32_t MemoryOwners::number(std::string text) {
  if (text.empty())
    return 0;
  const auto [found, is_new] =
      numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new)
    texts_.push_back(std::move(text));
  return found->second;
}

MemoryOwners::Rank MemoryOwners::rank_of(std::uint32_t occurrence) const {
  const model::Session& session = regions_.session;
  const Cell& cell = regions_.tree.cells[regions_.tree.cell[occurrence]];
  const std::string_view domain = session.strings.view(session.domains[cell.domain].name);
  if (cell.module || domain == model::kModuleDomain)
    return Rank::kModule;
  if (domain == "python" || domain == "overhead" || domain == "gpu_annotation")
    return Rank::kNothing;
  const auto path = path_of(regions_.tree, session, cell.node);
  const bool has_name = !path.empty() && !is_operator(path.front());
  return has_name ? Rank::kRange : Rank::kOperator;
}

/// The path as far as the program named it; of operators alone the outermost one.
std::string MemoryOwners::text_of(std::uint32_t occurrence, Rank rank) const {
  const std::uint32_t node = regions_.tree.cells[regions_.tree.cell[occurrence]].node;
  std::vector<std::string> names;
  for (const std::string_view name : path_of(regions_.tree, regions_.session, node)) {
    if (is_operator(name) && !names.empty())
      break;
    names.emplace_back(name);
    if (rank == Rank::kOperator)
      break;
  }
  if (rank != Rank::kOperator || names.empty())
    return base::join(names, " > ");
  std::string_view name = names.front();
  if (!name.starts_with(model::kEvaluates))
    return std::string(name);
  name.remove_prefix(model::kEvaluates.size());
  return std::string(name);
}

const MemoryOwners::OfContext& MemoryOwners::of_context(std::uint32_t context) {
  const auto [found, is_new] = of_context_.try_emplace(context);
  OfContext& best = found->second;
  if (!is_new || context >= contexts_.size())
    return best;
  std::uint32_t best_occurrence = kNone;
  for (const std::uint32_t entry : contexts_.of(context)) {
    const std::uint32_t occurrence = entry & ~kInherited;
    const Rank rank = rank_of(occurrence);
    if (rank <= best.rank)
      continue;
    best.rank = rank;
    best_occurrence = occurrence;
  }
  if (best_occurrence != kNone)
    best.owner = number(text_of(best_occurrence, best.rank));
  if (best.rank > Rank::kOperator)
    ranges_.insert(best.owner);
  return best;
}

std::uint32_t MemoryOwners::number_of_time(std::string text) {
  const std::uint32_t owner = number(std::move(text));
  times_.insert(owner);
  return owner;
}

std::string MemoryOwners::text_of_frames(const std::vector<std::uint32_t>& frames) const {
  const model::Allocators& allocators = regions_.session.allocators;
  const model::Strings& strings = regions_.session.strings;
  const model::AllocationFrame* first_python = nullptr;
  const model::AllocationFrame* of_program = nullptr;
  for (const std::uint32_t number : frames) {
    const model::AllocationFrame& frame = allocators.frames[number];
    const std::string_view file = strings.view(frame.file);
    if (first_python == nullptr && file.ends_with(".py"))
      first_python = &frame;
    if (is_of_library(file))
      continue;
    of_program = &frame;
    break;
  }
  const model::AllocationFrame* frame = of_program != nullptr ? of_program : first_python;
  if (frame == nullptr)
    return {};
  return fmt::format("{} ({}:{})",
                     strings.view(frame->function),
                     base::file_name(strings.view(frame->file)),
                     frame->line);
}

std::uint32_t MemoryOwners::of_stack(std::uint32_t stack) {
  const auto& stacks = regions_.session.allocators.stacks;
  if (stack >= stacks.size())
    return 0;
  const auto [found, is_new] = of_stack_.try_emplace(stack, 0);
  if (is_new)
    found->second = number(text_of_frames(stacks[stack]));
  return found->second;
}

/// Where nothing else is known: the step in which it was made.
std::uint32_t MemoryOwners::of_step(std::int64_t at_ns) {
  if (steps_.ends_ns.empty())
    return 0;
  if (steps_.first_module_ns != model::kOpen && at_ns < steps_.first_module_ns)
    return number_of_time("before the first module");
  const auto end = std::ranges::lower_bound(steps_.ends_ns, at_ns);
  return number(fmt::format("step {}", end - steps_.ends_ns.begin() + 1));
}

std::uint32_t MemoryOwners::chosen(std::uint32_t context, std::uint32_t stack, std::int64_t at_ns) {
  const OfContext ranges = of_context(context);
  if (ranges.rank == Rank::kModule)
    return ranges.owner;
  const std::uint32_t line = of_stack(stack);
  if (line != 0)
    return line;
  return ranges.owner != 0 ? ranges.owner : of_step(at_ns);
}

std::uint32_t MemoryOwners::of_name(model::StringId name) {
  const std::uint32_t owner = number(std::string(regions_.session.strings.view(name)));
  ranges_.insert(owner);
  return owner;
}

std::uint32_t MemoryOwners::owner_of(const model::Allocation& allocation, std::uint32_t context) {
  if (allocation.owner != 0)
    return of_name(allocation.owner);
  if (!allocation.older)
    return chosen(context, allocation.stack, allocation.start_ns);
  const std::uint32_t line = of_stack(allocation.stack);
  return line != 0 ? line : number_of_time("before the recording");
}

std::uint32_t MemoryOwners::owner_of(const model::FailedAllocation& failure,
                                     std::uint32_t context) {
  if (failure.owner != 0)
    return of_name(failure.owner);
  return chosen(context, failure.stack, failure.at_ns);
}

}  // namespace rangescope::analyze
