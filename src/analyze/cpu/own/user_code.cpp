#include "analyze/cpu/own/user_code.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "analyze/cpu/cpu.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::CpuFrame;
using model::kNone;
using model::Session;

constexpr std::string_view kLibraryFolders[] = {
    "/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "/.cargo/registry/"};
constexpr std::string_view kSystemFolders[] = {"/usr/",   "/bin/", "/sbin/",  "/lib/",
                                               "/lib64/", "/opt/", "/rustc/", "/proc/"};
constexpr std::string_view kInterpreters[] = {"pypy", "node", "ruby", "perl",
                                              "java", "bash", "dash", "sh"};

constexpr std::string_view kCodeOfAnOption = "<string>",
                           kCodeOfInput = "<stdin>";  ///< python -c, python -

template <class List>
bool starts_with_any(std::string_view text, const List& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}
bool is_of_a_library(std::string_view path) {
  return std::any_of(
      std::begin(kLibraryFolders), std::end(kLibraryFolders),
      [&](std::string_view folder) { return path.find(folder) != std::string_view::npos; });
}

Origin origin_of_python(std::string_view name, std::string_view file) {
  const bool generated = file.starts_with('<') && file != kCodeOfAnOption && file != kCodeOfInput;
  if (file.empty() || generated || is_of_a_library(file)) return Origin::kElsewhere;
  const bool is_comprehension = name.ends_with("<genexpr>") || name.ends_with("comp>");
  return is_comprehension ? Origin::kPartOfCaller : Origin::kOwn;
}

/// Where a program has files, code without one is what the interpreter starts with (a line of a
/// .pth file).
void leave_out_code_without_files(const Session& session, std::vector<Origin>& origins) {
  const auto is_without_file = [&](std::size_t f) {
    return session.strings.view(session.cpu.frames[f].file).starts_with('<');
  };
  const auto is_own_python_file = [&](std::size_t f) {
    const bool python = session.cpu.frames[f].kind == model::FrameKind::kPython;
    return python && origins[f] == Origin::kOwn && !is_without_file(f);
  };
  bool any = false;
  for (std::size_t f = 0; f < origins.size() && !any; ++f) any = is_own_python_file(f);
  for (std::size_t f = 0; f < origins.size() && any; ++f)
    if (is_without_file(f)) origins[f] = Origin::kElsewhere;
}

bool is_own_native(std::string_view module, std::string_view file,
                   const std::set<std::string_view>& executables) {
  const bool in_executable = executables.contains(module);
  const bool in_own_library = module.starts_with('/') && !module.starts_with("//") &&
                              !starts_with_any(module, kSystemFolders) &&
                              !is_of_a_library(module) &&
                              !base::file_name(module).starts_with("librangescope");
  if (!in_executable && !in_own_library) return false;
  if (is_interpreter_module(base::file_name(module))) return false;
  return !starts_with_any(file, kSystemFolders) && !is_of_a_library(file);
}

// What a thread waits in that has nothing to do, by the file and the last part of the function's
// name. Python's.
struct IdleFunction {
  std::string_view file, function;
};
constexpr IdleFunction kIdlePython[] = {
    {"selectors.py", "select"},
    {"socket.py", "accept"},
    {"queue.py", "get"},
    {"threading.py", "join"},
    {"threading.py", "_shutdown"},
    {"threading.py", "_wait_for_tstate_lock"},
    {"threading.py", "start"},
    {"thread.py", "_worker"},
    {"thread.py", "_python_exit"},
    {"pool.py", "worker"},
    {"pool.py", "_handle_tasks"},
    {"pool.py", "_handle_results"},
    {"pool.py", "_wait_for_updates"},
    {"socketserver.py", "shutdown"},
    {"_monitor.py", "run"},
    {"process.py", "_worker"},
    {"process.py", "_process_worker"},
};
constexpr std::string_view kIdleNative[] = {"accept",      "__accept",     "epoll_wait",
                                            "epoll_pwait", "pthread_join", "__pthread_clockjoin"};
/// Of another thread than the first: a worker's wait for work.
constexpr std::string_view kIdleInWorkers[] = {
    "poll",     "__poll",        "ppoll",           "select",
    "__select", "pthread_cond_", "__pthread_cond_", "___pthread_cond_"};

std::string_view last_part(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return dot == std::string_view::npos ? qualified : qualified.substr(dot + 1);
}

bool is_idle_function(const Session& session, const CpuFrame& frame, bool first_thread) {
  const std::string_view name = session.strings.view(frame.name);
  if (frame.kind == model::FrameKind::kPython) {
    const std::string_view file = base::file_name(session.strings.view(frame.file)),
                           function = last_part(name);
    return std::any_of(
        std::begin(kIdlePython), std::end(kIdlePython),
        [&](const IdleFunction& idle) { return idle.file == file && idle.function == function; });
  }
  return starts_with_any(name, kIdleNative) ||
         (!first_thread && starts_with_any(name, kIdleInWorkers));
}

}  // namespace

