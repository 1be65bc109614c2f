// Builds small sessions for tests, by hand or at random.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/session.hpp"

namespace rangescope::analyze::testing {

/// A session with processes, threads and ranges put in one by one. Names are interned as given;
/// domain "" is the default.
class SessionBuilder {
 public:
  std::uint32_t process(std::uint32_t pid) {
    session.processes.push_back({pid, 0, 0, 0, 0});
    return static_cast<std::uint32_t>(session.processes.size() - 1);
  }
  std::uint32_t thread(std::uint32_t process, std::uint32_t tid) {
    session.threads.push_back({process, tid, 0});
    return static_cast<std::uint32_t>(session.threads.size() - 1);
  }
  std::uint32_t domain(std::string_view name) {
    if (name.empty())
      return 0;
    const auto id = session.strings.intern(name);
    for (std::uint32_t d = 0; d < session.domains.size(); ++d) {
      if (session.domains[d].name == id)
        return d;
    }
    session.domains.push_back({id});
    return static_cast<std::uint32_t>(session.domains.size() - 1);
  }
  std::uint32_t range(std::uint32_t thread,
                      std::string_view name,
                      std::int64_t start,
                      std::int64_t end,
                      std::string_view in_domain = "",
                      model::RangeKind kind = model::RangeKind::kPushPop) {
    model::Range range;
    range.start_ns = start;
    range.end_ns = end;
    range.name = session.strings.intern(name);
    range.thread = thread;
    range.domain = domain(in_domain);
    range.kind = kind;
    session.ranges.push_back(range);
    if (end != model::kOpen)
      session.end_ns = std::max(session.end_ns, end);
    return static_cast<std::uint32_t>(session.ranges.size() - 1);
  }

  std::uint32_t device(std::uint32_t process, std::uint32_t ordinal, std::string_view uuid = "") {
    model::Device device;
    device.process = process;
    device.ordinal = ordinal;
    device.name = session.strings.intern("GPU");
    device.uuid = session.strings.intern(uuid);
    session.devices.push_back(device);
    return static_cast<std::uint32_t>(session.devices.size() - 1);
  }
  std::uint32_t stream(std::uint32_t process, std::uint32_t device, std::uint32_t id) {
    session.streams.push_back({process, device, 1, id, 0});
    return static_cast<std::uint32_t>(session.streams.size() - 1);
  }
  std::uint32_t launch(std::uint32_t thread,
                       std::int64_t start,
                       std::int64_t end,
                       model::LaunchKind kind = model::LaunchKind::kKernel) {
    model::Launch launch;
    launch.start_ns = start;
    launch.end_ns = end;
    launch.thread = thread;
    launch.correlation = static_cast<std::uint32_t>(session.launches.size() + 1);
    launch.kind = kind;
    session.launches.push_back(launch);
    return static_cast<std::uint32_t>(session.launches.size() - 1);
  }
  std::uint32_t kernel_name(std::string_view name) {
    const auto id = session.strings.intern(name);
    for (std::uint32_t k = 0; k < session.kernel_names.size(); ++k) {
      if (session.kernel_names[k].demangled == id)
        return k;
    }
    session.kernel_names.push_back({id, id, 0});
    return static_cast<std::uint32_t>(session.kernel_names.size() - 1);
  }
  std::uint32_t shape(std::uint32_t grid_x) {
    for (std::uint32_t s = 0; s < session.kernel_shapes.size(); ++s) {
      if (session.kernel_shapes[s].grid[0] == grid_x)
        return s;
    }
    model::KernelShape shape;
    shape.grid = {grid_x, 1, 1};
    shape.block = {128, 1, 1};
    session.kernel_shapes.push_back(shape);
    return static_cast<std::uint32_t>(session.kernel_shapes.size() - 1);
  }
  std::uint32_t kernel(std::uint32_t launch,
                       std::string_view name,
                       std::int64_t start,
                       std::int64_t end,
                       std::uint32_t stream = 0,
                       std::uint32_t grid_x = 1) {
    model::Kernel kernel;
    kernel.start_ns = start;
    kernel.end_ns = end;
    kernel.launch = launch;
    kernel.name = kernel_name(name);
    kernel.shape = shape(grid_x);
    kernel.stream = stream;
    session.kernels.push_back(kernel);
    session.end_ns = std::max(session.end_ns, end);
    return static_cast<std::uint32_t>(session.kernels.size() - 1);
  }
  void copy(std::uint32_t launch,
            std::int64_t start,
            std::int64_t end,
            std::uint64_t bytes,
            model::CopyKind kind,
            std::uint32_t stream = 0) {
    session.copies.push_back({start, end, bytes, launch, stream, model::kNone, kind});
  }

  model::Session session;
};

}  // namespace rangescope::analyze::testing
