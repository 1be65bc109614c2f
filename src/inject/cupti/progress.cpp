// Rounds that several runs of a program complete together (`--passes relaunch`): what a run leaves
// unfinished goes into a file, and the next run of the same program goes on with it.
//
// The file, of the same build of this library only: one line of text, `rangescope-progress 1
// LACKING DONE`: ranges that lack rounds, and passes taken in all runs together, by which the
// command line sees whether another run would help. Then for each range a SavedTarget and the bytes
// of its images. Only one process at a time has it: a program that measures in several processes at
// once is refused.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "inject/cupti/collector.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {

using counters::Multiplexer;

struct SavedTarget {
  std::uint64_t path;
  std::uint32_t context;  // in order of their making
  std::int32_t device;
  std::uint32_t kernels;  // 1: kernels one by one
  std::uint32_t launches;
  std::uint32_t first;
  std::uint32_t adopted;
  std::uint32_t given_up, unused;  // configurations that could not be begun, a bit each
  Multiplexer::Progress progress;
  struct {
    std::uint64_t ranges, pass, level, bytes;
  } images[counters::kMaxConfigurations];
};

struct SavedProgress {
  int file = -1;
  std::uint32_t count = 0;
  struct Item {
    SavedTarget target;
    Bytes images[counters::kMaxConfigurations];
  } items[counters::kMaxTargets];
};

namespace {

constexpr std::uint64_t kMostImage = 1ull << 31;

bool read_items(std::FILE* file, SavedProgress& saved) {
  char line[128];
  if (std::fgets(line, sizeof line, file) == nullptr) return true;  // the first run: empty
  if (std::strncmp(line, wire::kProgressHead, sizeof wire::kProgressHead - 1) != 0) return false;
  while (saved.count < counters::kMaxTargets) {
    auto& item = saved.items[saved.count];
    if (std::fread(&item.target, sizeof item.target, 1, file) != 1) return std::feof(file) != 0;
    if (item.target.progress.ranges > counters::kMaxRanges) return false;
    for (std::size_t k = 0; k < counters::kMaxConfigurations; ++k) {
      const std::uint64_t bytes = item.target.images[k].bytes;
      Bytes& image = item.images[k];
      if (bytes > kMostImage || !image.resize(bytes) ||
          std::fread(image.data(), 1, bytes, file) != bytes)
        return false;
    }
    item.target.adopted = 0;
    ++saved.count;
  }
  return true;
}

std::uint32_t index_of(const Collector& c, const Context& context) {
  return static_cast<std::uint32_t>(&context - c.contexts);
}

}  // namespace

bool load_progress(Collector& c, char* why, std::size_t why_bytes) {
  const int file = ::open(c.plan.resume, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::flock(file, LOCK_EX | LOCK_NB) != 0) {
    std::snprintf(why, why_bytes,
                  file < 0 ? "no hardware counters: the file of unfinished rounds cannot be opened"
                           : "no hardware counters in this process: another process of the program "
                             "collects them, and "
                             "passes can be spread over runs for one process only");
    if (file >= 0) ::close(file);
    return false;
  }
  void* memory = std::calloc(1, sizeof(SavedProgress));
  std::FILE* stream = ::fdopen(::dup(file), "rb");
  c.saved = static_cast<SavedProgress*>(memory);  // all zero is a valid one
  if (memory != nullptr) c.saved->file = file;
  const bool good = memory != nullptr && stream != nullptr && read_items(stream, *c.saved);
  if (stream != nullptr) std::fclose(stream);
  if (!good)
    std::snprintf(why, why_bytes, "no hardware counters: the file of unfinished rounds is damaged");
  return good;
}

