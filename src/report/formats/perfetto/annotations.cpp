#include "report/formats/perfetto/annotations.hpp"

#include <fmt/format.h>

#include <array>
#include <set>

#include "base/text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

std::string triple(const std::array<std::uint32_t, 3>& v) {
  return fmt::format("{}", fmt::join(v, "x"));
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

void nvtx(const model::Session& session, std::uint32_t domain, std::uint32_t thread,
          std::uint32_t index, std::vector<Annotation>& out) {
  if (domain != 0 && domain < session.domains.size())
    out.push_back({"domain", base::printable(session.strings.view(session.domains[domain].name))});
  if (index >= session.attributes.size()) return;
  const model::Attributes& attributes = session.attributes[index];
  if (attributes.category != 0) {
    std::string name;
    const std::uint32_t process =
        thread < session.threads.size() ? session.threads[thread].process : model::kNone;
    for (const model::Category& category : session.categories) {
      if (category.id == attributes.category && category.domain == domain &&
          category.process == process)
        name = base::printable(session.strings.view(category.name));
    }
    out.push_back({"category", name.empty() ? std::to_string(attributes.category) : name});
  }
  if (attributes.payload_type != model::PayloadType::kAbsent)
    out.push_back({"payload", payload(attributes)});
  if (attributes.has_color)
    out.push_back({"color_argb", fmt::format("#{:08X}", attributes.color_argb)});
}

}  // namespace

std::string_view item_category(ItemKind kind) {
  constexpr std::string_view kNames[] = {"nvtx", "cuda_api", "kernel", "memcpy", "memset", "graph"};
  return kNames[static_cast<std::size_t>(kind)];
}

void annotate(const model::Session& session, const model::Mark& mark,
              std::vector<Annotation>& out) {
  out.clear();
  nvtx(session, mark.domain, mark.thread, mark.attributes, out);
}

void annotate(const model::Session& session, const TimelineItem& item,
              std::vector<Annotation>& out) {
  out.clear();
  switch (item.kind) {
    case ItemKind::kRange: {
      const model::Range& range = session.ranges[item.index];
      nvtx(session, range.domain, range.thread, range.attributes, out);
      if (range.kind == model::RangeKind::kStartEnd) out.push_back({"start_end", true});
      if (item.open) out.push_back({"never_closed", true});
      break;
    }
    case ItemKind::kCall:
      out.push_back({"correlation", std::uint64_t{session.launches[item.index].correlation}});
      if (item.open) out.push_back({"end_unknown", true});
      break;
    case ItemKind::kKernel: {
      const model::Kernel& kernel = session.kernels[item.index];
      if (kernel.shape < session.kernel_shapes.size()) {
        const model::KernelShape& shape = session.kernel_shapes[kernel.shape];
        if (shape.grid[0] != 0) {
          out.push_back({"grid", triple(shape.grid)});
          out.push_back({"block", triple(shape.block)});
        }
        if (shape.cluster[0] != 0) out.push_back({"cluster", triple(shape.cluster)});
        if (shape.registers_per_thread != 0)
          out.push_back({"registers_per_thread", std::uint64_t{shape.registers_per_thread}});
        const std::uint64_t shared =
            std::uint64_t{shape.static_shared_bytes} + shape.dynamic_shared_bytes;
        if (shared != 0) out.push_back({"shared_bytes", shared});
      }
      if (kernel.graph_node < session.graph_nodes.size())
        out.push_back({"graph", session.graph_nodes[kernel.graph_node].graph_id});
      break;
    }
    case ItemKind::kCopy:
      out.push_back({"bytes", session.copies[item.index].bytes});
      out.push_back({"kind", std::string(copy_kind_name(session.copies[item.index].kind))});
      break;
    case ItemKind::kMemset: out.push_back({"bytes", session.memsets[item.index].bytes}); break;
    case ItemKind::kGraph:
      out.push_back({"graph", session.graph_launches[item.index].graph_id});
      out.push_back(
          {"kernel_nodes", std::uint64_t{session.graph_launches[item.index].kernel_nodes}});
      break;
  }
}

std::vector<std::int32_t> trace_pids(const model::Session& session) {
  constexpr std::int32_t kInvented = 1 << 22;  // Linux gives out lower ones
  std::set<std::int32_t> taken;
  std::vector<std::int32_t> pids;
  for (const model::Process& process : session.processes) {
    auto pid = static_cast<std::int32_t>(process.pid);
    if (!taken.insert(pid).second)
      taken.insert(pid = kInvented + static_cast<std::int32_t>(pids.size()));
    pids.push_back(pid);
  }
  return pids;
}

std::string trace_process_name(const model::Session& session, const model::Process& process) {
  std::string name = base::printable(session.strings.view(process.name));
  if (process.rank == model::kNone) return name;
  const std::string host = base::printable(session.strings.view(process.host));
  return "rank " + std::to_string(process.rank) + (host.empty() ? "" : " on " + host) + ": " + name;
}

}  // namespace rangescope::report
