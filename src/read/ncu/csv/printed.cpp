#include "read/ncu/csv/printed.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "read/csv.hpp"
#include "read/printed.hpp"

namespace rangescope::read::ncu_csv {
namespace {

class Printed {
 public:
  std::string read(std::string_view text) {
    std::size_t at = 0;
    for (std::string_view line; next_line(text, at, line);) take(line);
    if (rows_.empty()) return {};
    if (!invocations_.empty())
      return "\"Process ID\",\"Process Name\",\"Host Name\",\"Domain\",\"Range:PL_Type\",\"Kernel Name\","
             "\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Invocations\",\"Section Name\",\"Metric Name\",\"Metric "
             "Unit\",\"Minimum\",\"Maximum\",\"Average\"\n" +
             rows_;
    return "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"thread Domain:Push/Pop_Range:PL_Type:PL_Value:"
           "CLR_Type:Color:Msg_Type:Msg\",\"Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg\","
           "\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\","
           "\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n" +
           rows_;
  }

 private:
  void take(std::string_view line) {
    const std::string_view text = base::trim(line);
    if (Spans columns = dashes(line);
        columns.size() == columns_wanted() && columns.front().second >= columns.front().first + 3) {
      in_table_ = !in_table_ || rows_of_table_ == 0;  // the one below the header is still inside
      before_ = {};
      if (in_table_) columns_ = std::move(columns);
      return;
    }
    if (in_table_ && !text.empty() && line.size() > columns_[1].first) return row(line);
    in_table_ = false;
    if (text.empty()) return;
    const std::string_view before = std::exchange(before_, text);
    if (process(line) || result(line, before) || state(line)) return;
    constexpr std::string_view kSection = "Section: ", kStack = "NVTX Push/Pop Stack for Thread ";
    if (text.starts_with(kSection)) {
      section_ = text.substr(kSection.size());
      rows_of_table_ = 0;
      nvtx_ = Nvtx::kNone;
    } else if (text.starts_with(kStack)) {
      nvtx_ = Nvtx::kPushPop;
      thread_ = text.substr(kStack.size(), text.size() - kStack.size() - 1);
    } else if (text.starts_with("NVTX Push/Pop Ranges")) {  // of the process: their threads are not printed
      nvtx_ = Nvtx::kProcess;
    } else if (text.starts_with("NVTX Start/End Ranges")) {
      nvtx_ = Nvtx::kStartEnd;
    } else if (nvtx_ != Nvtx::kNone) {
      open_range(text);
    }
  }

  /// A summary has five.
  [[nodiscard]] std::size_t columns_wanted() const { return invocations_.empty() ? 3 : 5; }

  /// "[5233] zoo@127.0.0.1"
  bool process(std::string_view line) {
    const std::size_t close = line.find("] "), at = line.rfind('@');
    if (!line.starts_with('[') || close == std::string_view::npos || at == std::string_view::npos || at < close)
      return false;
    if (!base::to_uint(line.substr(1, close - 1))) return false;
    pid_ = line.substr(1, close - 1);
    process_ = line.substr(close + 2, at - close - 2);
    host_ = line.substr(at + 1);
    return true;
  }

  /// "  gemm(int) (16, 8, 1)x(256, 1, 1), Context 1, Stream 13, Device 0, CC 9.0"; before 2023 it has the time
  /// instead of the shape, and no device. Ranges have no stream: "  range, Context 1, Device 0, CC 9.0". Summaries have
  /// no context: "  gemm(int) (16, 8, 1)x(256, 1, 1), Device 0, CC 9.0, Invocations 4"; before 2024, above each
  /// section, "  gemm, Block Size 256, Grid Size 128, Device 0, 4 invocations ". Where an editor or a terminal broke
  /// the line behind the name, that is the line `before`.
  bool result(std::string_view line, std::string_view before) {
    constexpr std::string_view kNow = ", Invocations ", kOnce = " invocations", kBlock = ", Block Size ",
                               kGrid = ", Grid Size ";
    std::size_t invocations = line.rfind(kNow);
    const bool once = invocations == std::string_view::npos && base::trim(line).ends_with(kOnce);
    if (once) invocations = line.rfind(", ");
    const bool summary = invocations != std::string_view::npos;
    const std::size_t context = std::min(line.rfind(summary ? ", Device " : ", Context "), invocations);
    if (!line.starts_with("  ") || (!summary && line.starts_with("   ")) || context == std::string_view::npos ||
        (!summary && line.find(", Stream ", context) == std::string_view::npos &&
         line.find(", Device ", context) == std::string_view::npos) ||
        (!rows_.empty() && summary == invocations_.empty()))
      return false;
    const auto after = [&](std::string_view word) {
      const std::size_t at = line.find(word, context);
      if (at == std::string_view::npos) return std::string_view{};
      const std::string_view rest = line.substr(at + word.size());
      return base::trim(rest.substr(0, rest.find(',')));
    };
    std::string_view name = base::trim(line.substr(0, context));
    grid_ = block_ = {};
    const std::size_t block = name.rfind(kBlock), grid = name.rfind(kGrid);
    if (once && block < grid && grid != std::string_view::npos) {
      block_ = name.substr(block + kBlock.size(), grid - block - kBlock.size());
      grid_ = name.substr(grid + kGrid.size());
      name = name.substr(0, block);
    }
    const std::size_t shape = name.rfind(")x(");
    const std::size_t open = shape == std::string_view::npos ? shape : name.rfind(" (", shape);
    if (shape != std::string_view::npos && name.starts_with('(') && name.ends_with(')')) {
      grid_ = name.substr(0, shape + 1);
      block_ = name.substr(shape + 2);
      name = before.empty() ? "(no name)" : before;
    } else if (open != std::string_view::npos && name.ends_with(')')) {
      grid_ = name.substr(open + 1, shape - open);
      block_ = name.substr(shape + 2);
      name = name.substr(0, open);
    } else if (const std::size_t comma = name.rfind(", ");
               comma != std::string_view::npos && name.find(':', comma) != std::string_view::npos) {
      name = name.substr(0, comma);
    }
    kernel_ = name;
    context_ = after(", Context ");
    stream_ = after(", Stream ");
    invocations_ = once      ? base::trim(line.substr(invocations + 2, line.rfind(kOnce) - invocations - 2))
                   : summary ? base::trim(line.substr(invocations + kNow.size()))
                             : std::string_view();
    if (!summary || context != invocations) {
      device_ = after(", Device ");
      capability_ = after(", CC ");
    }
    if (!summary) push_pop_.clear();
    start_end_.clear();
    nvtx_ = Nvtx::kNone;
    ++id_;
    return true;
  }

