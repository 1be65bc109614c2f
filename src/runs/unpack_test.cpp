// What an archive from a stranger may try. Each member is written as it stands, so that the names are really in it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/fs.hpp"
#include "runs/manifest.hpp"
#include "runs/pack.hpp"

namespace rangescope::runs {
namespace unpack_test {

namespace fs = std::filesystem;

struct Entry {
  std::string name, bytes;
  char type = '0';
};

class Unpack : public testing::Test {
 protected:
  Unpack() {
    std::string pattern = (fs::temp_directory_path() / "rangescope-unpack-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    Manifest manifest;
    manifest.id = "run";
    EXPECT_TRUE(write_manifest(folder_, manifest).has_value());
    manifest_ = base::read_file(folder_ / "manifest.json").value();
    fs::remove(folder_ / "manifest.json");
  }
  ~Unpack() override { fs::remove_all(folder_); }

  /// One of a POSIX tar (ustar): a library would not write such names.
  static std::string header(const Entry& entry) {
    std::string out(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) { out.replace(at, text.size(), text); };
    const auto slash = entry.name.size() > 100 ? entry.name.rfind('/', 155) : std::string::npos;
    put(0, entry.name.substr(slash + 1));
    if (slash != std::string::npos) put(345, entry.name.substr(0, slash));
    put(100, "0000600");
    put(108, "0000000");
    put(116, "0000000");
    char size[12];
    std::snprintf(size, sizeof size, "%011zo", entry.bytes.size());
    put(124, size);
    put(136, "00000000000");
    out[156] = entry.type;
    put(257, std::string("ustar\00000", 8));
    put(148, "        ");
    unsigned sum = 0;
    for (const char c : out) sum += static_cast<unsigned char>(c);
    std::snprintf(size, sizeof size, "%06o", sum);
    put(148, std::string(size) + '\0');
    return out;
  }
  static std::string tar(const std::vector<Entry>& entries) {
    std::string bytes;
    for (const Entry& entry : entries) {
      bytes += header(entry);
      bytes += entry.bytes;
      bytes.append((512 - entry.bytes.size() % 512) % 512, '\0');
    }
    return bytes + std::string(1024, '\0');
  }
  fs::path archive(const std::string& bytes) {
    std::string packed(ZSTD_compressBound(bytes.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 3));
    const fs::path path = folder_ / "x.tar.zst";
    EXPECT_TRUE(base::write_file(path, packed).has_value());
    return path;
  }
  /// Everything below the root, hidden or not.
  std::vector<std::string> found() {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "root", error))
      names.push_back(entry.path().lexically_relative(folder_ / "root").string());
    std::sort(names.begin(), names.end());
    return names;
  }
  void refused(const std::vector<Entry>& entries) {
    const auto done = unpack_run(archive(tar(entries)), folder_ / "root");
    ASSERT_FALSE(done.has_value()) << entries.back().name << " of type " << entries.back().type;
    EXPECT_EQ(done.error().code, base::Code::kBadData) << base::to_string(done.error());
    EXPECT_EQ(found(), std::vector<std::string>{}) << entries.back().name;
  }

