// A session as text, for tests: everything that a reader can say, one line a thing, ids resolved to
// names.
#pragma once

#include <string>

#include "model/session.hpp"

namespace rangescope::read::nsys_sqlite {

inline std::string session_text(const model::Session& s) {
  const auto text = [&](model::StringId id) { return std::string(s.strings.view(id)); };
  const auto end = [](std::int64_t ns) {
    return ns == model::kOpen ? std::string("open") : std::to_string(ns);
  };
  const auto thread = [&](std::uint32_t i) {
    return i == model::kNone ? std::string("-")
                             : std::to_string(s.processes[s.threads[i].process].pid) + '/' +
                                   std::to_string(s.threads[i].tid);
  };
  const auto stream = [&](std::uint32_t i) {
    if (i == model::kNone)
      return std::string("-");
    const model::Stream& at = s.streams[i];
    const model::Device& device = s.devices[at.device];
    return std::to_string(s.processes[at.process].pid) + ":gpu" + std::to_string(device.ordinal) +
           '(' + text(device.name) + ' ' + text(device.uuid) + "):" + std::to_string(at.context) +
           ':' + std::to_string(at.id);
  };
  const auto launch = [&](std::uint32_t i) {
    if (i == model::kNone)
      return std::string("no call");
    const model::Launch& at = s.launches[i];
    return text(at.name) + '@' + std::to_string(at.start_ns) + '-' + end(at.end_ns) + " on " +
           thread(at.thread);
  };
  const auto attributes = [&](std::uint32_t i) {
    if (i == model::kNone)
      return std::string();
    const model::Attributes& at = s.attributes[i];
    return " category " + std::to_string(at.category) +
           (at.has_color ? " color " + std::to_string(at.color_argb) : "") + " payload " +
           std::to_string(static_cast<int>(at.payload_type)) + '=' + std::to_string(at.payload());
  };
  const auto node = [&](std::uint32_t i) {
    if (i == model::kNone)
      return std::string();
    std::string out = " node " + std::to_string(s.graph_nodes[i].id);
    if (s.graph_nodes[i].captured_path == model::kNone)
      return out;
    for (const auto& range : s.captured_paths[s.graph_nodes[i].captured_path])
      out += " > " + text(range.name);
    return out;
  };
  std::string out = "span " + std::to_string(s.begin_ns) + '-' + std::to_string(s.end_ns) + '\n';
  for (const auto& p : s.processes) {
    out += "process " + std::to_string(p.pid) + ' ' + text(p.name) + ' ' +
           std::to_string(p.start_ns) + '-' + std::to_string(p.end_ns) + '\n';
  }
  for (const auto& t : s.threads)
    out += "thread " + std::to_string(t.tid) + " of " + std::to_string(s.processes[t.process].pid) +
           ' ' + text(t.name) + '\n';
  for (const auto& c : s.categories)
    out += "category " + std::to_string(c.id) + ' ' + text(c.name) + '\n';
  for (const auto& r : s.resources)
    out += "resource " + std::to_string(r.type) + ' ' + std::to_string(r.identifier) + ' ' +
           text(r.name) + '\n';
  for (const auto& r : s.ranges) {
    out += (r.kind == model::RangeKind::kPushPop ? "push/pop " : "start/end ") +
           text(s.domains[r.domain].name) + '@' + text(r.name) + ' ' + std::to_string(r.start_ns) +
           '-' + end(r.end_ns) + " on " + thread(r.thread) +
           (r.end_thread == model::kNone ? "" : " ends on " + thread(r.end_thread)) +
           (r.registered ? " registered" : "") + attributes(r.attributes) + '\n';
  }
  for (const auto& m : s.marks)
    out += "mark " + text(s.domains[m.domain].name) + '@' + text(m.name) + ' ' +
           std::to_string(m.at_ns) + " on " + thread(m.thread) + '\n';
  for (const auto& k : s.kernels) {
    const auto& name = s.kernel_names[k.name];
    const auto& shape = s.kernel_shapes[k.shape];
    out += "kernel " + text(name.demangled) + '/' + text(name.short_name) + '/' +
           text(name.mangled) + ' ' + std::to_string(k.start_ns) + '-' + end(k.end_ns) + ' ' +
           stream(k.stream) + " grid " + std::to_string(shape.grid[0]) + " block " +
           std::to_string(shape.block[0]) + " cluster " + std::to_string(shape.cluster[0]) +
           node(k.graph_node) + " by " + launch(k.launch) + '\n';
  }
  for (const auto& c : s.copies) {
    out += "copy " + std::to_string(static_cast<int>(c.kind)) + ' ' + std::to_string(c.bytes) +
           " B " + std::to_string(c.start_ns) + '-' + end(c.end_ns) + ' ' + stream(c.stream) +
           node(c.graph_node) + " by " + launch(c.launch) + '\n';
  }
  for (const auto& m : s.memsets) {
    out += "memset " + std::to_string(m.bytes) + " B " + std::to_string(m.start_ns) + ' ' +
           stream(m.stream) + " by " + launch(m.launch) + '\n';
  }
  for (const auto& w : s.synchronizations) {
    out += "wait " + std::to_string(static_cast<int>(w.kind)) + ' ' + std::to_string(w.start_ns) +
           '-' + end(w.end_ns) + " by " + launch(w.launch) + '\n';
  }
  for (const auto& g : s.graph_launches) {
    out += "graph " + std::to_string(g.graph_id) + '/' + std::to_string(g.exec_id) + ' ' +
           std::to_string(g.start_ns) + '-' + end(g.end_ns) + " by " + launch(g.launch) + '\n';
  }
  for (const auto& l : s.launches)
    out += "launch " + std::to_string(static_cast<int>(l.kind)) + ' ' + text(l.name) + '@' +
           std::to_string(l.start_ns) + " on " + thread(l.thread) + '\n';
  for (const auto& l : s.losses)
    out +=
        "loss " + std::string(l.kind.id()) + ' ' + std::to_string(l.count) + ' ' + l.detail + '\n';
  return out;
}

}  // namespace rangescope::read::nsys_sqlite
