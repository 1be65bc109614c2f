#include "read/kineto/event.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/text.hpp"

namespace rangescope::read::kineto {
namespace {

namespace od = simdjson::ondemand;
static_assert(kPadding >= simdjson::SIMDJSON_PADDING);

/// A number, also within a string.
std::string_view digits(od::value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ')
    token.remove_suffix(1);
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"')
    token = token.substr(1, token.size() - 2);
  return token;
}

template <class T>
void number(od::value& value, std::optional<T>& out) {
  const std::string_view text = digits(value);
  const bool negative = text.starts_with('-');
  const auto magnitude = base::to_uint(text.substr(negative ? 1 : 0));
  if (!magnitude || *magnitude > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
    return;
  if (negative && std::is_unsigned_v<T>)
    return;
  if (negative)
    out = static_cast<T>(-static_cast<std::int64_t>(*magnitude));
  else
    out = static_cast<T>(*magnitude);
}

/// Of a process or thread. Threads of the GPU's driver have ids that PyTorch writes as negative
/// numbers; PyTorch 1.8 and 1.9 write "stream 7" for the stream of a kernel.
void identifier(od::value& value, std::optional<std::uint32_t>& out) {
  constexpr std::string_view kStream = "stream ";
  std::optional<std::int64_t> id;
  if (const std::string_view text = digits(value); text.starts_with(kStream))
    id = base::to_int(base::trim(text.substr(kStream.size())));
  else
    number(value, id);
  if (id)
    out = static_cast<std::uint32_t>(*id);
}

/// What a text with an escape that JSON does not have means: "C:\Users" is a path whose writer
/// escaped nothing. Such a backslash stays, and so does one before a code point that is none.
std::string repaired(std::string_view text) {
  constexpr std::pair<char, char> kEscapes[] = {{'"', '"'},
                                                {'\\', '\\'},
                                                {'/', '/'},
                                                {'b', '\b'},
                                                {'f', '\f'},
                                                {'n', '\n'},
                                                {'r', '\r'},
                                                {'t', '\t'}};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const auto* escape = std::ranges::find(kEscapes, next, &std::pair<char, char>::first);
    if (text[i] != '\\' || escape == std::end(kEscapes)) {
      out += text[i];
      continue;
    }
    out += escape->second;
    ++i;
  }
  return out;
}

/// Into `out`, a view into the event. What had to be repaired is kept by the event.
void text_of(od::value& value, Event& event, std::string_view& out) {
  const std::string_view token =
      base::trim(value.raw_json_token());  // before get_string(), which moves on
  if (value.get_string().get(out) == simdjson::SUCCESS)
    return;
  out = {};
  const bool is_text = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  if (is_text)
    out = event.repaired.emplace_back(repaired(token.substr(1, token.size() - 2)));
}

void triple(od::value& value, std::array<std::uint32_t, 3>& out) {
  od::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS)
    return;
  std::size_t i = 0;
  for (auto element : array) {
    std::uint64_t number = 0;
    if (element.get_uint64().get(number) != simdjson::SUCCESS)
      return;
    if (i < 3 && number < 0xffffffffu)
      out[i++] = static_cast<std::uint32_t>(number);
  }
}

/// One of an event of memory; false where it is none.
bool memory_argument(std::string_view key, od::value& value, Event& event) {
  if (key == "Addr")
    number(value, event.address);
  else if (key == "Device Type")
    number(value, event.device_type);
  else if (key == "Device Id")
    number(value, event.device_id);
  else if (key == "Total Allocated")
    number(value, event.total_allocated);
  else if (key == "Total Reserved")
    number(value, event.total_reserved);
  else
    return false;
  return true;
}

/// Each argument that a session can hold, by its name.
void argument(std::string_view key, od::value& value, Event& event) {
  const auto is = [&](std::string_view a) { return key == a; };
  if (is("External id") || is("external id"))
    return number(value, event.external_id);
  if (is("correlation"))
    return number(value, event.correlation);
  if (is("device"))
    return number(value, event.device);
  if (is("context"))
    return number(value, event.context);
  if (is("stream"))
    return number(value, event.stream);
  if (is("wait_on_stream"))
    return number(value, event.awaited_stream);
  if (is("wait_on_cuda_event_record_corr_id"))
    return number(value, event.record_correlation);
  if (is("registers per thread"))
    return number(value, event.registers);
  if (is("shared memory"))
    return number(value, event.shared_bytes);
  if (is("bytes") || is("Bytes") || is("size"))
    return number(value, event.bytes);
  if (is("grid"))
    return triple(value, event.grid);
  if (is("block"))
    return triple(value, event.block);
  if (is("graph node id"))
    return number(value, event.graph_node);
  if (is("graph id"))
    return number(value, event.graph);
  if (is("Sequence number"))
    return number(value, event.sequence);
  if (is("name") || is("cuda_sync_kind"))
    return text_of(value, event, event.label);
  if (is("Collective name"))
    return text_of(value, event, event.collective);
  if (is("dtype"))
    return text_of(value, event, event.dtype);
  if (is("Process Group Description"))
    return text_of(value, event, event.group);
  if (is("Process Group Name"))
    return text_of(value, event, event.group_id);
  if (is("Process Group Ranks"))
    return text_of(value, event, event.group_ranks);
  if (is("Out msg nelems"))
    return number(value, event.elements_out);
  if (is("In msg nelems"))
    return number(value, event.elements);
  if (is("Group size"))
    return number(value, event.group_size);
  if (memory_argument(key, value, event))
    return;
  if (is("Input Dims") || is("Input dims")) {
    std::string_view raw;
    od::array array;
    if (value.get_array().get(array) == simdjson::SUCCESS &&
        array.raw_json().get(raw) == simdjson::SUCCESS)
      event.shapes = one_line(raw);
  }
}

}  // namespace

