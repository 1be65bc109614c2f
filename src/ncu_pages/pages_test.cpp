#include "ncu_pages/pages.hpp"

#include <protozero/pbf_writer.hpp>

#include "base/text.hpp"
#include "read/ncu/report/golden_test.hpp"

namespace rangescope::ncu_pages {
namespace pages_test {

PageOptions recorded(Page page, bool csv) {
  PageOptions options;
  options.page = page;
  options.csv = csv;
  options.number_format = "en";  // the recordings were made under en_US
  return options;
}

std::string print(const std::string& name, const PageOptions& options) {
  const std::string bytes = golden(name + ".ncu-repz");
  auto file = File::parse(bytes, name);
  EXPECT_TRUE(file.has_value());
  std::string text;
  std::vector<model::Loss> losses;
  const auto done = print_pages(
      *file, options, [&](std::string_view piece) { text += piece; }, losses);
  EXPECT_TRUE(done.has_value()) << (done ? "" : base::to_string(done.error()));
  EXPECT_TRUE(losses.empty());
  return text;
}

/// The first line that differs, for a readable failure; "" when the texts are equal.
std::string first_difference(const std::string& expected, const std::string& actual) {
  const auto a = base::split(expected, '\n'), b = base::split(actual, '\n');
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string_view left = i < a.size() ? a[i] : "(end)", right = i < b.size() ? b[i] : "(end)";
    if (left == right) continue;
    std::size_t at = 0;
    while (at < left.size() && at < right.size() && left[at] == right[at]) ++at;
    const std::size_t from = at > 60 ? at - 60 : 0;
    return "line " + std::to_string(i + 1) + " byte " + std::to_string(at) + "\n  want ..." +
           std::string(left.substr(from, 160)) + "\n  got  ..." + std::string(right.substr(from, 160));
  }
  return {};
}

/// The one difference that is left: of four derived metrics whose unit is both thread and inst, ncu prints now this and
/// now that (k_kern says thread, k_roof of the same version inst).
std::string one_unit(std::string text, const std::string& name) {
  if (name != "k_roof") return text;
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  std::string units = text.substr(first, second - first);
  const std::string eight = R"("inst","inst","inst","inst","inst","inst","inst","inst")";
  const std::size_t at = units.find(eight);
  EXPECT_NE(at, std::string::npos);
  units.replace(at, eight.size(), R"("thread","thread","inst","thread","thread","inst","inst","inst")");
  return text.substr(0, first) + units + text.substr(second);
}

TEST(NcuPages, RawCsvIsByteEqual) {
  for (const std::string& name : golden_reports()) {
    EXPECT_EQ(first_difference(one_unit(golden(name + "_raw.csv.zst"), name), print(name, recorded(Page::kRaw, true))),
              "")
        << name;
  }
}

TEST(NcuPages, RawCsvInBaseUnitsIsByteEqual) {
  for (const std::string& name : golden_reports()) {
    if (name.front() == 'l') continue;
    PageOptions options = recorded(Page::kRaw, true);
    options.base_units = options.fp = true;
    EXPECT_EQ(first_difference(one_unit(golden(name + "_raw_base.csv.zst"), name), print(name, options)), "") << name;
  }
}

TEST(NcuPages, DetailsCsvIsByteEqual) {
  for (const std::string& name : golden_reports()) {
    EXPECT_EQ(first_difference(golden(name + "_details.csv.zst"), print(name, recorded(Page::kDetails, true))), "")
        << name;
  }
}

TEST(NcuPages, DetailsCsvInBaseUnitsIsByteEqual) {
  for (const std::string& name : golden_reports()) {
    if (name.front() == 'l') continue;
    PageOptions options = recorded(Page::kDetails, true);
    options.base_units = options.fp = true;
    EXPECT_EQ(first_difference(golden(name + "_details_base.csv.zst"), print(name, options)), "") << name;
  }
}

TEST(NcuPages, DetailsTextIsByteEqual) {
  for (const std::string& name : golden_reports()) {
    if (name.front() == 'l') continue;
    EXPECT_EQ(first_difference(golden(name + "_details.txt.zst"), print(name, recorded(Page::kDetails, false))), "")
        << name;
  }
}

template <class Build>
std::string message(Build&& build) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  build(writer);
  return bytes;
}

std::string u32(std::size_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
  return bytes;
}

