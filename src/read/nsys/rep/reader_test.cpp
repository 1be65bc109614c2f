#include "read/nsys/rep/reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/fs.hpp"
#include "base/nsight.hpp"
#include "base/source_dir.hpp"

namespace rangescope::read::nsys_rep {
namespace reader_test {

namespace fs = std::filesystem;
const std::string kGolden = std::string(base::source_dir) + "/tests/golden/nsys/";

/// A folder with an installation of Nsight Systems made of shell scripts.
class NsysRep : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("nsys_rep_" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "target-linux-x64");
    fs::create_directories(folder_ / "host-linux-x64");
    ::unsetenv("RANGESCOPE_NSYS");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text, bool executable = false) {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    if (executable)
      fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  /// Answers --version, notes each export in `log`, and copies a recorded export to where it should
  /// go.
  std::string nsys(const std::string& version, const std::string& instead = {}) {
    return file("target-linux-x64/nsys",
                "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'NVIDIA Nsight Systems version " +
                    version +
                    "-abc'; exit 0; fi\n"
                    "echo \"$@\" >> '" +
                    folder_.string() + "/log'\n" + instead +
                    "for a; do case $a in --output=*) cp '" + kGolden +
                    "zoo.sqlite' \"${a#--output=}\";; esac; done\n",
                true);
  }
  std::size_t exports() {
    const auto log = base::read_file(folder_ / "log");
    return log ? static_cast<std::size_t>(std::count(log->begin(), log->end(), '\n')) : 0;
  }
  std::string read(const std::string& path, const std::string& tool) {
    Options options;
    options.nsys_path = tool;
    const auto session = kReader.read(path, options);
    if (!session)
      return base::to_string(session.error());
    return std::to_string(session->kernels.size()) + " kernels from " +
           session->sources.at(0).format + ' ' + session->sources.at(0).path;
  }

  fs::path folder_;
};

TEST_F(NsysRep, ExportsOnceAndKeepsTheResultUntilTheFileChanges) {
  const std::string tool = nsys("2025.3.1.90"),
                    report = file("x.nsys-rep", "NVIDIA Tegra Profiler Report 2024@6@2@225-246");
  EXPECT_EQ(read(report, tool), "51 kernels from nsys-rep " + report);
  EXPECT_EQ(read(report, tool), "51 kernels from nsys-rep " + report);
  EXPECT_EQ(exports(), 1u);
  std::size_t kept = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (!entry.path().filename().string().starts_with("x.nsys-rep.rangescope-"))
      continue;
    ++kept;
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  EXPECT_EQ(kept, 1u);
  file("x.nsys-rep", "NVIDIA Tegra Profiler Report 2024@6@2@225-246 longer");
  EXPECT_EQ(read(report, tool), "51 kernels from nsys-rep " + report);
  EXPECT_EQ(exports(), 2u);
}

TEST_F(NsysRep, TooOldNsysIsToldByTheVersionInTheFile) {
  const std::string tool = nsys("2022.4.2.1"),
                    report = file("x.nsys-rep", "NVIDIA Tegra Profiler Report 2024@6@2@225-246");
  EXPECT_EQ(read(report, tool),
            report +
                ": only Nsight Systems can read this report, and it was written by 2024.6.2; " +
                tool +
                " is 2022.4.2\nhint: Install Nsight Systems 2024.6.2 or newer "
                "(https://developer.nvidia.com/nsight-systems) and give it with "
                "RANGESCOPE_NSYS=/path/to/nsys,"
                " or give the SQLite export of this file, made where there is one: nsys export "
                "--type sqlite "
                "x.nsys-rep");
  EXPECT_EQ(exports(), 0u);
}

TEST_F(NsysRep, TooOldNsysIsToldByItsOwnError) {
  const std::string tool = nsys("2023.1.1.1",
                                "echo 'Report was created in Nsight Systems version "
                                "(2023.3.1.92-x), newer than your current version'; exit 1\n");
  const std::string report = file("x.qdrep", "NVIDIA Tegra Profiler Report 1.");
  EXPECT_EQ(read(report, tool),
            report +
                ": nsys 2023.1.1 is too old for this report, which 2023.3.1 wrote\nhint: Install "
                "Nsight Systems 2023.3.1 or newer "
                "(https://developer.nvidia.com/nsight-systems) and give it"
                " with RANGESCOPE_NSYS=/path/to/nsys.");
}

TEST_F(NsysRep, MissingToolIsNamed) {
  const std::string report = file("x.nsys-rep", "NVIDIA Tegra Profiler Report 2024@6@2@225-246");
  EXPECT_EQ(read(report, "/nowhere/nsys"),
            "/nowhere/nsys: no such program\nhint: Give the path of the nsys executable.");
}

TEST_F(NsysRep, FailedExportLeavesNothingBehind) {
  const std::string tool = nsys("2025.3.1.90", "echo 'broken pipe'; exit 3\n"),
                    report = file("x.nsys-rep", "NVIDIA Tegra Profiler Report 2024@6@2@2-2");
  EXPECT_EQ(read(report, tool), report + ": nsys export failed: exit code 3, it said: broken pipe");
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.path().string().find("rangescope-"), std::string::npos);
}