void adopt(Collector& c, Context& context, std::uint32_t target) {
  if (c.saved == nullptr) return;
  for (std::uint32_t i = 0; i < c.saved->count; ++i) {
    auto& item = c.saved->items[i];
    SavedTarget& from = item.target;
    if (from.adopted != 0 || from.path != c.targets[target].path ||
        from.context != index_of(c, context) || from.device != context.device ||
        (from.kernels != 0) != context.kernels)
      continue;
    from.adopted = 1;
    c.targets[target].launches = from.launches;
    context.first[target] = from.first;
    if (context.profiler.give_up_all(from.given_up))
      context.mux->restart(static_cast<std::uint32_t>(context.profiler.passes()));
    if (context.profiler.given_up() != from.given_up) return;
    context.mux->go_on(target, from.progress);
    if (from.progress.pass == 0) return;
    for (std::size_t k = 0; k < counters::kMaxConfigurations; ++k) {
      Image& image = context.images[target][k];
      image.data = static_cast<Bytes&&>(item.images[k]);
      image.ranges = from.images[k].ranges;
      image.pass = from.images[k].pass;
      image.level = from.images[k].level;
    }
    return;
  }
}

void save_progress(Collector& c) {
  if (c.saved == nullptr) return;
  std::uint32_t lacking = 0;
  std::uint64_t done = 0;
  const auto count = [&](const Multiplexer::Progress& progress, std::size_t passes) {
    if (progress.rounds < c.plan.rounds) ++lacking;
    done += progress.rounds * passes + progress.pass * progress.ranges;
  };
  std::FILE* out = ::ftruncate(c.saved->file, 0) == 0 && ::lseek(c.saved->file, 0, SEEK_SET) == 0
                       ? ::fdopen(::dup(c.saved->file), "wb")
                       : nullptr;
  if (out == nullptr)
    return tell_loss("the rounds that are unfinished could not be kept for the next run");
  std::fprintf(out, "%s%-10u %-20llu\n", wire::kProgressHead, 0u, 0ull);  // filled in below
  for (std::size_t k = 0; k < c.context_count; ++k) {
    const Context& context = c.contexts[k];
    if (context.mux == nullptr) continue;
    for (std::uint32_t i = 0; i < c.target_count; ++i) {
      if (context.mux->tally(i).occurrences == 0) continue;
      SavedTarget to{};
      to.path = c.targets[i].path;
      to.context = static_cast<std::uint32_t>(k);
      to.device = context.device;
      to.kernels = context.kernels ? 1 : 0;
      to.launches = c.targets[i].launches;
      to.first = context.first[i];
      to.progress = context.mux->progress(i);
      to.given_up = context.profiler.given_up();
      for (std::size_t j = 0; j < counters::kMaxConfigurations; ++j) {
        const Image& image = context.images[i][j];
        to.images[j] = {image.ranges, image.pass, image.level,
                        to.progress.pass == 0 ? 0 : image.data.size()};
      }
      count(to.progress, context.profiler.passes());
      std::fwrite(&to, sizeof to, 1, out);
      for (std::size_t j = 0; j < counters::kMaxConfigurations; ++j) {
        if (to.images[j].bytes > 0)
          std::fwrite(context.images[i][j].data.data(), 1, to.images[j].bytes, out);
      }
    }
  }
  // Ranges that came before the profiler was ready, and not again.
  for (std::uint32_t i = 0; i < c.target_count; ++i) {
    bool known = false;
    for (std::size_t k = 0; k < c.context_count; ++k)
      known =
          known || (c.contexts[k].mux != nullptr && c.contexts[k].mux->tally(i).occurrences > 0);
    for (std::uint32_t k = 0; k < c.saved->count; ++k)
      known = known || c.saved->items[k].target.path == c.targets[i].path;
    if (!known) ++lacking;
  }
  // Ranges of earlier runs that did not come this time are kept as they were.
  for (std::uint32_t i = 0; i < c.saved->count; ++i) {
    const auto& item = c.saved->items[i];
    if (item.target.adopted != 0) continue;
    count(item.target.progress, 0);
    std::fwrite(&item.target, sizeof item.target, 1, out);
    for (const Bytes& image : item.images) {
      if (image.size() > 0) std::fwrite(image.data(), 1, image.size(), out);
    }
  }
  std::rewind(out);
  std::fprintf(out, "%s%-10u %-20llu\n", wire::kProgressHead, lacking,
               static_cast<unsigned long long>(done));
  if (std::fclose(out) != 0)
    tell_loss("the rounds that are unfinished could not be kept for the next run");
}

}  // namespace rangescope::inject::cupti
