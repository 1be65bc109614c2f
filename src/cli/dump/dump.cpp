#include "cli/dump/dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "analyze/cpu/own/user_code.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::cli {
namespace {

using sample::cpu::Dump;
using sample::cpu::DumpedFrame;
using sample::cpu::DumpedThread;
using sample::cpu::DumpedWait;
using wire::cpu::WaitKind;

constexpr std::string_view kKinds[] = {"other", "lock", "io", "sleep", "preempted", "gil", "child"};
/// As a sentence goes on after the thread.
constexpr std::string_view kWaits[] = {"waits",
                                       "waits for a lock",
                                       "waits for I/O",
                                       "sleeps",
                                       "could run",
                                       "waits for the GIL",
                                       "waits for a child"};

template <class List>
auto& of_kind(const List& list, WaitKind kind) {
  return list[static_cast<std::size_t>(kind)];
}

bool is_own(const DumpedFrame& frame, bool is_python, const Dump& dump) {
  const std::string_view executable = dump.executable;
  const auto origin =
      analyze::origin_of_frame(is_python, frame.name, frame.file, frame.module, executable);
  return origin == analyze::Origin::kOwn;
}

/// The innermost function of the program's own files, else the innermost of all; null without a
/// stack.
const DumpedFrame* place_of(const DumpedThread& thread, const Dump& dump) {
  for (const DumpedFrame& frame : thread.python)
    if (is_own(frame, true, dump))
      return &frame;
  for (const DumpedFrame& frame : thread.native)
    if (is_own(frame, false, dump))
      return &frame;
  if (!thread.python.empty())
    return &thread.python.front();
  if (!thread.native.empty())
    return &thread.native.front();
  return nullptr;
}

/// "transfer (deadlock.py:15)", "read [libc.so.6]"
std::string frame_text(const DumpedFrame& frame) {
  const std::string name = base::printable(frame.name);
  if (!frame.file.empty()) {
    std::string text = name + " (" + base::printable(base::file_name(frame.file));
    if (frame.line > 0)
      text += ":" + std::to_string(frame.line);
    return text + ")";
  }
  const std::string module = base::printable(base::file_name(frame.module));
  if (name.empty())
    return "[" + module + "]";
  return name + " [" + module + "]";
}

std::string thread_text(const DumpedThread& thread) {
  return fmt::format("thread {} {}", thread.tid, base::printable(thread.name));
}

/// Null where the dump lacks it.
const DumpedThread* thread_of(const Dump& dump, std::uint32_t tid) {
  const auto thread = std::ranges::find(dump.threads, tid, &DumpedThread::tid);
  if (thread == dump.threads.end())
    return nullptr;
  return &*thread;
}

const DumpedThread* holder_of(const DumpedWait& wait, const Dump& dump) {
  if (wait.holder == 0)
    return nullptr;
  return thread_of(dump, wait.holder);
}

/// "waits for a lock for 3.2 s (futex), held by thread 12 report"
std::string doing_text(const DumpedThread& thread, const Dump& dump) {
  const bool is_stopped = thread.state == 'T' || thread.state == 't';
  if (!thread.wait && is_stopped)
    return "is stopped";
  if (!thread.wait)
    return "runs";
  const DumpedWait& wait = *thread.wait;
  std::string text(of_kind(kWaits, wait.kind));
  if (wait.since_ns)
    text += " for " + base::format_ns(static_cast<double>(*wait.since_ns));
  if (!wait.call.empty()) {
    text += " (" + wait.call;
    if (!wait.on.empty())
      text += " " + base::printable(wait.on);
    text += ")";
  }
  if (const DumpedThread* holder = holder_of(wait, dump))
    text += ", held by " + thread_text(*holder);
  return text;
}

/// "waits" of one thread, "wait" of several.
std::string verb_of(std::ptrdiff_t threads, const std::string& verb) {
  if (threads == 1)
    return verb + "s";
  return verb;
}

std::string place_text(const DumpedThread& thread, const Dump& dump) {
  const DumpedFrame* place = place_of(thread, dump);
  if (place == nullptr)
    return thread_text(thread);
  return frame_text(*place);
}

/// "deadlock: transfer (a.py:15) in thread 12 waits for a lock that thread 13 has; report (a.py:23)
/// in thread 13 ..."
std::string cycle_text(const std::vector<std::size_t>& cycle, const Dump& dump) {
  std::vector<std::string> texts;
  for (const std::size_t index : cycle) {
    const DumpedThread& thread = dump.threads[index];
    texts.push_back(fmt::format("{} in {} waits for a lock that thread {} has",
                                place_text(thread, dump),
                                thread_text(thread),
                                thread.wait->holder));
  }
  return "deadlock: " + base::join(texts, "; ");
}

/// A thread whose asyncio loop is in a call that blocks it; null where there is none.
const DumpedThread* blocked_loop(const Dump& dump) {
  const auto is_loop = [](const DumpedFrame& frame) {
    return frame.name.ends_with("_run_once") && frame.file.ends_with("asyncio/base_events.py");
  };
  for (const DumpedThread& thread : dump.threads) {
    if (std::ranges::none_of(thread.python, is_loop) || !thread.wait)
      continue;
    if (thread.python.front().file.ends_with("selectors.py"))
      continue;  // it has nothing to do
    return &thread;
  }
  return nullptr;
}

/// "5 threads wait for what thread 12 serve has: write_log (server.py:11) sleeps for 3 s", for the
/// thread that most others wait for; "" where at most one does.
std::string holder_line(const Dump& dump) {
  std::map<std::uint32_t, int> waiters_of;
  for (const DumpedThread& thread : dump.threads)
    if (thread.wait && thread.wait->holder != 0)
      ++waiters_of[thread.wait->holder];
  const auto busiest =
      std::ranges::max_element(waiters_of, {}, [](const auto& holder) { return holder.second; });
  if (busiest == waiters_of.end() || busiest->second < 2)
    return {};
  const DumpedThread* holder = thread_of(dump, busiest->first);
  if (holder == nullptr)
    return {};
  return fmt::format("{} threads wait for what {} has: {} {}",
                     busiest->second,
                     thread_text(*holder),
                     place_text(*holder, dump),
                     doing_text(*holder, dump));
}

/// "no deadlock found", unless it could not be.
std::string deadlock_text(const Dump& dump) {
  const auto has_unknown_holder = [](const DumpedThread& thread) {
    return thread.wait && thread.wait->kind == WaitKind::kLock && thread.wait->holder == 0;
  };
  const auto unknown = std::ranges::count_if(dump.threads, has_unknown_holder);
  if (unknown < 2)
    return "no deadlock found";
  return fmt::format("who has the locks that {} of them wait for is not known", unknown);
}

/// What a person wants to know first.
std::string answer(const Dump& dump) {
  std::vector<std::string> texts;
  for (const auto& cycle : dump.cycles)
    texts.push_back(cycle_text(cycle, dump));
  if (const DumpedThread* loop = blocked_loop(dump))
    texts.push_back(fmt::format("the event loop of {} is blocked: {} {}",
                                thread_text(*loop),
                                place_text(*loop, dump),
                                doing_text(*loop, dump)));
  if (!texts.empty())
    return base::join(texts, "\n");
  if (std::string holder = holder_line(dump); !holder.empty())
    return holder;
  const auto waiting = std::ranges::count_if(
      dump.threads, [](const auto& thread) { return thread.wait.has_value(); });
  const auto running = std::ssize(dump.threads) - waiting;
  return fmt::format("{} of {} {}, {} {}; {}",
                     running,
                     base::counted(dump.threads.size(), "thread"),
                     verb_of(running, "run"),
                     waiting,
                     verb_of(waiting, "wait"),
                     deadlock_text(dump));
}

std::string process_text(const DumpedProcess& process) {
  const Dump& dump = process.dump;
  std::string rank;
  if (process.rank)
    rank = fmt::format(" (rank {})", *process.rank);
  return fmt::format("process {}{}: {}; {}, read in {}, stopped for {} in all",
                     dump.target.pid,
                     rank,
                     base::printable(base::shell_quote(dump.target.argv)),
                     base::counted(dump.threads.size(), "thread"),
                     base::format_ns(static_cast<double>(dump.read_ns)),
                     base::format_ns(static_cast<double>(dump.stopped_ns)));
}

/// Native frames down to the interpreter, then Python's: what lies below is the interpreter's own.
std::vector<std::string> stack_of(const DumpedThread& thread) {
  std::vector<std::string> lines;
  for (const DumpedFrame& frame : thread.native) {
    const bool is_interpreter = analyze::is_python_module(base::file_name(frame.module));
    if (!thread.python.empty() && is_interpreter)
      break;
    lines.push_back(frame_text(frame));
  }
  for (const DumpedFrame& frame : thread.python)
    lines.push_back(frame_text(frame));
  if (thread.native_cut && thread.python.empty())
    lines.emplace_back("(the stack is cut)");
  return lines;
}

/// What the first thread does, without its line: equal for ranks that do the same.
std::string signature_of(const DumpedProcess& process) {
  if (process.dump.threads.empty())
    return {};
  const DumpedThread& thread = process.dump.threads.front();
  std::string signature = "runs";
  if (thread.wait)
    signature = of_kind(kKinds, thread.wait->kind);
  signature += ' ';
  if (const DumpedFrame* place = place_of(thread, process.dump))
    signature += place->name;
  return signature;
}

void frames_json(report::JsonWriter& json,
                 const char* name,
                 const std::vector<DumpedFrame>& frames) {
  json.line_objects(name, frames, [&](const DumpedFrame& frame) {
    json.field("function", frame.name);
    json.field("file", frame.file);
    json.field("module", frame.module);
    json.field("line", frame.line);
    if (frame.first_line > 0)
      json.field("first_line", frame.first_line);
  });
}

void wait_json(report::JsonWriter& json, const std::optional<DumpedWait>& wait) {
  json.key("wait");
  if (!wait)
    return json.null();
  json.open_line_object();
  json.field("kind", of_kind(kKinds, wait->kind));
  json.field("call", wait->call);
  json.field("on", wait->on);
  json.field("for_ns", wait->since_ns);
  if (wait->holder == 0)
    json.null_field("holder");
  else
    json.field("holder", wait->holder);
  json.close();
}

}  // namespace

