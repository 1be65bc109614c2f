// What a recorder keeps is bounded, and what it left out is told: records as the kernel gives them,
// through the file, into a session.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fs.hpp"
#include "read/native/cpu.hpp"
#include "sample/cpu/python.hpp"
#include "sample/cpu/real_time.hpp"
#include "sample/cpu/running_code.hpp"
#include "sample/cpu/sampler.hpp"
#include "wire/cpython.hpp"

namespace rangescope {
namespace {

namespace cpu = sample::cpu;

template <class Records>
model::Session recorded(std::uint64_t most_bytes,
                        std::size_t most_stacks,
                        const Records& records,
                        model::Session session = {}) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("rangescope-limits-" + std::to_string(::getpid()) + ".cpu");
  auto file = sample::BlockFile::create(path, wire::cpu::kMagic, wire::cpu::kVersion);
  EXPECT_TRUE(file);
  cpu::Sampler sampler(std::move(*file), "interval_ns 1000\n", most_bytes, most_stacks);
  const cpu::CounterEvent event = *cpu::counter_event("page-faults");
  const int refused = 0;
  sampler.describe({&event, 1}, {&refused, 1});
  sampler.mapped({1, 0x1000, 0x1000'0000, 0, "//anon", true});
  records(sampler);
  sampler.finish(1'000'000, "", 0, {});
  const auto mapping = base::Mapping::open(path);
  EXPECT_TRUE(mapping);
  EXPECT_TRUE(read::native::read_cpu(mapping->bytes(), "test", session));
  std::filesystem::remove(path);
  return session;
}

void sample_at(cpu::Sampler& sampler,
               std::uint32_t tid,
               std::int64_t at_ns,
               std::uint64_t address) {
  cpu::Sample sample;
  sample.pid = 1;
  sample.tid = tid;
  sample.at_ns = at_ns;
  sample.chain = {&address, 1};
  sampler.sample(sample);
}

/// A process with code without a file, of which every sample is at another place.
model::Session sampled(std::uint64_t most_bytes, std::size_t most_stacks, std::uint64_t samples) {
  return recorded(most_bytes, most_stacks, [&](cpu::Sampler& sampler) {
    for (std::uint64_t i = 0; i < samples; ++i) {
      sample_at(sampler, 1, static_cast<std::int64_t>(i), 0x1000 + 8 * i);
      sampler.counted({1, 1}, static_cast<std::int64_t>(i), 0);
    }
  });
}

std::uint64_t cut(const model::Session& session) {
  return static_cast<std::uint64_t>(
      std::count_if(session.losses.begin(), session.losses.end(), [](const model::Loss& loss) {
        return loss.kind.id() == "cpu_samples_cut";
      }));
}

/// Samples of which nothing but the mark of a cut chain is known.
std::int64_t nameless(const model::Session& session) {
  const model::CpuProfile& profile = session.cpu;
  return std::count_if(
      profile.samples.begin(), profile.samples.end(), [&](const model::CpuSample& sample) {
        return profile.frames[profile.stacks[sample.stack].frame].kind == model::FrameKind::kCut;
      });
}

TEST(Limits, StacksAreBoundedAndSamplesStay) {
  const auto whole = sampled(1 << 20, 1 << 20, 3000);
  EXPECT_EQ(cut(whole), 0u);
  EXPECT_EQ(nameless(whole), 0);
  EXPECT_EQ(whole.cpu.samples.size(), 3000u);
  EXPECT_EQ(whole.cpu.counts.size(), 3000u);
  const auto bounded = sampled(1 << 20, 1000, 3000);
  EXPECT_EQ(cut(bounded), 1u);
  EXPECT_EQ(bounded.cpu.samples.size(), 3000u);
  EXPECT_GT(nameless(bounded), 2000);
  EXPECT_LT(nameless(bounded), 3000);
}

TEST(Recorder, ThreadsRunOnWhenTheMainOneHasEnded) {
  const auto session = recorded(1 << 20, 1 << 20, [](cpu::Sampler& sampler) {
    sampler.forked({1, 2, 1}, 10);
    sample_at(sampler, 1, 20, 0x1000);
    sampler.ended({1, 1, 0}, 30);
    sample_at(sampler, 2, 40, 0x1008);
    sampler.ended({1, 2, 0}, 50);
    sample_at(sampler, 2, 60, 0x1010);  // of another process, whose code is not known
  });
  EXPECT_EQ(session.cpu.samples.size(), 3u);
  EXPECT_EQ(nameless(session), 1);
}

void slept(cpu::Sampler& sampler, std::uint32_t tid, std::int64_t from, std::int64_t to) {
  sampler.switched({1, tid}, from, true, false);
  sampler.switched({1, tid}, to, false, false);
}

TEST(Recorder, WaitsOfAWindowStandForTheTimeThatWasNotWatched) {
  constexpr std::int64_t kMs = 1'000'000;
  const auto session = recorded(1 << 20, 1 << 20, [](cpu::Sampler& sampler) {
    sampler.switched({1, 3}, 1 * kMs, true, false);  // sleeps on and on
    slept(sampler, 2, 98 * kMs, 99 * kMs);
    sampler.watching_ends(100 * kMs);
    sampler.watching_begins(190 * kMs);
    slept(sampler, 2, 191 * kMs, 193 * kMs);
    sampler.switched({1, 2}, 199 * kMs, true, false);  // out at the end of the window
    sampler.watching_ends(200 * kMs);
    sampler.watching_begins(290 * kMs);
    sampler.switched({1, 2}, 291 * kMs, false, false);
    sampler.switched({1, 3}, 292 * kMs, false, false);
    slept(sampler, 2, 295 * kMs, 296 * kMs);
  });
  ASSERT_EQ(session.cpu.waits.size(), 6u);
  const auto& waits = session.cpu.waits;  // by thread, and within one by time
  const std::size_t sleeper = waits[0].start_ns == 1 * kMs ? 0 : 5, other = sleeper == 0 ? 1 : 0;
  EXPECT_EQ(waits[other].weight, 1);
  EXPECT_EQ(waits[other + 1].start_ns, 191 * kMs);
  EXPECT_NEAR(waits[other + 1].weight, 10, 1e-3);  // 100 ms by a window of 10
  EXPECT_EQ(waits[other + 2].end_ns, 200 * kMs);
  EXPECT_EQ(waits[other + 3].start_ns, 290 * kMs);
  EXPECT_EQ(waits[sleeper].end_ns, 292 * kMs);
  EXPECT_EQ(waits[sleeper].weight, 1);
  EXPECT_TRUE(
      std::any_of(session.losses.begin(), session.losses.end(), [](const model::Loss& loss) {
        return loss.kind.id() == "cpu_switches_thinned";
      }));
}

// Where /proc alone tells what a thread waits for, it is looked at often as long as another wait
// may begin.
TEST(Recorder, WhoRunsMayWaitAtAnyTime) {
  constexpr std::int64_t kMs = 1'000'000;
  recorded(1 << 20, 1 << 20, [](cpu::Sampler& sampler) {
    EXPECT_FALSE(sampler.look_at_waits(0));
    sampler.switched({1, 2}, 1 * kMs, false, false);
    EXPECT_TRUE(sampler.look_at_waits(2 * kMs));
    sampler.switched({1, 2}, 3 * kMs, true, false);
    EXPECT_TRUE(sampler.look_at_waits(6 * kMs));  // and looks at it
    EXPECT_FALSE(sampler.look_at_waits(7 * kMs));
    sampler.switched({1, 2}, 8 * kMs, false, false);
    EXPECT_TRUE(sampler.look_at_waits(9 * kMs));
    sampler.switched({1, 2}, 10 * kMs, true, true);  // preempted: it goes on any time
    EXPECT_TRUE(sampler.look_at_waits(20 * kMs));
  });
}

TEST(Recorder, AThreadKnowsWhoStartedIt) {
  const auto session = recorded(1 << 20, 1 << 20, [](cpu::Sampler& sampler) {
    sampler.named({1, 1}, "main", false);
    sampler.forked({1, 2, 1, 1}, 10);
    sample_at(sampler, 2, 20, 0x1000);
  });
  ASSERT_EQ(session.cpu.threads.size(), 2u);
  EXPECT_EQ(session.cpu.threads[0].creator, 1u);
  EXPECT_EQ(session.cpu.threads[1].creator, model::kNone);
}

TEST(Limits, TheFileIsBounded) {
  const auto session = sampled(64 << 10, 1 << 20, 200'000);
  EXPECT_EQ(cut(session), 1u);
  EXPECT_GT(session.cpu.samples.size(), 8000u);
  EXPECT_LT(session.cpu.samples.size(), 100'000u);
}

/// 0 under a sanitizer, which keeps freed memory and shadows all of it.
std::size_t resident_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#endif
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// A library with the symbols of Python 3.11, and structures of this process in which this thread
/// is one of its own.
class HostilePython : public testing::Test {
 protected:
  void SetUp() override { find(HOSTILE_PYTHON11); }
  void find(const char* path) {
    void* library = ::dlopen(path, RTLD_NOW);
    ASSERT_NE(library, nullptr) << ::dlerror();
    runtime = static_cast<char*>(::dlsym(library, "_PyRuntime"));
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long start = 0, end = 0, offset = 0;
      char rights[8];
      if (line.find(path) == std::string::npos ||
          std::sscanf(line.c_str(), "%lx-%lx %7s %lx", &start, &end, rights, &offset) != 4)
        continue;
      space.map({start, end, offset, &modules.find(path, static_cast<std::uint32_t>(::getpid()))});
    }
    if (modules.find(path, 0).tables() == nullptr)
      GTEST_SKIP() << "built without libdw";
    link();
    point(interpreter + 16, state);
    point(state + 16, interpreter);
    point(state + 160, reinterpret_cast<void*>(static_cast<std::uintptr_t>(::gettid())));
    point(frame + 32, code);
    point(code + 8, ::dlsym(library, "PyCode_Type"));
    cpu::Python::Unread unread;
    python = cpu::Python::find(space, static_cast<std::uint32_t>(::getpid()), unread);
    ASSERT_NE(python, nullptr) << unread.why;
  }
  /// What versions do not have alike.
  virtual void link() {
    point(runtime + 40, interpreter);
    point(state + 56, through);
    point(through + 8, frame);
  }
  static void point(char* at, const void* to) { std::memcpy(at, &to, sizeof to); }
  /// A text of Python's, of ASCII.
  static std::vector<char> text(std::size_t length) {
    std::vector<char> object(48 + length, 'x');
    std::fill(object.begin(), object.begin() + 48, '\0');
    std::memcpy(object.data() + 16, &length, sizeof length);
    object[32] = 1 << 2 | 1 << 5 | 1 << 6;
    return object;
  }
  bool frames() {
    return python->frames(static_cast<std::uint32_t>(::gettid()), found) ==
           cpu::Python::Reading::kRead;
  }

  char* runtime = nullptr;
  alignas(8) char interpreter[64] = {}, state[256] = {}, through[64] = {}, frame[256] = {},
                  code[256] = {};
  cpu::Modules modules;
  cpu::Space space;
  std::unique_ptr<cpu::Python> python;
  std::vector<cpu::PythonFrame> found;
};

TEST_F(HostilePython, IsReadWhereItIsWhole) {
  const auto name = text(7), file = text(20);
  point(code + 128, name.data());
  point(code + 112, file.data());
  ASSERT_TRUE(frames());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code->name, "xxxxxxx");
}

TEST_F(HostilePython, RingsOfInterpretersAndFramesEnd) {
  point(interpreter, interpreter);  // the next one, which has no threads
  point(interpreter + 16, nullptr);
  EXPECT_FALSE(frames());
  const auto name = text(7);
  point(code + 128, name.data());
  point(code + 112, name.data());
  point(interpreter + 16, state);
  alignas(8) static char other[256];
  std::memcpy(other, frame, sizeof other);
  point(other + 48, frame);
  point(frame + 48, other);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(60));  // it was no thread of Python's a moment ago
  EXPECT_TRUE(frames());
  EXPECT_LE(found.size(), 512u);
}

/// A Python 3.11 of three functions: `main` calls `work` and `rest`, and `work` calls `step`.
class FramesOfASample : public HostilePython {
 protected:
  void SetUp() override {
    HostilePython::SetUp();
    if (IsSkipped())
      return;
    for (Function* function : {&main, &work, &step, &rest}) {
      constexpr std::size_t kInstructions = 20;
      std::memcpy(function->code, code, sizeof function->code);
      std::memcpy(function->code + 16, &kInstructions, sizeof kInstructions);
      std::copy_n(function->name, 4, function->text.begin() + 48);
      point(function->code + 128, function->text.data());
      point(function->code + 112, function->text.data());
    }
    loop = reinterpret_cast<std::uintptr_t>(
        ::dlsym(::dlopen(HOSTILE_PYTHON11, RTLD_NOW), "_PyEval_EvalFrameDefault"));
  }
  struct Function {
    const char* name;
    alignas(8) char code[256] = {}, frame[256] = {};
    std::vector<char> text = HostilePython::text(4);
    [[nodiscard]] std::uint64_t instruction(std::uint64_t number) const {
      return reinterpret_cast<std::uintptr_t>(code) + 184 + 2 * number;
    }
  };
  /// Reads what runs now, the innermost first.
  void read(std::initializer_list<Function*> running) {
    char* callee = nullptr;
    for (Function* function : running) {
      point(function->frame + 32, function->code);
      point(function->frame + 48, nullptr);
      if (callee != nullptr)
        point(callee + 48, function->frame);
      callee = function->frame;
    }
    point(through + 8, (*running.begin())->frame);
    ASSERT_TRUE(frames());
    python->note_callers(found);
  }
  /// Names of the frames, as far as they can be had for a sample of `function`.
  std::string at_sample_of(const Function& function, std::size_t calls = 1) {
    const cpu::PythonCode* running = python->code_with(function.instruction(3));
    EXPECT_NE(running, nullptr);
    if (running == nullptr || !python->go_back(*running, calls, found))
      return "unknown";
    std::string names;
    for (const cpu::PythonFrame& at_sample : found)
      names += at_sample.code->name + " ";
    return names;
  }

