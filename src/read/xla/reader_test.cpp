#include "read/xla/reader.hpp"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "base/fs.hpp"

namespace rangescope::read::xla {
namespace xla_test {

using protozero::pbf_writer;

struct OneStat {
  std::int64_t name;
  std::string text;
  std::int64_t number = 0;
};

/// A plane with its names, event by event, as XLA writes them.
class Plane {
 public:
  explicit Plane(const std::string& name,
                 std::vector<std::string> events,
                 std::vector<std::string> stats) {
    plane_.add_string(2, name);
    const auto names = [&](std::uint32_t field, const std::vector<std::string>& all) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        pbf_writer entry(plane_, field);
        entry.add_int64(1, static_cast<std::int64_t>(i + 1));
        pbf_writer metadata(entry, 2);
        metadata.add_int64(1, static_cast<std::int64_t>(i + 1));
        metadata.add_string(2, all[i]);
      }
    };
    names(4, events);
    names(5, stats);
  }

  void line(std::int64_t id, const std::string& name, std::int64_t begin_ns) {
    line_.clear();
    pbf_writer line(line_);
    line.add_int64(1, id);
    line.add_string(2, name);
    line.add_int64(3, begin_ns);
  }
  void event(std::int64_t name,
             std::int64_t offset_ps,
             std::int64_t duration_ps,
             std::vector<OneStat> stats = {}) {
    pbf_writer line(line_);
    pbf_writer event(line, 4);
    event.add_int64(1, name);
    event.add_int64(2, offset_ps);
    event.add_int64(3, duration_ps);
    for (const OneStat& each : stats) {
      pbf_writer stat(event, 4);
      stat.add_int64(1, each.name);
      if (each.text.empty())
        stat.add_int64(4, each.number);
      else
        stat.add_string(5, each.text);
    }
  }
  void end_line() { plane_.add_message(3, line_); }
  void write(pbf_writer& space) const { space.add_message(1, data_); }

 private:
  std::string data_, line_;
  pbf_writer plane_{data_};
};