void put_odd_first(std::vector<DumpedProcess>& processes) {
  constexpr std::ptrdiff_t kFewest = 3;
  const auto has_rank = [](const DumpedProcess& process) { return process.rank.has_value(); };
  const auto begin = processes.begin();
  auto end = processes.end();
  if (std::count_if(begin, end, has_rank) >= kFewest)
    end = std::stable_partition(begin, end, has_rank);
  std::map<std::string, std::ptrdiff_t> counts;
  std::string commonest;
  for (auto process = begin; process != end; ++process) {
    const std::string signature = signature_of(*process);
    if (++counts[signature] > counts[commonest])
      commonest = signature;
  }
  if (end - begin < kFewest || 2 * counts[commonest] <= end - begin)
    return;
  std::stable_partition(
      begin, end, [&](const DumpedProcess& process) { return signature_of(process) != commonest; });
}

void write_dump_text(const std::vector<DumpedProcess>& processes, report::Sink& sink) {
  for (const DumpedProcess& process : processes) {
    const Dump& dump = process.dump;
    if (&process != &processes.front())
      sink.write("\n");
    sink.write(answer(dump) + "\n" + process_text(process) + "\n");
    for (const std::string& note : dump.notes)
      sink.write("note: " + base::printable(note) + "\n");
    for (const DumpedThread& thread : dump.threads) {
      sink.write("\n" + thread_text(thread) + " " + doing_text(thread, dump) + "\n");
      for (const std::string& line : stack_of(thread))
        sink.write("  " + line + "\n");
    }
  }
}

