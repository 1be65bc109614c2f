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
constexpr std::string_view kSystemFolders[] = {
    "/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/rustc/", "/proc/"};
constexpr std::string_view kInterpreters[] = {
    "pypy", "node", "ruby", "perl", "java", "bash", "dash", "sh"};

constexpr std::string_view kCodeOfAnOption = "<string>";  ///< python -c
constexpr std::string_view kCodeOfInput = "<stdin>";      ///< python -
constexpr std::string_view kModule = "<module>";
constexpr std::string_view kFolderOfMultiprocessing = "/multiprocessing/";

template <class List>
bool starts_with_any(std::string_view text, const List& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes), [&](std::string_view prefix) {
    return text.starts_with(prefix);
  });
}
/// Our own modules that run inside the program, wherever the package is imported from.
constexpr std::string_view kOurModules[] = {
    "/rangescope/ranges.py", "/rangescope/magic.py", "/rangescope/pytest_plugin.py"};

bool is_of_our_package(std::string_view path) {
  return std::ranges::any_of(kOurModules,
                             [&](std::string_view module) { return path.ends_with(module); });
}

bool is_of_a_library(std::string_view path) {
  return std::any_of(
      std::begin(kLibraryFolders), std::end(kLibraryFolders), [&](std::string_view folder) {
        return path.find(folder) != std::string_view::npos;
      });
}

/// Namespaces of C++'s and Rust's standard libraries and packages of Go's runtime, whose functions
/// are compiled into the executable of a program.
constexpr std::string_view kStandardLibraries[] = {
    "std::", "core::", "alloc::", "__gnu_cxx::", "runtime.", "runtime/", "internal/"};

/// Where the C library starts an executable: compiled into it, and no function of the program's.
constexpr std::string_view kStartOfProgram = "_start";

/// For functions whose file is unknown. Rust names methods of a trait "<TYPE as TRAIT>::NAME":
/// those of a primitive type are the library's.
bool is_of_standard_library(std::string_view name) {
  if (name == kStartOfProgram)
    return true;
  if (!name.starts_with('<')) {
    const std::string_view template_or_name = name.substr(0, name.find_first_of("<("));
    const std::size_t result_type_ends =
        template_or_name.rfind(' ');  // "void std::sort<int*>(...)"
    if (result_type_ends != std::string_view::npos)
      name.remove_prefix(result_type_ends + 1);
    return starts_with_any(name, kStandardLibraries);
  }
  const std::string_view type = name.substr(1, name.find(" as ") - 1);
  const bool is_primitive = type.find("::") == std::string_view::npos;
  return is_primitive || starts_with_any(type, kStandardLibraries);
}

Origin origin_of_python(std::string_view name, std::string_view file) {
  const bool generated = file.starts_with('<') && file != kCodeOfAnOption && file != kCodeOfInput;
  if (file.empty() || generated || is_of_a_library(file) || is_of_our_package(file))
    return Origin::kElsewhere;
  const bool is_comprehension = name.ends_with("<genexpr>") || name.ends_with("comp>");
  return is_comprehension ? Origin::kPartOfCaller : Origin::kOwn;
}

bool is_code_without_file(const Session& session, const CpuFrame& frame) {
  return session.strings.view(frame.file).starts_with('<');
}

bool has_own_python_file(const Session& session, const std::vector<Origin>& origins) {
  for (std::size_t f = 0; f < origins.size(); ++f) {
    const CpuFrame& frame = session.cpu.frames[f];
    const bool is_python = frame.kind == model::FrameKind::kPython;
    if (is_python && origins[f] == Origin::kOwn && !is_code_without_file(session, frame))
      return true;
  }
  return false;
}