bool is_python_module(std::string_view file) {
  return file.starts_with("libpython") || file.starts_with("python");
}

bool is_interpreter_module(std::string_view file) {
  const bool other = std::find(std::begin(kInterpreters), std::end(kInterpreters), file) !=
                     std::end(kInterpreters);
  return other || is_python_module(file);
}

UserCode user_code(const Session& session) {
  const model::CpuProfile& cpu = session.cpu;
  std::set<std::string_view> executables;
  for (const model::Process& process : session.processes)
    executables.insert(session.strings.view(process.name));
  UserCode code;
  code.origins.resize(cpu.frames.size());
  for (std::size_t f = 0; f < cpu.frames.size(); ++f) {
    const CpuFrame& frame = cpu.frames[f];
    const std::string_view name = session.strings.view(frame.name),
                           file = session.strings.view(frame.file);
    if (frame.kind == model::FrameKind::kPython) {
      code.origins[f] = origin_of_python(name, file);
      continue;
    }
    const bool has_name = frame.kind == model::FrameKind::kNative && frame.name != 0;
    if (!has_name || name.find("+0x") != std::string_view::npos) continue;
    if (is_own_native(session.strings.view(frame.module), file, executables))
      code.origins[f] = Origin::kOwn;
  }
  leave_out_code_without_files(session, code.origins);
  code.innermost.resize(cpu.stacks.size());
  for (std::size_t s = 0; s < cpu.stacks.size(); ++s) {
    const model::CpuStack& stack = cpu.stacks[s];
    const std::uint32_t outer = stack.parent == kNone ? kNone : code.innermost[stack.parent];
    code.innermost[s] = code.origins[stack.frame] == Origin::kOwn ? stack.frame : outer;
  }
  return code;
}

model::CodePlace code_place(const Session& session, std::uint32_t frame) {
  const model::CpuFunction function = function_of(session, frame);
  const bool names_its_module =
      function.name.find("+0x") != std::string::npos || function.name.starts_with('[');
  if (!function.file.empty()) return {function.name, function.file, function.line};
  if (function.module.empty() || names_its_module) return {function.name, "", 0};
  return {function.name + " [" + std::string(base::file_name(function.module)) + "]", "", 0};
}

bool is_idle_wait(const Session& session, const UserCode& code, std::uint32_t stack,
                  bool first_thread) {
  const model::CpuProfile& cpu = session.cpu;
  for (; stack < cpu.stacks.size(); stack = cpu.stacks[stack].parent) {
    const std::uint32_t frame = cpu.stacks[stack].frame;
    if (code.origins[frame] != Origin::kElsewhere) return false;
    if (is_idle_function(session, cpu.frames[frame], first_thread)) return true;
  }
  return false;
}

}  // namespace rangescope::analyze