  Function main{"main"}, work{"work"}, step{"step"}, rest{"rest"};
  std::uint64_t loop = 0;
};

TEST_F(FramesOfASample, WhatWasCalledSinceIsTakenOffAndWhatHasReturnedIsPutBack) {
  read({&rest, &main});
  EXPECT_EQ(at_sample_of(rest), "rest main ");
  read({&step, &work, &main});
  EXPECT_EQ(at_sample_of(work), "work main ");
  read({&rest, &main});
  EXPECT_EQ(at_sample_of(step), "step work main ");
  EXPECT_EQ(found[0].line, 0u);
  read({&rest, &main});
  EXPECT_EQ(at_sample_of(main), "main ");
}

TEST_F(FramesOfASample, AreUnknownWhereCallersOrCallsOfTheLoopAreOthers) {
  read({&work, &main});
  read({&rest, &main});
  EXPECT_EQ(at_sample_of(work, 2), "unknown");  // C code had called the loop once more
  read({&step, &work, &main});
  read({&step, &rest, &main});
  read({&main});
  EXPECT_EQ(at_sample_of(step), "unknown");  // which of the two had called it?
  for (int often = 0; often < 40; ++often)
    read({&step, &work, &main});
  read({&main});
  EXPECT_EQ(at_sample_of(step), "step work main ");  // frames that changed while they were read
}

TEST_F(FramesOfASample, TheNextInstructionTellsWhatRan) {
  read({&work, &main});
  read({&rest, &main});
  std::array<std::uint64_t, cpu::kRegisters> in_loop{}, in_caller{};
  const std::uint64_t stack[] = {7, work.instruction(5), 9};
  in_loop[cpu::kRsp] = 0x8000;
  in_caller[cpu::kRsp] = 0x8018;
  cpu::Unwound unwound;
  unwound.addresses = {loop, 0x10};
  cpu::Sample sample;
  sample.values[cpu::kRsp] = 0x8000;
  sample.stack = std::as_bytes(std::span(stack));
  const auto name = [&] {
    unwound.registers = {in_loop, in_caller};
    const cpu::RunningCode running = cpu::running_code(*python, unwound, sample);
    EXPECT_EQ(running.calls, unwound.cut ? 0u : 1u);
    return running.code == nullptr ? "unknown" : running.code->name;
  };
  EXPECT_EQ(name(), "work");
  in_loop[14] = rest.instruction(1);
  EXPECT_EQ(name(), "rest");
  in_loop[15] = main.instruction(2);
  EXPECT_EQ(name(), "work");  // registers tell of two
  in_caller[cpu::kRsp] = 0x8008;
  EXPECT_EQ(name(), "unknown");
  in_caller[cpu::kRsp] = ~std::uint64_t{0};  // a stack that lies
  in_loop[cpu::kRsp] = ~std::uint64_t{6};
  EXPECT_EQ(name(), "unknown");
  unwound.cut = true;
  in_loop[15] = 0;
  EXPECT_EQ(name(), "unknown");
}

TEST_F(HostilePython, CodeThatChangesTakesNoMemory) {
  const auto name = text(7);
  std::vector<std::vector<char>> files;
  for (int i = 0; i < 100; ++i)
    files.push_back(text(4000));
  point(code + 128, name.data());
  const std::size_t before = resident_bytes();
  for (std::size_t i = 0; i < 15'000; ++i) {
    point(code + 112, files[i % files.size()].data());
    ASSERT_TRUE(frames());
  }
  EXPECT_LT(resident_bytes() - std::min(before, resident_bytes()), 24u << 20);  // of 60 MB
}

/// One of Python 3.13, which publishes where its fields are: where 3.11 has them, but for `name`.
class PublishedPython : public HostilePython {
 protected:
  void SetUp() override {}
  void link() override {
    const std::uint64_t numbers[wire::cpython::kNumbers] = {2048, 0,  16, 8,  16, 152, 160,  56,
                                                            0,    48, 32, 69, 0,  112, name, 72,
                                                            8,    16, 32, 48, 56, 136, 184};
    std::memcpy(runtime, "xdebugpy", 8);
    for (std::size_t i = 0; i < wire::cpython::kNumbers; ++i)
      if (wire::cpython::kPublished[0][i] != 0)
        std::memcpy(runtime + wire::cpython::kPublished[0][i], &numbers[i], sizeof numbers[i]);
    point(runtime + 2048, interpreter);
    point(state + 56, frame);
  }
  std::uint64_t name = 128;
};

TEST_F(PublishedPython, PlacesFarFromAnObjectsBeginAreNotBelieved) {
  const auto text_of_name = text(7);
  std::vector<std::uint64_t> large((2 << 20) / sizeof(std::uint64_t));
  for (const std::uint64_t place : {std::uint64_t{128}, std::uint64_t{1} << 20}) {
    name = place;
    find(HOSTILE_PYTHON13);
    if (IsSkipped())
      return;
    char* object = reinterpret_cast<char*>(large.data());
    std::memcpy(object, code, 128);
    point(object + 112, text_of_name.data());
    point(object + place, text_of_name.data());
    point(frame + 32, object);
    EXPECT_EQ(frames(), place == 128) << place;
  }
}

/// From CPython 3.14 on it has neither code nor caller.
TEST_F(PublishedPython, AGeneratorThatEndedUnderWayIsReadAgain) {
  find(HOSTILE_PYTHON13);
  if (IsSkipped())
    return;
  const auto reading = [&] {
    return python->frames(static_cast<std::uint32_t>(::gettid()), found);
  };
  point(frame + 32, nullptr);
  frame[69] = 1;
  EXPECT_EQ(reading(), cpu::Python::Reading::kTorn);
  frame[69] = 3;  // the loop's own: no Python code runs
  EXPECT_EQ(reading(), cpu::Python::Reading::kNone);
}

TEST(Limits, CodeAtEverNewPlacesIsForgotten) {
  const std::size_t before = resident_bytes();
  const auto session = recorded(1 << 20, 1 << 20, [](cpu::Sampler& sampler) {
    sampler.mapped({1, 0x1000, 0x1000, 0, "/bin/true", true});
    for (std::uint64_t i = 0; i < 300'000; ++i)
      sampler.mapped({1,
                      0x1'0000'0000 + 0x2000 * i,
                      0x1000,
                      0,
                      i % 2 == 0 ? "//anon" : "/memfd:" + std::to_string(i),
                      true});
    sample_at(sampler, 1, 10, 0x1'0000'0000 + 0x2000ull * 299'998);
    sample_at(sampler, 1, 20, 0x1'0000'0000);
  });
  EXPECT_LT(resident_bytes() - std::min(before, resident_bytes()), 48u << 20);
  EXPECT_EQ(cut(session), 1u);
  EXPECT_EQ(session.cpu.samples.size(), 2u);
}

TEST(Processes, KnownByTheirGpuWorkAloneHaveTheNameThatTheSamplerSaw) {
  model::Session of_gpu;  // of `attach`: regions are modules
  of_gpu.processes.push_back({1, 0, 0, 5, 90});
  of_gpu.threads.push_back({0, 1, 0});
  of_gpu.ranges.push_back({.start_ns = 10, .end_ns = 20});
  const auto session = recorded(
      1 << 20,
      1 << 20,
      [](cpu::Sampler& sampler) {
        sampler.found(1, 7, "python3");
        sample_at(sampler, 1, 30, 0x1000);
        sampler.ended({1, 1, 0, 0}, 80);
      },
      std::move(of_gpu));
  ASSERT_EQ(session.processes.size(), 1u);
  EXPECT_EQ(session.strings.view(session.processes[0].name), "python3");
  EXPECT_EQ(session.processes[0].parent_pid, 7u);
}

TEST(RealTime, IsTakenFromWorkThatDoesNotEnd) {
  std::thread worker([] {
    cpu::RealTime real_time;
    real_time.begins();
    sched_param parameters{};
    int policy = SCHED_FIFO;
    do {  // nothing but the watchdog ends this where the thread has the right to real-time priority
      ASSERT_EQ(::pthread_getschedparam(::pthread_self(), &policy, &parameters), 0);
    } while (policy == SCHED_FIFO);
  });
  worker.join();
}

// Tables of a large library take long once, on a busy machine; that is no reason to be late later.
TEST(RealTime, IsGivenBackWhenThatWorkIsDone) {
  const auto policy = [] {
    sched_param parameters{};
    int scheduling = -1;
    EXPECT_EQ(::pthread_getschedparam(::pthread_self(), &scheduling, &parameters), 0);
    return scheduling;
  };
  bool is_allowed = false;
  std::thread worker([&] {
    cpu::RealTime real_time;
    is_allowed = policy() == SCHED_FIFO;
    real_time.begins();
    while (policy() == SCHED_FIFO) {
    }
    real_time.ends();
    while (is_allowed && policy() != SCHED_FIFO)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  worker.join();
  if (!is_allowed)
    GTEST_SKIP() << "real-time priority is not allowed";
}

}  // namespace
}  // namespace rangescope
