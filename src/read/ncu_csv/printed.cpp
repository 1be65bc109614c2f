#include "read/ncu_csv/printed.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace rangescope::read::ncu_csv {
namespace {

/// Where the three columns of a table begin, told by its line of dashes; nothing for any other line.
bool dash_columns(std::string_view line, std::array<std::size_t, 3>& columns) {
  std::size_t groups = 0;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(line.find_first_not_of('-', at), line.size());
    if (end - at < 3 || (end < line.size() && line[end] != ' ') || groups == 3) return false;
    columns[groups++] = at;
    at = end;
  }
  return groups == 3;
}

class Printed {
 public:
  std::string read(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      at = end + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      take(line);
    }
    if (rows_.empty()) return {};
    return "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"thread Domain:Push/Pop_Range:PL_Type:PL_Value:"
           "CLR_Type:Color:Msg_Type:Msg\",\"Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg\","
           "\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\","
           "\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n" +
           rows_;
  }

 private:
  void take(std::string_view line) {
    const std::string_view text = base::trim(line);
    std::array<std::size_t, 3> columns{};
    if (dash_columns(line, columns)) {
      in_table_ = !in_table_ || rows_of_table_ == 0;  // the one below the header is still inside
      if (in_table_) columns_ = columns;
      return;
    }
    if (in_table_ && !text.empty() && line.size() > columns_[1]) return row(line);
    if (text.empty()) return;
    in_table_ = false;
    if (process(line) || result(line)) return;
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

  /// "  gemm(int) (16, 8, 1)x(256, 1, 1), Context 1, Stream 13, Device 0, CC 9.0"; before 2023 there stands the time
  /// instead of the shape, and no device. Ranges have no stream: "  range, Context 1, Device 0, CC 9.0".
  bool result(std::string_view line) {
    const std::size_t context = line.rfind(", Context ");
    if (!line.starts_with("  ") || line.starts_with("   ") || context == std::string_view::npos ||
        (line.find(", Stream ", context) == std::string_view::npos &&
         line.find(", Device ", context) == std::string_view::npos))
      return false;
    const auto after = [&](std::string_view word) {
      const std::size_t at = line.find(word, context);
      if (at == std::string_view::npos) return std::string_view{};
      const std::string_view rest = line.substr(at + word.size());
      return base::trim(rest.substr(0, rest.find(',')));
    };
    std::string_view name = line.substr(2, context - 2);
    grid_ = block_ = {};
    const std::size_t shape = name.rfind(")x(");
    const std::size_t open = shape == std::string_view::npos ? shape : name.rfind(" (", shape);
    if (open != std::string_view::npos && name.ends_with(')')) {
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
    device_ = after(", Device ");
    capability_ = after(", CC ");
    push_pop_.clear();
    start_end_.clear();
    nvtx_ = Nvtx::kNone;
    ++id_;
    return true;
  }

  /// "<default domain>" and below it "<0,prefill>"; attributes of ranges stand between.
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
      const std::size_t from = std::min(columns_[column], line.size());
      return base::trim(column == 2 ? line.substr(from) : line.substr(from, columns_[column + 1] - from));
    };
    const std::string_view name = cell(0);
    if (name.empty() || name == "Metric Name") return;
    ++rows_of_table_;
    const std::string id = std::to_string(id_);
    bool first = true;
    for (const std::string_view value :
         {std::string_view(id), pid_, process_, host_, std::string_view(push_pop_), std::string_view(start_end_),
          kernel_, context_, stream_, block_, grid_, device_, capability_, section_, name, cell(1), cell(2)}) {
      rows_ += first ? "\"" : ",\"";
      rows_ += base::replace_all(value, "\"", "\"\"");
      rows_ += '"';
      first = false;
    }
    rows_ += '\n';
  }

  enum class Nvtx : std::uint8_t { kNone, kPushPop, kProcess, kStartEnd };

  std::string rows_, push_pop_, start_end_;
  std::string_view pid_ = "0", process_, host_, kernel_ = "<kernel above the first line>", context_, stream_, grid_,
                   block_, device_, capability_, section_, domain_, thread_;
  std::array<std::size_t, 3> columns_{};
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
