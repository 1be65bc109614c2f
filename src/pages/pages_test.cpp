#include "pages/pages.hpp"

#include <fstream>

#include "base/text.hpp"
#include "read/ncu_report/golden_test.hpp"

namespace rangescope::pages {
namespace {

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

}  // namespace
}  // namespace rangescope::pages