struct EventParser::Parser {
  od::parser json;
};

EventParser::EventParser() : parser_(std::make_unique<Parser>()) {}
EventParser::~EventParser() = default;

std::optional<std::int64_t> microseconds(std::string_view text, bool& fraction) {
  const bool negative = text.starts_with('-');
  if (negative)
    text.remove_prefix(1);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::optional<std::uint64_t> units;
  if (text.find_first_of("eE") == std::string_view::npos)
    units = base::to_uint(text.substr(0, point));
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t ns = 0;
  if (units && *units <= static_cast<std::uint64_t>(kMost / 1000)) {
    ns = static_cast<std::int64_t>(*units) * 1000;
    std::int64_t worth = 100, more = 0;
    for (std::size_t i = point + 1; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9')
        return std::nullopt;
      if (text[i] != '0')
        fraction = true;
      if (i == point + 4 && text[i] >= '5')
        more = 1;  // tenths of a nanosecond
      ns += worth * (text[i] - '0');
      worth /= 10;
    }
    ns += more;
  } else {
    const auto real = base::to_double(text);  // "1.7e15"
    if (!real || !std::isfinite(*real) || *real * 1000 >= static_cast<double>(kMost))
      return std::nullopt;
    ns = std::llround(*real * 1000);
  }
  if (negative)
    return -ns;
  return ns;
}

std::string one_line(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (static_cast<unsigned char>(c) <= ' ')
      continue;
    out += c;
    if (c == ',')
      out += ' ';
  }
  return out;
}

bool EventParser::parse(std::string_view text, Event& event) {
  event = {};
  od::document document;
  od::object object;
  if (parser_->json.iterate(text.data(), text.size(), text.size() + kPadding).get(document) !=
          simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS)
    return false;
  for (auto field : object) {
    std::string_view key;
    od::value value;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS ||
        field.value().get(value) != simdjson::SUCCESS)
      return false;
    if (key == "ph") {
      std::string_view phase;
      text_of(value, event, phase);
      event.phase = phase.empty() ? '\0' : phase.front();
    } else if (key == "cat") {
      text_of(value, event, event.category);
    } else if (key == "name") {
      text_of(value, event, event.name);
    } else if (key == "ts") {
      event.start_ns = microseconds(digits(value), event.fraction);
    } else if (key == "dur") {
      const std::string_view length = digits(value);
      event.length_ns = microseconds(length, event.fraction);
      event.bad_length = event.length_ns ? *event.length_ns < 0 : length != "null";
    } else if (key == "pid") {
      event.legacy_cpu =
          digits(value) == "CPU functions" || digits(value) == "CPU Functions";  // Python's, C++'s
      event.legacy_gpu = digits(value) == "CUDA functions";
      if (event.legacy_cpu || event.legacy_gpu)
        event.pid = 0;
      else
        identifier(value, event.pid);
    } else if (key == "tid") {
      identifier(value, event.tid);
    } else if (key == "args") {
      od::object arguments;
      if (value.get_object().get(arguments) != simdjson::SUCCESS)
        continue;
      for (auto member : arguments) {
        od::value member_value;
        if (member.unescaped_key().get(key) != simdjson::SUCCESS)
          return false;
        if (member.value().get(member_value) != simdjson::SUCCESS)
          return false;
        argument(key, member_value, event);
      }
    }
  }
  return true;
}

}  // namespace rangescope::read::kineto
