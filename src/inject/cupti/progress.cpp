// Rounds that several runs of a program complete together (`--passes relaunch`): a run saves its
// unfinished rounds in a file, and the next run of the same program continues them.
//
// The file is valid only for the same build of this library. It starts with one line of text,
// `rangescope-progress 1 LACKING DONE`: the number of ranges that lack rounds, and the passes taken
// in all runs, by which the command line decides whether another run would help. Then come a
// SavedTarget and the bytes of its images for each range. Only one process at a time may use it: a
// program that measures in several processes at once is refused.
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
  std::uint32_t given_up, unused;  // configurations that could not begin, one bit each
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

using Item = SavedProgress::Item;

bool read_images(std::FILE* file, Item& item) {
  for (std::size_t k = 0; k < counters::kMaxConfigurations; ++k) {
    const std::uint64_t bytes = item.target.images[k].bytes;
    Bytes& image = item.images[k];
    if (bytes > kMostImage || !image.resize(bytes))
      return false;
    if (std::fread(image.data(), 1, bytes, file) != bytes)
      return false;
  }
  return true;
}

bool read_items(std::FILE* file, SavedProgress& saved) {
  char line[128];
  if (std::fgets(line, sizeof line, file) == nullptr)
    return true;  // the first run: empty
  if (std::strncmp(line, wire::kProgressHead, sizeof wire::kProgressHead - 1) != 0)
    return false;
  while (saved.count < counters::kMaxTargets) {
    Item& item = saved.items[saved.count];
    if (std::fread(&item.target, sizeof item.target, 1, file) != 1)
      return std::feof(file) != 0;
    if (item.target.progress.ranges > counters::kMaxRanges)
      return false;
    if (!read_images(file, item))
      return false;
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
  if (file < 0) {
    std::snprintf(
        why, why_bytes, "no hardware counters: the file of unfinished rounds cannot be opened");
    return false;
  }
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    std::snprintf(why,
                  why_bytes,
                  "no hardware counters in this process: another process of the program collects "
                  "them, and passes can be spread over runs for one process only");
    ::close(file);
    return false;
  }
  void* memory = std::calloc(1, sizeof(SavedProgress));
  std::FILE* stream = ::fdopen(::dup(file), "rb");
  c.saved = static_cast<SavedProgress*>(memory);  // all zeros is a valid object
  if (memory != nullptr)
    c.saved->file = file;
  const bool is_read = memory != nullptr && stream != nullptr && read_items(stream, *c.saved);
  if (stream != nullptr)
    std::fclose(stream);
  if (!is_read)
    std::snprintf(why, why_bytes, "no hardware counters: the file of unfinished rounds is damaged");
  return is_read;
}

namespace {

bool is_of(const SavedTarget& saved,
           const Collector& c,
           const Context& context,
           std::uint32_t target) {
  if (saved.path != c.targets[target].path || saved.context != index_of(c, context))
    return false;
  return saved.device == context.device && (saved.kernels != 0) == context.kernels;
}

}  // namespace

void adopt(Collector& c, Context& context, std::uint32_t target) {
  if (c.saved == nullptr)
    return;
  for (std::uint32_t i = 0; i < c.saved->count; ++i) {
    Item& item = c.saved->items[i];
    SavedTarget& saved = item.target;
    if (saved.adopted != 0 || !is_of(saved, c, context, target))
      continue;
    saved.adopted = 1;
    c.targets[target].launches = saved.launches;
    context.first[target] = saved.first;
    if (context.profiler.give_up_all(saved.given_up))
      context.mux->restart(static_cast<std::uint32_t>(context.profiler.passes()));
    if (context.profiler.given_up() != saved.given_up)
      return;
    context.mux->go_on(target, saved.progress);
    if (saved.progress.pass == 0)
      return;
    for (std::size_t k = 0; k < counters::kMaxConfigurations; ++k) {
      Image& image = context.images[target][k];
      image.data = static_cast<Bytes&&>(item.images[k]);
      image.ranges = saved.images[k].ranges;
      image.pass = saved.images[k].pass;
      image.level = saved.images[k].level;
    }
    return;
  }
}

namespace {

/// Writes the file of unfinished rounds, and sums up the figures of its head.
class ProgressFile {
 public:
  ProgressFile(std::FILE* out, std::uint32_t rounds) : out_(out), rounds_(rounds) { write_head(); }