void write_dump_json(const std::vector<DumpedProcess>& processes, report::Sink& sink) {
  report::JsonWriter json(sink);
  json.open_object();
  json.field("schema", "rangescope.dump/1");
  json.objects("processes", processes, [&](const DumpedProcess& process) {
    const Dump& dump = process.dump;
    json.field("pid", dump.target.pid);
    json.field("rank", process.rank);
    json.field("command", dump.target.argv);
    json.field("text", answer(dump));
    json.field("read_ns", dump.read_ns);
    json.field("stopped_ns", dump.stopped_ns);
    json.field("python", dump.python);
    json.field("notes", dump.notes);
    json.open_array("deadlocks");
    for (const auto& cycle : dump.cycles) {
      json.open_line_array();
      for (const std::size_t index : cycle)
        json.value(dump.threads[index].tid);
      json.close();
    }
    json.close();
    json.objects("threads", dump.threads, [&](const DumpedThread& thread) {
      json.field("tid", thread.tid);
      json.field("name", thread.name);
      json.field("state", std::string(1, thread.state));
      wait_json(json, thread.wait);
      json.field("place", place_text(thread, dump));
      frames_json(json, "python_stack", thread.python);
      frames_json(json, "native_stack", thread.native);
      json.field("native_cut", thread.native_cut);
    });
  });
  json.close();
  json.finish();
}

}  // namespace rangescope::cli