/// A step of JAX on a GPU: a Python function, a call, its kernel, a copy; derived lines beside the
/// stream.
std::string example() {
  std::string out;
  pbf_writer space(out);
  Plane gpu("/device:GPU:0",
            {"loop_fusion", "MemcpyH2D", "jit_step"},
            {"correlation_id", "kernel_details", "memcpy_details"});
  gpu.line(14, "Stream #14(Compute)", 1'000'000);
  gpu.event(1,
            2'000'000,
            5'000'500,
            {{1, "", 90}, {2, "regs:32 static_shared:0 grid:16,2,1 block:64,1,1 occ_pct:100"}});
  gpu.end_line();
  gpu.line(15, "Stream #15(MemcpyH2D)", 1'000'000);
  gpu.event(2,
            500'000,
            100'000,
            {{1, "", 89}, {3, "kind_src:pageable kind_dst:device size:4096 async:1"}});
  gpu.end_line();
  gpu.line(100, "XLA Modules", 1'000'000);
  gpu.event(3, 0, 9'000'000);
  gpu.end_line();
  gpu.write(space);
  Plane host("/host:CPU",
             {"$train.py:12 step",
              "cuLaunchKernel",
              "PjitFunction(step)",
              "$profiler.py:101 start_trace",
              "Collect"},
             {"correlation_id"});
  host.line(78, "python3", 200'000);  // the profiler's own
  host.event(4, 0, 700'000'000);
  host.event(5, 100'000, 1'000);
  host.end_line();
  host.line(77, "python3", 1'000'000);
  host.event(1, 0, 9'000'000);
  host.event(3, 100'000, 8'000'000);
  host.event(2, 1'000'000, 200'000, {{1, "", 90}});
  host.end_line();
  host.write(space);
  Plane tpu("/device:TPU:3", {"fusion.1", "step 1"}, {});
  tpu.line(1, "Steps", 1'000'000);
  tpu.event(2, 0, 1'000);
  tpu.end_line();
  tpu.line(2, "XLA Ops", 1'000'000);
  tpu.event(1, 1'000'000, 1'000'000);
  tpu.end_line();
  tpu.write(space);
  Plane other("Task Environment", {}, {});
  other.write(space);
  space.add_string(4, "node7");
  return out;
}

std::string show(const base::Result<model::Session>& session) {
  if (!session)
    return session.error().what + '\n';
  const model::Session& s = *session;
  const auto text = [&](model::StringId id) { return std::string(s.strings.view(id)); };
  const auto where = [&](const auto& work) {
    const model::Stream& stream = s.streams[work.stream];
    return ' ' + std::to_string(work.start_ns) + '-' + std::to_string(work.end_ns) + " gpu " +
           std::to_string(s.devices[stream.device].ordinal) + " stream " +
           std::to_string(stream.id) +
           (work.launch == model::kNone ? " by no call"
                                        : " by " + text(s.launches[work.launch].name)) +
           '\n';
  };
  std::string out;
  for (const model::Process& process : s.processes)
    out += "process of " + text(process.host) + '\n';
  for (const model::Range& range : s.ranges)
    out += text(s.domains[range.domain].name) + '@' + text(range.name) + ' ' +
           std::to_string(range.start_ns) + '-' + std::to_string(range.end_ns) + " on " +
           text(s.threads[range.thread].name) + '\n';
  for (const model::Kernel& kernel : s.kernels) {
    const model::KernelShape& shape = s.kernel_shapes[kernel.shape];
    out += "kernel " + text(s.kernel_names[kernel.name].demangled) + ' ' +
           std::to_string(shape.grid[0]) + ',' + std::to_string(shape.grid[1]) + 'x' +
           std::to_string(shape.block[0]) + " regs " + std::to_string(shape.registers_per_thread) +
           where(kernel);
  }
  for (const model::Copy& copy : s.copies)
    out += "copy " + std::to_string(static_cast<int>(copy.kind)) + ' ' +
           std::to_string(copy.bytes) + " B" + where(copy);
  for (const model::Loss& loss : s.losses)
    out += "loss " + std::string(loss.kind.id()) + ' ' + std::to_string(loss.count) + '\n';
  return out;
}

TEST(Xla, StreamsAndThreadsAreReadAndWhatWasDerivedIsNot) {
  EXPECT_EQ(show(read_bytes(example(), "x")),
            "process of node7\n"
            "python@train.py:12 step 1000000-1009000 on python3\n@PjitFunction(step) "
            "1000100-1008100 on python3\n"
            "kernel loop_fusion 16,2x64 regs 32 1002000-1007000 gpu 0 stream 14 by cuLaunchKernel\n"
            "kernel fusion.1 0,0x0 regs 0 1001000-1002000 gpu 3 stream 2 by no call\n"
            "copy 1 4096 B 1000500-1000600 gpu 0 stream 15 by no call\n");
  EXPECT_EQ(read_bytes(example(), "x")->begin_ns, 1000000)
      << "starting the profiler is no part of the run";
}

TEST(Xla, AnyCutIsAnErrorOrALoss) {
  const std::string whole = example();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto session = read_bytes(std::string_view(whole).substr(0, size), "x");
    EXPECT_TRUE(session || !session.error().what.empty()) << size;
  }
  EXPECT_NE(show(read_bytes(std::string_view(whole).substr(0, whole.size() - 3), "x"))
                .find("loss torn_tail 1"),
            std::string::npos);
}

TEST(Xla, IsToldByItsFirstPlane) {
  const auto sniff = [](std::string_view head) {
    return kReader.sniff(std::as_bytes(std::span(head)), "x");
  };
  EXPECT_TRUE(sniff(example()));
  EXPECT_FALSE(sniff("\n\n{\"a\": 1}"));
  EXPECT_FALSE(sniff("/host:CPU"));
}

}  // namespace xla_test
}  // namespace rangescope::read::xla