/// Is the program a text, of `python -c`, of stdin or of a program that embeds Python? Then the
/// outermost Python function of a call chain is the text's module. Lines of .pth files are called
/// by the module `site`, generated code by the function that made it; and multiprocessing starts
/// its children by a text of its own.
bool program_is_a_text(const Session& session) {
  const model::CpuProfile& cpu = session.cpu;
  std::vector<bool> in_python(cpu.stacks.size());
  std::vector<bool> is_text(cpu.stacks.size());
  for (std::size_t s = 0; s < cpu.stacks.size(); ++s) {  // callers come before what they call
    const model::CpuStack& stack = cpu.stacks[s];
    const CpuFrame& frame = cpu.frames[stack.frame];
    const bool is_python = frame.kind == model::FrameKind::kPython;
    const bool is_outermost = stack.parent == kNone || !in_python[stack.parent];
    in_python[s] = is_python || !is_outermost;
    if (!is_python)
      continue;
    const std::string_view file = session.strings.view(frame.file);
    if (is_outermost && session.strings.view(frame.name) == kModule)
      is_text[s] = file == kCodeOfAnOption || file == kCodeOfInput;
    else if (!is_outermost && file.find(kFolderOfMultiprocessing) != std::string_view::npos)
      is_text[stack.parent] = false;
  }
  return std::ranges::find(is_text, true) != is_text.end();
}

/// In a program of files, code without a file is what the interpreter starts with: a line of a .pth
/// file.
void leave_out_code_without_files(const Session& session, std::vector<Origin>& origins) {
  if (!has_own_python_file(session, origins) || program_is_a_text(session))
    return;
  for (std::size_t f = 0; f < origins.size(); ++f)
    if (is_code_without_file(session, session.cpu.frames[f]))
      origins[f] = Origin::kElsewhere;
}

bool is_own_native(std::string_view module,
                   std::string_view file,
                   const std::set<std::string_view>& executables) {
  const bool in_executable = executables.contains(module);
  const bool in_own_library = module.starts_with('/') && !module.starts_with("//") &&
                              !starts_with_any(module, kSystemFolders) &&
                              !is_of_a_library(module) &&
                              !base::file_name(module).starts_with("librangescope");
  if (!in_executable && !in_own_library)
    return false;
  if (is_interpreter_module(base::file_name(module)))
    return false;
  return !starts_with_any(file, kSystemFolders) && !is_of_a_library(file);
}

/// A Python function in which a thread without work waits; `function` is the last part of its name.
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
/// Starts of native functions' names.
constexpr std::string_view kIdleNative[] = {
    "accept", "__accept", "epoll_wait", "epoll_pwait", "pthread_join", "__pthread_clockjoin"};
constexpr std::string_view kIdleInWorkers[] = {"poll",
                                               "__poll",
                                               "ppoll",
                                               "select",
                                               "__select",
                                               "pthread_cond_",
                                               "__pthread_cond_",
                                               "___pthread_cond_"};

std::string_view last_part(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return dot == std::string_view::npos ? qualified : qualified.substr(dot + 1);
}

Idle idle_in_python(std::string_view name, std::string_view path) {
  const std::string_view file = base::file_name(path);
  const std::string_view function = last_part(name);
  const bool found = std::ranges::any_of(kIdlePython, [&](const IdleFunction& idle) {
    return idle.file == file && idle.function == function;
  });
  return found ? Idle::kInAnyThread : Idle::kNo;
}

Idle idle_in(const Session& session, const CpuFrame& frame) {
  const std::string_view name = session.strings.view(frame.name);
  if (frame.kind == model::FrameKind::kPython)
    return idle_in_python(name, session.strings.view(frame.file));
  if (starts_with_any(name, kIdleNative))
    return Idle::kInAnyThread;
  return starts_with_any(name, kIdleInWorkers) ? Idle::kInWorkers : Idle::kNo;
}

/// Is it a function of asyncio's loop?
bool is_event_loop(const Session& session, const CpuFrame& frame) {
  return frame.kind == model::FrameKind::kPython &&
         base::file_name(session.strings.view(frame.file)) == "base_events.py";
}

