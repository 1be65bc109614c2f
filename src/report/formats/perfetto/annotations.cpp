#include "report/formats/perfetto/annotations.hpp"

#include <fmt/format.h>

#include <array>
#include <set>

#include "base/text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

std::string size_text(const std::array<std::uint32_t, 3>& size) {
  return fmt::format("{}", fmt::join(size, "x"));
}

AnnotationValue payload(const model::Attributes& attributes) {
  switch (attributes.payload_type) {
    case model::PayloadType::kInt64:
    case model::PayloadType::kInt32: return attributes.payload_i64;
    case model::PayloadType::kDouble:
    case model::PayloadType::kFloat: return attributes.payload_double;
    default: return attributes.payload_u64;
  }
}

void add_nvtx(const model::Session& session,
              std::uint32_t domain,
              std::uint32_t thread,
              std::uint32_t index,
              std::vector<Annotation>& annotations) {
  if (domain != 0 && domain < session.domains.size())
    annotations.push_back(
        {"domain", base::printable(session.strings.view(session.domains[domain].name))});
  if (index >= session.attributes.size())
    return;
  const model::Attributes& attributes = session.attributes[index];
  if (attributes.category != 0) {
    std::uint32_t process = model::kNone;
    if (thread < session.threads.size())
      process = session.threads[thread].process;
    std::string name = std::to_string(attributes.category);
    for (const model::Category& category : session.categories) {
      const bool is_in_scope = category.domain == domain && category.process == process;
      if (!is_in_scope || category.id != attributes.category)
        continue;
      const std::string_view text = session.strings.view(category.name);
      if (!text.empty())
        name = base::printable(text);
    }
    annotations.push_back({"category", name});
  }
  if (attributes.payload_type != model::PayloadType::kAbsent)
    annotations.push_back({"payload", payload(attributes)});
  if (attributes.has_color)
    annotations.push_back({"color_argb", fmt::format("#{:08X}", attributes.color_argb)});
}

void add_shape(const model::KernelShape& shape, std::vector<Annotation>& annotations) {
  if (shape.grid[0] != 0) {
    annotations.push_back({"grid", size_text(shape.grid)});
    annotations.push_back({"block", size_text(shape.block)});
  }
  if (shape.cluster[0] != 0)
    annotations.push_back({"cluster", size_text(shape.cluster)});
  if (shape.registers_per_thread != 0)
    annotations.push_back({"registers_per_thread", std::uint64_t{shape.registers_per_thread}});
  const std::uint64_t shared_bytes =
      std::uint64_t{shape.static_shared_bytes} + shape.dynamic_shared_bytes;
  if (shared_bytes != 0)
    annotations.push_back({"shared_bytes", shared_bytes});
}

}  // namespace

std::string_view item_category(ItemKind kind) {
  constexpr std::string_view kNames[] = {"nvtx", "cuda_api", "kernel", "memcpy", "memset", "graph"};
  return kNames[static_cast<std::size_t>(kind)];
}

void annotate(const model::Session& session,
              const model::Mark& mark,
              std::vector<Annotation>& annotations) {
  annotations.clear();
  add_nvtx(session, mark.domain, mark.thread, mark.attributes, annotations);
}

void annotate(const model::Session& session,
              const TimelineItem& item,
              std::vector<Annotation>& annotations) {
  annotations.clear();
  switch (item.kind) {
    case ItemKind::kRange: {
      const model::Range& range = session.ranges[item.index];
      add_nvtx(session, range.domain, range.thread, range.attributes, annotations);
      if (range.kind == model::RangeKind::kStartEnd)
        annotations.push_back({"start_end", true});
      if (item.open)
        annotations.push_back({"never_closed", true});
      break;
    }
    case ItemKind::kCall:
      annotations.push_back(
          {"correlation", std::uint64_t{session.launches[item.index].correlation}});
      if (item.open)
        annotations.push_back({"end_unknown", true});
      break;
    case ItemKind::kKernel: {
      const model::Kernel& kernel = session.kernels[item.index];
      if (kernel.shape < session.kernel_shapes.size())
        add_shape(session.kernel_shapes[kernel.shape], annotations);
      if (kernel.graph_node < session.graph_nodes.size())
        annotations.push_back({"graph", session.graph_nodes[kernel.graph_node].graph_id});
      break;
    }
    case ItemKind::kCopy:
      annotations.push_back({"bytes", session.copies[item.index].bytes});
      annotations.push_back({"kind", std::string(copy_kind_name(session.copies[item.index].kind))});
      break;
    case ItemKind::kMemset:
      annotations.push_back({"bytes", session.memsets[item.index].bytes});
      break;
    case ItemKind::kGraph:
      annotations.push_back({"graph", session.graph_launches[item.index].graph_id});
      annotations.push_back(
          {"kernel_nodes", std::uint64_t{session.graph_launches[item.index].kernel_nodes}});
      break;
  }
}

std::vector<std::int32_t> trace_pids(const model::Session& session) {
  constexpr std::int32_t kFirstInvented = 1 << 22;  // above the pids of Linux
  std::set<std::int32_t> used;
  std::vector<std::int32_t> pids;
  for (const model::Process& process : session.processes) {
    auto pid = static_cast<std::int32_t>(process.pid);
    const bool is_unique = used.insert(pid).second;
    if (!is_unique) {
      pid = kFirstInvented + static_cast<std::int32_t>(pids.size());
      used.insert(pid);
    }
    pids.push_back(pid);
  }
  return pids;
}

std::string trace_process_name(const model::Session& session, const model::Process& process) {
  std::string name = base::printable(session.strings.view(process.name));
  if (process.rank == model::kNone)
    return name;
  const std::string host = base::printable(session.strings.view(process.host));
  std::string title = "rank " + std::to_string(process.rank);
  if (!host.empty())
    title += " on " + host;
  return title + ": " + name;
}

}  // namespace rangescope::report
