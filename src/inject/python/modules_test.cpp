// The walk over frames that are none: whatever lies there, it ends, and reads nothing that is not
// there. Real frames: tests/modules.
#include "inject/python/modules.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace rangescope::inject::python {
namespace modules_test {

/// The thread-specific key that is made next. Modules live as long as the process, and so do their
/// keys: here they would use up all that a process may have.
class NextKey {
 public:
  NextKey() {
    pthread_key_create(&key_, nullptr);
    pthread_key_delete(key_);
  }
  NextKey(const NextKey&) = delete;
  NextKey& operator=(const NextKey&) = delete;
  ~NextKey() { pthread_key_delete(key_); }

 private:
  pthread_key_t key_{};
};

/// A process as CPython 3.12 lays it out: a thread, frames of Module._call_impl, a module in each,
/// and their names, in one piece of memory, as words.
class Image {
 public:
  static constexpr std::size_t kWords = 4096;
  explicit Image(std::size_t modules) {
    python.minor = 12;
    python.fields = wire::cpython::kFields[12 - wire::cpython::kFirst];
    python.code_type = at(kCodeType);
    python.cell_type = at(kCellType);
    python.text_type = at(kTextType);
    words[kThread + 56 / 8] = at(kCframe);
    words[kThread + 136 / 8] = 1;
    text(kName, "Module._call_impl");
    text(kFile, "/usr/lib/python3/dist-packages/torch/nn/modules/module.py");
    text(kModules, "_modules");
    words[kCode + 1] = at(kCodeType);
    words[kCode + 14] = at(kFile);
    words[kCode + 16] = at(kName);
    put(kType + 24 / 8, at(kTypeName));
    put(kType + 168 / 8, 0);
    put(kType + 288 / 8, 16);
    std::memcpy(&words[kTypeName], "torch.Layer", 12);
    std::size_t before = kCframe;  // cframe's first word leads to the innermost
    for (std::size_t i = modules; i-- > 0;) {
      const std::size_t frame = kFrames + i * 16, self = kSelves + i * 4,
                        dictionary = kDictionaries + i * 32;
      words[before == kCframe ? kCframe : before + 1] = at(frame);
      before = frame;
      words[frame] = at(kCode);
      words[frame + 7] = 0x1000 + i;
      words[frame + 9] = at(self);
      words[self + 1] = at(kType);
      words[self + 2] = at(dictionary);
      // {"_modules": {"m<i>": the next}}
      map(dictionary, at(kModules), at(dictionary + 16));
      if (i + 1 < modules) {
        text(kTexts + i * 16, ("m" + std::to_string(i)).c_str());
        map(dictionary + 16, at(kTexts + i * 16), at(kSelves + (i + 1) * 4));
      }
    }
  }

  /// Its frames are those of a function that is told apart by what its argument holds.
  void of_batches() {
    text(kName, "Runner.run");
    words[kName + 7] = words[kName + 8] = 0;
    for (std::size_t i = 0; i < 16; ++i)
      words[kFrames + i * 16 + 10] = at(kSelves);
    put(kType + 168 / 8, 1 << 24 | 1 << 29);  // numbers and dictionaries both
    chosen = "other|prefill|decode|mixed=*Runner.run@1._modules";
  }

  /// Python has ended and begun anew: where the text "_modules" was lies another one, and the names
  /// are others.
  void begin_anew() {
    text(kModules, "_buffers");
    text(kNewModules, "_modules");
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t dictionary = kDictionaries + i * 32;
      words[dictionary + 6 + 3] = 2;
      words[dictionary + 6 + 7] = at(kNewModules);
      words[dictionary + 6 + 8] = std::exchange(words[dictionary + 6 + 6], at(kNothing));
      if (i == 2)
        continue;
      const std::size_t name = kTexts + i * 16 + 8;
      text(name, ("n" + std::to_string(i)).c_str());
      words[dictionary + 16 + 6 + 5] = at(name);
    }
  }

  struct Life {
    std::int64_t after_ns = 0;
    bool launch_between = false;  ///< by the same thread, when Python had ended
  };
  /// What is told of one launch; with `second`, of one in Python's second life.
  std::string walk(const std::optional<Life>& second = std::nullopt) {
    const NextKey key;
    std::string told, functions = chosen, off = "off";
    Modules modules(
        [](void* user, std::uint32_t around, const char* name, const char* type, bool) {
          *static_cast<std::string*>(user) +=
              std::to_string(around) + ":" + name + ":" + type + " ";
          return around + 1;
        },
        &told);
    modules.interpreter() = python;
    if (!functions.empty())
      modules.functions().choose(off.data(), functions.data());
    auto* thread = Modules::new_thread();
    Here here = modules.here(*thread, at(kThread), 1);
    if (second) {
      told.clear();
      begin_anew();
      if (second->launch_between) {
        EXPECT_EQ(modules.here(*thread, 0, 1).module, 0u);
      }
      here = modules.here(*thread, at(kThread), 1 + second->after_ns);
    }
    Modules::end_thread(thread);
    return told + std::to_string(here.module) + (modules.untold() > 0 ? " untold" : "");
  }

  [[nodiscard]] std::uint64_t at(std::size_t word) const {
    return reinterpret_cast<std::uint64_t>(&words[word]);
  }

