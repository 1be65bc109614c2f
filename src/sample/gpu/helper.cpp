#include "sample/gpu/helper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/text.hpp"
#include "sample/gpu/nvml.hpp"
#include "sample/gpu/sample_writer.hpp"
#include "wire/launchers.hpp"

extern char** environ;

namespace rangescope::sample {
namespace {

using base::Code;
using wire::samples::EventKind;

struct Sampled {
  SampleWriter stream;
  std::unique_ptr<Sampler> sampler;
  const Device* device = nullptr;
  CounterSet set;
};

/// A program of the same run that counts asks for the device (inject/cupti/aside.hpp).
class Aside {
 public:
  explicit Aside(const std::filesystem::path& folder)
      : path_(base::in_place(folder / wire::samples::kAsideFile)) {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    say(false);
  }
  Aside& operator=(Aside&&) = delete;
  ~Aside() {
    if (file_ < 0)
      return;
    ::unlink(path_.c_str());
    ::close(file_);
  }
  [[nodiscard]] bool asked() const {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return file_ >= 0 && ::fcntl(file_, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  }
  void say(bool stepped_aside) const {
    if (file_ >= 0)
      (void)!::pwrite(file_, stepped_aside ? "1" : "0", 1, 0);
  }

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

/// An amount adds up over samples; a share, a rate or a mean does not.
bool is_amount(const std::string& metric) {
  return metric.ends_with(".sum");
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  (void)!::write(STDOUT_FILENO, text.data(), text.size());
}

void begin(Cupti& cupti, const Device& device, const Options& options, std::vector<Sampled>& out) {
  Description description{"CUPTI PM sampling",
                          "gpu",
                          device.ordinal,
                          device.uuid,
                          device.name,
                          device.chip,
                          options.interval_ns,
                          {},
                          {}};
  const auto set = cupti.choose(device.chip, options.wanted);
  if (set) {
    description.metrics = set->metrics;
    for (const std::string& metric : set->metrics)
      description.adds_up.push_back(is_amount(metric));
  }
  auto stream = SampleWriter::create(
      options.folder / ("gpu-" + std::to_string(device.ordinal) + wire::samples::kSuffix),
      std::move(description),
      options.most_bytes);
  if (!stream)
    return;
  out.push_back({std::move(*stream), nullptr, &device, set.value_or(CounterSet())});
  Sampled& sampled = out.back();
  const auto unavailable = [&](const base::Error& error) {
    sampled.device = nullptr;
    std::string why = error.what;
    if (!error.where.empty())
      why += " (" + error.where + ")";
    say("unavailable " + why);
    sampled.stream.event(EventKind::kUnavailable, why);
  };
  if (!set) {
    unavailable(set.error());
  } else if (set->metrics.empty()) {
    unavailable({Code::kToolMissing, "old: " + device.chip + " has none of the counters", {}, {}});
  } else {
    auto sampler = cupti.start(device, *set, options.interval_ns);
    if (!sampler)
      return unavailable(sampler.error());
    std::string line = "sampling " + device.uuid + " " + base::join(set->metrics, " ");
    if (!set->left_out.empty())
      line += "; left out: " + base::join(set->left_out, " ");
    say(line);
    sampled.sampler = std::move(*sampler);
  }
}

/// Read by tests/gpu/sample.sh; rangescope no longer listens.
void say_cost(const Spent& spent) {
  const auto ms = [](std::int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; };
  say("cost " + std::to_string(spent.samples) + " samples of " +
      ms(spent.last_ns - spent.first_ns) + " in " + std::to_string(spent.polls) +
      " polls: decoding " + ms(spent.decoding) + ", evaluating " + ms(spent.evaluating) +
      ", clearing " + ms(spent.clearing) + " for " + std::to_string(spent.cleared));
}

/// Waits; true when stdin has ended.
bool ended_within(std::chrono::milliseconds time) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, static_cast<int>(time.count())) <= 0)
    return false;
  char ignored[64];
  const ssize_t got = ::read(STDIN_FILENO, ignored, sizeof ignored);
  return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

/// Tasks of a Slurm step on this host: "2(x3),1" are two on each of the first three, one on the
/// fourth.
bool slurm_tasks_here(unsigned& tasks) {
  unsigned node = 0;
  const char* list = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  if (list == nullptr || !wire::parse_rank(std::getenv("SLURM_NODEID"), node))
    return false;
  for (const std::string_view part : base::split(list, ',')) {
    const std::size_t bracket = std::min(part.find("(x"), part.size());
    const std::string count(part.substr(0, bracket));
    std::string hosts = "1";
    if (bracket < part.size() && part.ends_with(')'))
      hosts = part.substr(bracket + 2, part.size() - bracket - 3);
    unsigned host_count = 0;
    if (!wire::parse_rank(count.c_str(), tasks) || !wire::parse_rank(hosts.c_str(), host_count))
      return false;
    if (node < host_count)
      return true;
    node -= host_count;
  }
  return false;
}

/// CUDA_VISIBLE_DEVICES shows the rank's GPUs alone. Slurm also sets it where all tasks see all
/// GPUs of the step.
bool sees_its_own() {
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES"),
             *of_step = std::getenv("SLURM_STEP_GPUS");
  return visible != nullptr && (of_step == nullptr || base::split(visible, ',').size() !=
                                                          base::split(of_step, ',').size());
}

/// Of helper_arguments(), at least three.
Options options_of(const std::vector<std::string>& arguments) {
  Options options;
  options.folder = arguments[0];
  options.interval_ns =
      std::max<std::int64_t>(base::to_int(arguments[1]).value_or(1'000'000), 1000);
  options.most_bytes = static_cast<std::uint64_t>(base::to_int(arguments[2]).value_or(512 << 20));
  for (std::size_t i = 3; i < arguments.size(); ++i) {
    Wanted& any = options.wanted.emplace_back();
    for (const std::string_view name : base::split(arguments[i], '|'))
      any.emplace_back(name);
  }
  return options;
}

/// Opens CUPTI, and gives this process's share of the devices; none, and says why, where they
/// cannot be sampled.
std::vector<Device> devices_to_sample(std::unique_ptr<Cupti>& cupti) {
  auto opened = open_cupti();
  if (!opened) {
    say("unavailable missing: " + opened.error().what);
    return {};
  }
  cupti = std::move(*opened);
  const auto found = cupti->devices();
  if (!found) {
    say("unavailable missing: " + found.error().what);
    return {};
  }
  const auto [first, last] = own_share(found->size());
  return {found->begin() + static_cast<std::ptrdiff_t>(first),
          found->begin() + static_cast<std::ptrdiff_t>(last)};
}

void record_failure(Sampled& sampled, const base::Error& error) {
  sampled.stream.event(EventKind::kFailed, error.what + " (" + error.where + ")");
  sampled.sampler.reset();
}

/// The program of the run that counted no longer does.
void start_again(Cupti& cupti, std::int64_t interval_ns, Sampled& sampled) {
  auto sampler = cupti.start(*sampled.device, sampled.set, interval_ns);
  sampled.stream.event(EventKind::kAside, "", 0);
  if (sampler)
    sampled.sampler = std::move(*sampler);
  else
    record_failure(sampled, sampler.error());
}

/// Takes what was sampled. `last`: stdin has ended; `steps_aside`: the program wants to count.
void take_samples(Sampled& sampled, bool last, bool steps_aside) {
  const bool ends = last || steps_aside;
  const auto done =
      ends ? sampled.sampler->stop(sampled.stream) : sampled.sampler->poll(sampled.stream);
  if (!done) {
    record_failure(sampled, done.error());
    sampled.device = nullptr;
  } else if (!last && ends) {
    sampled.stream.event(EventKind::kAside, "the program counts", 1);
    say_cost(sampled.sampler->spent());
    sampled.sampler.reset();
  }
}

/// `cupti` is not null where any of the devices is sampled.
void sample_until_stdin_ends(Cupti* cupti,
                             const Aside& aside,
                             std::int64_t interval_ns,
                             std::vector<Sampled>& devices) {
  const std::int64_t wait =
      std::clamp<std::int64_t>(kPollSamples * interval_ns, 5'000'000, 100'000'000);
  std::int64_t flushed = now_ns();
  bool is_aside = false;
  for (bool last = false; !last;) {
    last = ended_within(std::chrono::milliseconds(wait / 1'000'000));
    const bool is_asked = aside.asked(), changes = is_asked != is_aside && !last;
    for (Sampled& sampled : devices) {
      if (changes && !is_asked && sampled.device != nullptr)
        start_again(*cupti, interval_ns, sampled);
      else if (sampled.sampler)
        take_samples(sampled, last, changes && is_asked);
    }
    if (changes) {
      is_aside = is_asked;
      aside.say(is_aside);
    }
    if (now_ns() - flushed > 1'000'000'000) {
      for (Sampled& sampled : devices)
        sampled.stream.flush(false);
      flushed = now_ns();
    }
  }
  for (Sampled& sampled : devices) {
    if (sampled.sampler)
      say_cost(sampled.sampler->spent());
    sampled.sampler.reset();
    sampled.stream.flush(true);
  }
}

/// What the sampling process says until it is ready, or has nothing to sample; what it said until
/// then after 20 seconds: the driver of eight GPUs takes seconds to start where its persistence
/// daemon does not run.
std::string read_answer(int output) {
  std::string answer;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd ready{output, POLLIN, 0};
    if (left.count() <= 0 ||
        (::poll(&ready, 1, static_cast<int>(left.count())) < 0 && errno != EINTR))
      break;
    char text[512];
    const ssize_t got = ::read(output, text, sizeof text);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    answer.append(text, static_cast<std::size_t>(got));
    if (answer.find("ready\n") != std::string::npos ||
        answer.find("nothing\n") != std::string::npos)
      break;
  }
  return answer;
}

}  // namespace