std::vector<Origin> origins_of_frames(const Session& session) {
  std::set<std::string_view> executables;
  for (const model::Process& process : session.processes)
    executables.insert(session.strings.view(process.name));
  std::vector<Origin> origins;
  for (const CpuFrame& frame : session.cpu.frames) {
    const std::string_view name = session.strings.view(frame.name);
    const std::string_view file = session.strings.view(frame.file);
    Origin& origin = origins.emplace_back(Origin::kElsewhere);
    if (frame.kind == model::FrameKind::kPython) {
      origin = origin_of_python(name, file);
      continue;
    }
    const bool is_native = frame.kind == model::FrameKind::kNative;
    const bool has_name = frame.name != 0 && name.find("+0x") == std::string_view::npos;
    if (!is_native || !has_name)
      continue;
    if (file.empty() && is_of_standard_library(name))
      continue;
    if (is_own_native(session.strings.view(frame.module), file, executables))
      origin = Origin::kOwn;
  }
  leave_out_code_without_files(session, origins);
  return origins;
}

}  // namespace

bool is_python_module(std::string_view file) {
  return file.starts_with("libpython") || file.starts_with("python");
}

bool is_interpreter_module(std::string_view file) {
  const auto found = std::ranges::find(kInterpreters, file);
  return found != std::end(kInterpreters) || is_python_module(file);
}

bool UserCode::is_idle(const model::CpuWait& wait, const model::CpuThread& thread) const {
  const bool is_first_thread = thread.pid == thread.tid;
  const Idle in_stack = idle[wait.stack];
  return in_stack == Idle::kInAnyThread || (in_stack == Idle::kInWorkers && !is_first_thread);
}

Origin origin_of_frame(bool is_python,
                       std::string_view name,
                       std::string_view file,
                       std::string_view module,
                       std::string_view executable) {
  if (is_python)
    return origin_of_python(name, file);
  if (name.empty() || is_of_standard_library(name))
    return Origin::kElsewhere;
  return is_own_native(module, file, {executable}) ? Origin::kOwn : Origin::kElsewhere;
}

UserCode user_code(const Session& session) {
  const model::CpuProfile& cpu = session.cpu;
  UserCode code;
  code.origins = origins_of_frames(session);
  std::vector<Idle> idle_frames;
  std::vector<bool> event_loop_frames;
  for (const CpuFrame& frame : cpu.frames) {
    idle_frames.push_back(idle_in(session, frame));
    event_loop_frames.push_back(is_event_loop(session, frame));
  }
  for (const model::CpuStack& stack : cpu.stacks) {  // callers come before what they call
    const bool has_caller = stack.parent != kNone;
    const std::uint32_t outer = has_caller ? code.innermost[stack.parent] : kNone;
    const Idle outer_idle = has_caller ? code.idle[stack.parent] : Idle::kNo;
    const bool is_called_by_loop = has_caller && code.in_event_loop[stack.parent];
    code.in_event_loop.push_back(is_called_by_loop || event_loop_frames[stack.frame]);
    const Origin origin = code.origins[stack.frame];
    code.innermost.push_back(origin == Origin::kOwn ? stack.frame : outer);
    const bool is_outer_callback = has_caller && code.is_callback[stack.parent];
    code.is_callback.push_back(origin == Origin::kOwn ? is_called_by_loop : is_outer_callback);
    if (origin == Origin::kElsewhere)
      code.idle.push_back(std::max(outer_idle, idle_frames[stack.frame]));
    else
      code.idle.push_back(Idle::kNo);
  }
  return code;
}

model::CodePlace code_place(const Session& session, const UserCode& code, std::uint32_t frame) {
  const model::CpuFunction function = function_of(session, frame);
  const bool has_file = function.python || code.origins[frame] != Origin::kElsewhere;
  if (has_file && !function.file.empty())
    return {function.name, function.file, function.line};
  if (function.module.empty() || function.names_its_module())
    return {function.name, "", 0};
  return {function.name + " [" + std::string(base::file_name(function.module)) + "]", "", 0};
}

}  // namespace rangescope::analyze