  void write_target(const Collector& c, const Context& context, std::uint32_t target) {
    const Image* images = context.images[target];
    SavedTarget saved{};
    saved.path = c.targets[target].path;
    saved.context = index_of(c, context);
    saved.device = context.device;
    saved.kernels = std::uint32_t{context.kernels};
    saved.launches = c.targets[target].launches;
    saved.first = context.first[target];
    saved.progress = context.mux->progress(target);
    saved.given_up = context.profiler.given_up();
    for (std::size_t k = 0; k < counters::kMaxConfigurations; ++k) {
      const std::size_t bytes = saved.progress.pass == 0 ? 0 : images[k].data.size();
      saved.images[k] = {images[k].ranges, images[k].pass, images[k].level, bytes};
    }
    count(saved.progress, context.profiler.passes());
    std::fwrite(&saved, sizeof saved, 1, out_);
    for (std::size_t k = 0; k < counters::kMaxConfigurations; ++k) {
      const std::size_t bytes = saved.images[k].bytes;
      if (bytes > 0)
        std::fwrite(images[k].data.data(), 1, bytes, out_);
    }
  }

  /// A range of an earlier run, as it was. The passes of its complete rounds are not known.
  void write_unchanged(const Item& item) {
    count(item.target.progress, 0);
    std::fwrite(&item.target, sizeof item.target, 1, out_);
    for (const Bytes& image : item.images) {
      if (image.size() > 0)
        std::fwrite(image.data(), 1, image.size(), out_);
    }
  }

  /// A range without any pass.
  void count_unmeasured() { ++lacking_; }

  bool finish() {
    std::rewind(out_);
    write_head();
    return std::fclose(out_) == 0;
  }

 private:
  void count(const Multiplexer::Progress& progress, std::size_t passes) {
    if (progress.rounds < rounds_)
      ++lacking_;
    done_ += progress.rounds * passes + progress.pass * progress.ranges;
  }

  /// The same number of bytes each time.
  void write_head() {
    std::fprintf(out_,
                 "%s%-10u %-20llu\n",
                 wire::kProgressHead,
                 lacking_,
                 static_cast<unsigned long long>(done_));
  }

  std::FILE* out_;
  std::uint32_t rounds_;
  std::uint32_t lacking_ = 0;
  std::uint64_t done_ = 0;
};

bool was_counted(const Context& context, std::uint32_t target) {
  return context.mux != nullptr && context.mux->tally(target).occurrences > 0;
}

// The range was counted in this run, or saved by an earlier one. If not, it came only before the
// profiler was ready.
bool has_progress(const Collector& c, std::uint32_t target) {
  for (std::size_t k = 0; k < c.context_count; ++k)
    if (was_counted(c.contexts[k], target))
      return true;
  for (std::uint32_t k = 0; k < c.saved->count; ++k)
    if (c.saved->items[k].target.path == c.targets[target].path)
      return true;
  return false;
}

std::FILE* open_emptied(int file) {
  if (::ftruncate(file, 0) != 0 || ::lseek(file, 0, SEEK_SET) != 0)
    return nullptr;
  return ::fdopen(::dup(file), "wb");
}

}  // namespace

void save_progress(Collector& c) {
  constexpr const char* kNotSaved =
      "the rounds that are unfinished could not be kept for the next run";
  if (c.saved == nullptr)
    return;
  std::FILE* out = open_emptied(c.saved->file);
  if (out == nullptr)
    return tell_loss(kNotSaved);
  ProgressFile file(out, c.plan.rounds);
  for (std::size_t k = 0; k < c.context_count; ++k) {
    for (std::uint32_t i = 0; i < c.target_count; ++i)
      if (was_counted(c.contexts[k], i))
        file.write_target(c, c.contexts[k], i);
  }
  for (std::uint32_t i = 0; i < c.target_count; ++i)
    if (!has_progress(c, i))
      file.count_unmeasured();
  for (std::uint32_t i = 0; i < c.saved->count; ++i) {
    const Item& item = c.saved->items[i];
    if (item.target.adopted == 0)
      file.write_unchanged(item);
  }
  if (!file.finish())
    tell_loss(kNotSaved);
}

}  // namespace rangescope::inject::cupti