  static constexpr std::size_t kThread = 16, kCframe = 64, kCode = 80, kName = 128, kFile = 144,
                               kModules = 176, kNothing = 4, kNewModules = 188, kType = 200,
                               kTypeName = 240, kCodeType = 250, kCellType = 251, kTextType = 252,
                               kFrames = 256, kSelves = 1280, kTexts = 1792, kDictionaries = 2304;
  std::string chosen;
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(kWords, 0);
  Interpreter python;

 private:
  void put(std::size_t word, std::uint64_t value) { words[word] = value; }
  void text(std::size_t word, const char* characters) {
    words[word + 1] = at(kTextType);
    words[word + 2] = std::strlen(characters);
    words[word + 4] = (1 | 1 << 3 | 1 << 4) << 2;
    std::memcpy(&words[word + 5], characters, std::strlen(characters));
  }
  void map(std::size_t word, std::uint64_t key, std::uint64_t value) {
    words[word + 4] = at(word + 6);
    words[word + 6 + 1] = 3 << 8 | 1 << 16;  // 8 bytes of indices, keys are texts
    words[word + 6 + 3] = 1;
    words[word + 6 + 5] = key;
    words[word + 6 + 6] = value;
  }
};

TEST(PythonModules, ChainsAndTheirNames) {
  EXPECT_EQ(Image(3).walk(), "0::Layer 1:m0:Layer 2:m1:Layer 3");
  EXPECT_EQ(Image(0).walk(), "0");
}

TEST(PythonModules, FramesThatGoRoundAreNotTold) {
  Image image(3);
  image.words[Image::kFrames + 1] = image.at(Image::kFrames + 2 * 16);
  EXPECT_EQ(image.walk(), "0 untold");
}

TEST(PythonModules, AModuleThatNoneHoldsHasItsTypeAlone) {
  Image image(3);
  image.words[Image::kDictionaries + 16 + 4] = 0;
  EXPECT_EQ(image.walk(), "0::Layer 1::Layer 2:m1:Layer 3");
}

TEST(PythonModules, NothingThatLayWhereAnEndedPythonHadItIsTrusted) {
  constexpr std::int64_t kMuchLater_ns = 2'000'000'000;
  const std::string now = "1:n0:Layer 2:n1:Layer 3";
  EXPECT_EQ(Image(3).walk(Image::Life{kMuchLater_ns, false}), now);
  EXPECT_EQ(Image(3).walk(Image::Life{10, true}), now);
}

TEST(PythonModules, ABatchIsNamedByWhatItHolds) {
  Image image(3);
  image.of_batches();
  const std::size_t items = Image::kDictionaries + 16, number = Image::kSelves + 4;
  image.words[number + 2] = 1 << 3;  // one digit
  image.words[items + 2] = 0;        // as a number that is none
  for (const auto& [tokens, name] : {std::pair(1, "decode"), {700, "prefill"}}) {
    image.words[number + 3] = static_cast<std::uint64_t>(tokens);
    image.words[items + 1] = image.at(Image::kType);
    image.words[items + 2] = 5 << 3;  // of a dictionary it is how many it has
    EXPECT_EQ(image.walk(), "0::" + std::string(name) + " 1");
  }
  image.words[items + 6 + 6] = image.at(Image::kName);
  EXPECT_EQ(image.walk(), "0::other 1");
}

/// A page that no one may read lies behind the image; words become addresses near and far, sizes,
/// and noise.
void attack(bool batches) {
  std::mt19937_64 random(20);
  void* forbidden = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(forbidden, MAP_FAILED);
  std::size_t untold = 0, unlike = 0;
  const auto make = [&] {
    Image image(12);
    if (batches)
      image.of_batches();
    return image;
  };
  const std::string whole = make().walk();
  for (int round = 0; round < 5000; ++round) {
    Image image = make();
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
      std::uint64_t& word =
          image.words[Image::kThread + random() % (Image::kWords - Image::kThread)];
      std::uint64_t* where = &word;
      if (random() % 2 == 0)  // where something is
        while (*where == 0)
          where = &image.words[Image::kThread + random() % (Image::kWords - Image::kThread)];
      switch (random() % 6) {
        case 0: *where = random(); break;
        case 1:
          *where = reinterpret_cast<std::uint64_t>(forbidden) + random() % 8192 / 8 * 8;
          break;
        case 2: *where = image.at(random() % Image::kWords); break;
        case 3: *where ^= std::uint64_t{1} << random() % 64; break;
        case 4: *where = ~std::uint64_t{0} - random() % 64; break;
        default: *where = random() % 5000; break;
      }
    }
    const std::string told = image.walk();
    untold += told.ends_with("untold") ? 1 : 0;
    unlike += told != whole ? 1 : 0;
  }
  munmap(forbidden, 4096);
  EXPECT_GT(untold, 200u);
  EXPECT_GT(unlike, untold);
}

TEST(PythonModules, WhateverLiesThereTheWalkEnds) {
  attack(false);
}
TEST(PythonModules, WhateverABatchHoldsTheWalkEnds) {
  attack(true);
}

}  // namespace modules_test
}  // namespace rangescope::inject::python