/// A report of one kernel without NVTX, whose one section shows the metrics that `shown` stands for. The metric
/// dram__bytes.sum has a value, and an instance for each of `ids`.
std::string report_of(const std::string& shown, const std::string& names, const std::vector<std::uint64_t>& ids = {}) {
  using Writer = protozero::pbf_writer;
  const auto metric = [](std::uint32_t name, auto&& value) {
    return message([&](Writer& w) {
      w.add_uint32(1, name);
      w.add_message(2, message(value));
    });
  };
  const std::string kernel = message([&](Writer& w) {
    w.add_string(6, "k");
    w.add_message(13, metric(0, [&](Writer& v) { v.add_string(1, names); }));
    w.add_message(13, message([&](Writer& m) {
                    m.add_uint32(1, 1);
                    m.add_message(2, message([](Writer& v) { v.add_double(3, 128); }));
                    for (const std::uint64_t id : ids) {
                      m.add_message(3, message([&](Writer& instance) {
                                      instance.add_message(1, message([&](Writer& v) { v.add_uint64(5, id); }));
                                      instance.add_message(2, message([](Writer& v) { v.add_double(3, 64); }));
                                    }));
                    }
                  }));
    w.add_message(17, message([&](Writer& section) {
                    section.add_string(1, "section0");
                    section.add_string(2, "Command line profiler metrics");
                    section.add_message(4, message([&](Writer& header) {
                                          header.add_message(2, message([&](Writer& m) { m.add_string(1, shown); }));
                                        }));
                  }));
  });
  const std::string payload = u32(kernel.size()) + kernel;
  const std::string block = message([&](Writer& w) {
    w.add_uint32(2, 1);
    w.add_message(4, message([&](Writer& table) {
                    table.add_string(1, shown);
                    table.add_string(1, "dram__bytes.sum");
                  }));
    w.add_uint64(5, payload.size());
  });
  const std::string header = message([](Writer& w) { w.add_uint32(1, 7); });
  return std::string("NVR\0", 4) + u32(header.size()) + header + u32(block.size()) + block + payload;
}

TEST(NcuPages, MetricsUnderANameThatStandsForSeveralAreListed) {
  const std::string bytes = report_of("regex:dram__bytes.*", "dram__bytes.sum");
  const auto file = File::parse(bytes, "built");
  ASSERT_TRUE(file);
  PageOptions options;
  options.base_units = true;
  std::string text;
  std::vector<model::Loss> losses;
  ASSERT_TRUE(print_pages(
      *file, options, [&](std::string_view piece) { text += piece; }, losses));
  EXPECT_NE(text.find("dram__bytes.sum"), std::string::npos) << text;
  EXPECT_NE(text.find("128"), std::string::npos) << text;
  EXPECT_EQ(text.find("regex:"), std::string::npos) << text;
}

/// Reports of 2025 hold PM samples, whose ids are times: no instruction stands there.
TEST(NcuPages, TimesOfSamplesAreNoAddresses) {
  for (const auto& [id, shown] : {std::pair{0x7f0000000010ull, true}, std::pair{1745040086049157056ull, false}}) {
    const std::string bytes = report_of("dram__bytes.sum", "", {id, id + 16});
    const auto file = File::parse(bytes, "built");
    ASSERT_TRUE(file);
    PageOptions options;
    options.page = Page::kSource;
    options.csv = true;
    std::string text;
    std::vector<model::Loss> losses;
    ASSERT_TRUE(print_pages(
        *file, options, [&](std::string_view piece) { text += piece; }, losses));
    EXPECT_EQ(text.find("dram__bytes.sum") != std::string::npos, shown) << text;
  }
}

TEST(NcuPages, SummaryByRangeOfAReportWithoutRangesSaysSo) {
  const std::string bytes = report_of("dram__bytes.sum", "");
  const auto file = File::parse(bytes, "built");
  PageOptions options;
  options.summary = Summary::kPerNvtx;
  std::vector<model::Loss> losses;
  const auto done = print_pages(
      *file, options, [](std::string_view) {}, losses);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what, "no kernel of the report has an NVTX range around it");
}

TEST(NcuPages, ANameAloneIsAStartEndRangeAndTheHintSaysSo) {
  const std::string bytes = report_of("dram__bytes.sum", "");
  const auto file = File::parse(bytes, "built");
  ASSERT_TRUE(file);
  const auto hint = [&](const std::string& include) {
    PageOptions options;
    options.nvtx_include = {include};
    std::vector<model::Loss> losses;
    const auto done = print_pages(
        *file, options, [](std::string_view) {}, losses);
    return done ? std::string() : done.error().hint;
  };
  EXPECT_NE(hint("layer1").find("push/pop ranges are --nvtx-include 'layer1/'"), std::string::npos);
  EXPECT_EQ(hint("layer1/").find("write"), std::string::npos);
}

}  // namespace pages_test
}  // namespace rangescope::ncu_pages