TEST_F(NsysRep, StreamGoesThroughTheImporterOfItsVersion) {
  const std::string stream =
      file("x.qdstrm", "U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f");
  const std::string other = nsys("2025.3.1.90");
  file("host-linux-x64/QdstrmImporter", "#!/bin/sh\ncp \"$2\" \"$4\"\n", true);
  EXPECT_NE(read(stream, other)
                .find("only the importer of Nsight Systems can read this stream, and it was "
                      "written by 2022.4.2"),
            std::string::npos);
  EXPECT_EQ(read(stream, nsys("2022.4.2.1")), "51 kernels from nsys-rep " + stream);
  // that of 2020.4.3 changes the extension
  file("x.qdstrm", "U3w[END]NVIDIA Nsight Systems Stream 2020.4.3.7-10543b6");
  file("host-linux-x64/QdstrmImporter", "#!/bin/sh\ncp \"$2\" \"${4%.*}.qdrep\"\n", true);
  EXPECT_EQ(read(stream, nsys("2020.4.3.7")), "51 kernels from nsys-rep " + stream);
  file("x.qdstrm", "U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f");
  fs::remove(folder_ / "host-linux-x64/QdstrmImporter");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() == ".sqlite")
      fs::remove(entry.path());
  }
  EXPECT_NE(read(stream, nsys("2022.4.2.1")).find("has no QdstrmImporter"), std::string::npos);
}

TEST_F(NsysRep, ImporterIsFoundWhereDebianPutsIt) {
  // /usr/bin/nsys -> /usr/lib/nsight-systems/bin/nsys ->
  // /usr/lib/x86_64-linux-gnu/nsight-systems/.../nsys
  const fs::path usr = folder_ / "usr";
  for (const char* folder : {"bin",
                             "lib/nsight-systems/bin",
                             "lib/nsight-systems/host-linux-x64",
                             "lib/x86_64-linux-gnu/nsight-systems/target-linux-x64"})
    fs::create_directories(usr / folder);
  file("usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys", "#!/bin/sh\n", true);
  const std::string importer =
      file("usr/lib/nsight-systems/host-linux-x64/QdstrmImporter", "#!/bin/sh\n", true);
  fs::create_symlink("../x86_64-linux-gnu/nsight-systems/target-linux-x64",
                     usr / "lib/nsight-systems/target-linux-x64");
  fs::create_symlink("../target-linux-x64/nsys", usr / "lib/nsight-systems/bin/nsys");
  fs::create_symlink("../lib/nsight-systems/bin/nsys", usr / "bin/nsys");
  for (const char* nsys : {"bin/nsys", "lib/nsight-systems/bin/nsys"}) {
    const auto found = base::find_importer(usr / nsys);
    ASSERT_TRUE(found.has_value()) << nsys;
    EXPECT_EQ(found->string(), importer) << nsys;
  }
}

TEST_F(NsysRep, SniffsByContent) {
  const auto sniff = [](std::string_view head) {
    return kReader.sniff(std::as_bytes(std::span(head)), "x");
  };
  EXPECT_TRUE(sniff("NVIDIA Tegra Profiler Report 1."));
  EXPECT_TRUE(sniff("U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f"));
  EXPECT_FALSE(sniff("SQLite format 3"));
}

TEST(NsysVersion, IsFoundInWhatTheToolsPrint) {
  EXPECT_EQ(to_string(base::parse_version("NVIDIA Nsight Systems version 2022.4.2.1-df9881f")),
            "2022.4.2");
  EXPECT_EQ(to_string(base::parse_version("Report 2024@6@2@225-246")), "2024.6.2");
  EXPECT_EQ(base::parse_version("Profiler Report 1.").year, 0);
  EXPECT_EQ(base::parse_version("12024.1.2").year, 0);
  EXPECT_LT(base::parse_version("2023.12.1"), base::parse_version("2024.1.1"));
}

TEST_F(NsysRep, TooOldNsysThatEndsWithAnExceptionIsToldByTheVersionInside) {
  const std::string tool =
      nsys("2022.4.2.1", "echo 'terminate called after throwing an instance of'; exit 134\n");
  const std::string report =
      file("x.nsys-rep",
           "NVIDIA Tegra Profiler Report 1." + std::string(500, '.') +
               "CUPTI 2022.1.1.9-x, 2023.3.1.92-233133147223v0, made on 2025.11.22.1 by");
  const auto session = [&] {
    Options options;
    options.nsys_path = tool;
    return kReader.read(report, options);
  }();
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, base::Code::kToolMissing);
  EXPECT_EQ(session.error().what, "nsys 2022.4.2 is too old for this report, which 2023.3.1 wrote");
  EXPECT_NE(
      session.error().hint.find("2023.3.1 or newer (https://developer.nvidia.com/nsight-systems)"),
      std::string::npos);
}

TEST_F(NsysRep, ExportBesideAReportThatCannotBeOpenedIsReadAndNamed) {
  const std::string tool = nsys("2022.4.2.1"),
                    report = file("r.nsys-rep", "NVIDIA Tegra Profiler Report 2024@6@2@225");
  Options options;
  options.nsys_path = tool;
  EXPECT_FALSE(kReader.read(report, options));
  fs::copy_file(kGolden + "zoo.sqlite", folder_ / "r.sqlite");
  const auto session = kReader.read(report, options);
  ASSERT_TRUE(session);
  EXPECT_EQ(session->kernels.size(), 51u);
  const auto said =
      std::find_if(session->losses.begin(), session->losses.end(), [](const model::Loss& loss) {
        return loss.kind == "export_beside";
      });
  ASSERT_NE(said, session->losses.end());
  EXPECT_EQ(said->severity, model::Severity::kInfo);
  EXPECT_NE(said->detail.find("r.sqlite next to it"), std::string::npos);
}

}  // namespace reader_test
}  // namespace rangescope::read::nsys_rep