  /// Of summaries: "  Device 0, CC 9.0" above its kernels; "== NVTX State ==", below it a domain and "  <prefill>"
  /// lines.
  bool state(std::string_view line) {
    constexpr std::string_view kDevice = "  Device ", kCapability = ", CC ";
    const std::size_t comma = std::min(line.find(kCapability), line.size());
    if (line == "== NVTX State ==") {
      nvtx_ = Nvtx::kState;
      domain_ = {};
      push_pop_.clear();
    } else if (line.starts_with(kDevice) && base::to_uint(line.substr(kDevice.size(), comma - kDevice.size()))) {
      device_ = line.substr(kDevice.size(), comma - kDevice.size());
      capability_ = line.substr(std::min(comma + kCapability.size(), line.size()));
    } else if (nvtx_ == Nvtx::kState && domain_.empty()) {
      domain_ = line;
    } else if (nvtx_ == Nvtx::kState && line.starts_with("  <") && line.ends_with('>')) {
      std::string_view name = line.substr(3, line.size() - 4);
      const std::size_t number = name.find(", ");  // of start/end ranges
      if (number != std::string_view::npos && base::to_uint(name.substr(0, number))) name.remove_prefix(number + 2);
      push_pop_ += " \"" + std::string(name) + ":none:none:none:none:none:none\" ";
    } else {
      return false;
    }
    return true;
  }

  /// "<default domain>" and below it "<0,prefill>"; attributes of ranges lie between.
  void open_range(std::string_view text) {
    const std::size_t comma = text.find(',');
    const bool numbered = text.starts_with('<') && text.ends_with('>') && comma != std::string_view::npos &&
                          base::to_uint(text.substr(1, comma - 1)).has_value();
    if (!numbered) {
      if (text.find(": ") == std::string_view::npos) domain_ = text;
      return;
    }
    const std::string name(text.substr(comma + 1, text.size() - comma - 2));
    const std::string what = std::string(domain_) + ':' + name + ":none:none:none:none:none:none\"";
    if (nvtx_ == Nvtx::kProcess)
      push_pop_ += std::string(text.substr(1, comma - 1)) + "  \"" + what + ' ';
    else if (nvtx_ == Nvtx::kPushPop)
      push_pop_ += (push_pop_.empty() ? std::string(thread_) + "  \"" : " \"") + what + ' ';
    else
      start_end_ += " \"" + std::string(text.substr(1, comma - 1)) + ':' + what + ' ';
  }

  void row(std::string_view line) {
    const auto cell = [&](std::size_t column) {
      const std::size_t from = std::min(columns_[column].first, line.size());
      const bool last = column + 1 == columns_.size();
      return base::trim(last ? line.substr(from) : line.substr(from, columns_[column + 1].first - from));
    };
    const std::string_view name = cell(0);
    if (name.empty() || name == "Metric Name") return;
    ++rows_of_table_;
    const auto add = [&](std::initializer_list<std::string_view> values) {
      for (const std::string_view value : values) csv_cell(rows_, value);
      rows_ += '\n';
    };
    if (!invocations_.empty())
      return add({pid_, process_, host_, domain_, push_pop_, kernel_, block_, grid_, device_, capability_, invocations_,
                  section_, name, cell(1), cell(2), cell(3), cell(4)});
    const std::string id = std::to_string(id_);
    add({id, pid_, process_, host_, push_pop_, start_end_, kernel_, context_, stream_, block_, grid_, device_,
         capability_, section_, name, cell(1), cell(2)});
  }

  enum class Nvtx : std::uint8_t { kNone, kPushPop, kProcess, kStartEnd, kState };

  std::string rows_, push_pop_, start_end_;
  std::string_view before_, pid_ = "0", process_, host_, kernel_ = "<kernel above the first line>", context_, stream_,
                            grid_, block_, device_, capability_, invocations_, section_, domain_, thread_;
  Spans columns_;
  std::size_t rows_of_table_ = 0;
  int id_ = 0;
  bool in_table_ = false;
  Nvtx nvtx_ = Nvtx::kNone;
};

}  // namespace

std::string printed_as_csv(std::string_view text) {
  return Printed().read(text);
}

}  // namespace rangescope::read::ncu_csv