  fs::path folder_;
  std::string manifest_;
};

TEST_F(Unpack, NamesThatLeadOutAreRefusedAndLeaveNothing) {
  const fs::path outside = folder_ / "outside";
  std::ofstream(outside) << "mine";
  const Entry good{"run/manifest.json", manifest_};
  // `run/` + an absolute path: joined to a folder, that is the absolute path.
  refused({good, {"run/" + outside.string(), "evil"}});
  refused({good, {"run//etc/rangescope-test", "evil"}});
  for (const char* name : {"run/../outside", "../outside", "run/./x", "run/a/../../../outside", "/etc/rangescope-test",
                           "run//x", "run/a//x", "other/x", "run", "run/x/", "run/a\x1b[2J", ".run/x", "-run/x", ""})
    refused({good, {name, "evil"}});
  refused({{".run/manifest.json", manifest_}});
  refused({{"../manifest.json", manifest_}});
  refused({{"manifest.json", manifest_}});
  EXPECT_EQ(base::read_file(outside).value(), "mine");
  EXPECT_FALSE(fs::exists("/etc/rangescope-test"));
}

TEST_F(Unpack, LinksDevicesAndTwiceTheSameAreRefused) {
  const Entry good{"run/manifest.json", manifest_};
  for (const char type : {'1', '2', '3', '4', '6', 'x', 'L'}) refused({good, {"run/x", "", type}});
  refused({good, good});
  refused({good, {"run/a", "1"}, {"run/a", "2"}});
  refused({good, {"run/a", "1"}, {"run/a/b", "2"}});
  refused({good, {"run/a/b", "1"}, {"run/a", "2"}});
  refused({{"run/no-manifest", "x"}});
  refused({{"run/manifest.json", "{}"}});
}

TEST_F(Unpack, ABombIsRefusedByItsSizeAndByItsCount) {
  const Entry good{"run/manifest.json", manifest_};
  std::string bomb = tar({good, {"run/zeros", std::string(std::size_t{257} << 20, '\0')}});
  const fs::path path = archive(bomb);
  ASSERT_LT(fs::file_size(path), 100'000u);
  EXPECT_EQ(unpack_run(path, folder_ / "root").error().code, base::Code::kBadData);
  EXPECT_EQ(found(), std::vector<std::string>{});
  bomb.clear();
  for (const UnpackLimits limits : {UnpackLimits{.bytes = 1'000'000, .members = 3}}) {
    const auto many = archive(tar({good, {"run/1", ""}, {"run/2", ""}, {"run/3", ""}}));
    EXPECT_EQ(unpack_run(many, folder_ / "root", limits).error().code, base::Code::kBadData);
    EXPECT_EQ(found(), std::vector<std::string>{});
    EXPECT_TRUE(unpack_run(archive(tar({good, {"run/1", ""}, {"run/2", ""}})), folder_ / "root", limits).has_value());
  }
  // What stands behind the end of the tar is not decoded without end.
  const auto tail = archive(tar({{"run2/manifest.json", manifest_}}) + std::string(std::size_t{64} << 20, '\0'));
  EXPECT_EQ(unpack_run(tail, folder_ / "root").error().code, base::Code::kBadData);
}

TEST_F(Unpack, WhatIsThereStays) {
  const fs::path root = folder_ / "root";
  fs::create_directories(root);
  fs::create_directories(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", root / "run");
  const fs::path good = archive(tar({{"run/manifest.json", manifest_}, {"run/a/b", "text"}}));
  EXPECT_EQ(unpack_run(good, root).error().code, base::Code::kUsage);
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
  fs::remove(root / "run");
  ASSERT_TRUE(unpack_run(good, root).has_value());
  EXPECT_EQ(found(), (std::vector<std::string>{"run", "run/a", "run/a/b", "run/manifest.json"}));
  struct stat status {};
  ASSERT_EQ(stat((root / "run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat((root / "run/a/b").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(Unpack, OfTwoAtOnceOneWinsAndTheOtherSaysSo) {
  const fs::path root = folder_ / "root";
  const fs::path good = archive(tar({{"run/manifest.json", manifest_}, {"run/data", std::string(3'000'000, 'x')}}));
  for (int round = 0; round < 20; ++round) {
    std::vector<base::Result<Packed>> done(2, base::Result<Packed>(Packed{}));
    std::thread other([&] { done[1] = unpack_run(good, root); });
    done[0] = unpack_run(good, root);
    other.join();
    ASSERT_NE(done[0].has_value(), done[1].has_value());
    const auto& loser = done[0] ? done[1] : done[0];
    EXPECT_EQ(loser.error().code, base::Code::kUsage);
    EXPECT_EQ(found(), (std::vector<std::string>{"run", "run/data", "run/manifest.json"}));
    EXPECT_EQ(fs::file_size(root / "run/data"), 3'000'000u);
    fs::remove_all(root);
  }
}

TEST_F(Unpack, APipeIsNoArchive) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(unpack_run(folder_ / "pipe", folder_ / "root").has_value());
}

}  // namespace unpack_test
}  // namespace rangescope::runs