std::pair<std::size_t, std::size_t> own_share(std::size_t devices) {
  const auto number = [](const auto& names, unsigned& value) {
    return std::any_of(std::begin(names), std::end(names), [&](const char* name) {
      return wire::parse_rank(std::getenv(name), value);
    });
  };
  const std::pair<std::size_t, std::size_t> all{0, devices};
  unsigned rank = 0, ranks = 0;
  if (sees_its_own() || !number(wire::kLocalRankVariables, rank))
    return all;
  if (!number(wire::kLocalWorldVariables, ranks) && !slurm_tasks_here(ranks))
    return all;
  if (rank >= ranks || devices < ranks)
    return all;
  return {devices * rank / ranks, devices * (rank + 1) / ranks};
}

std::vector<std::string> helper_arguments(const Options& options) {
  std::vector<std::string> out = {options.folder.string(),
                                  std::to_string(options.interval_ns),
                                  std::to_string(options.most_bytes)};
  for (const Wanted& any : options.wanted)
    out.push_back(base::join(any, "|"));
  return out;
}

int run_helper(const std::vector<std::string>& arguments) {
  // A terminal's Ctrl-C is for the program: what it does on its way out is sampled too.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
    ::signal(signal, SIG_IGN);
  for (const char* variable : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"})
    ::unsetenv(variable);
  if (arguments.size() < 3)
    return base::exit_code(Code::kUsage);
  const Options options = options_of(arguments);
  std::vector<Sampled> sampled;
  std::vector<Device> devices;
  std::unique_ptr<Cupti> cupti;
  if (!options.wanted.empty()) {
    devices = devices_to_sample(cupti);
    for (const Device& device : devices)
      begin(*cupti, device, options, sampled);
  }
  const auto nvml = NvmlSampler::start(devices, options.folder, options.most_bytes);
  if (sampled.empty() && !nvml) {
    say("nothing");
    return base::exit_code(Code::kToolMissing);
  }
  const Aside aside(options.folder);
  say("ready");
  sample_until_stdin_ends(cupti.get(), aside, options.interval_ns, sampled);
  return 0;
}

Beside::Beside(Beside&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), input_(std::exchange(other.input_, -1)) {}

Beside& Beside::operator=(Beside&& other) noexcept {
  if (this == &other)
    return *this;
  stop();
  pid_ = std::exchange(other.pid_, -1);
  input_ = std::exchange(other.input_, -1);
  return *this;
}

base::Result<Beside> Beside::start(const Options& options) {
  int input[2], output[2];
  if (::pipe2(input, O_CLOEXEC) != 0)
    return base::fail(Code::kIo, "cannot make a pipe");
  if (::pipe2(output, O_CLOEXEC) != 0) {
    ::close(input[0]);
    ::close(input[1]);
    return base::fail(Code::kIo, "cannot make a pipe");
  }
  const std::string self = base::self_path().string();
  std::vector<std::string> words = {self, kHelperWord};
  for (std::string& word : helper_arguments(options))
    words.push_back(std::move(word));
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  Beside beside;
  const int error =
      ::posix_spawn(&beside.pid_, self.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(input[0]);
  ::close(output[1]);
  beside.input_ = input[1];
  if (error != 0) {
    beside.pid_ = -1;
    ::close(output[0]);
    return base::fail(
        Code::kIo, std::string("cannot start the sampling process: ") + std::strerror(error), self);
  }

  const std::string answer = read_answer(output[0]);
  ::close(output[0]);
  if (answer.find("ready\n") != std::string::npos)
    return beside;
  beside.stop();
  constexpr std::string_view kUnavailable = "unavailable ";
  const auto line = answer.find(kUnavailable);
  if (line == std::string::npos)
    return base::fail(Code::kToolMissing, "nothing on the device can be sampled");
  const auto reason = line + kUnavailable.size();
  return base::fail(Code::kToolMissing, answer.substr(reason, answer.find('\n', line) - reason));
}

bool Beside::stop() {
  if (pid_ < 0)
    return true;
  ::close(std::exchange(input_, -1));
  int status = 0;
  for (int tries = 0; tries < 1500;
       ++tries) {  // what the hardware holds must be decoded: fifteen seconds at most
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) {
      pid_ = -1;
      return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return false;
}

}  // namespace rangescope::sample
