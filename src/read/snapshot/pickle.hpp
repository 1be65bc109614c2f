// A machine for the data opcodes of Python's pickle format, and for no others.
//
// A pickle is a program for a stack machine. Most of its opcodes build numbers, texts, tuples,
// lists and dictionaries; some import and call what they name. Only the former are known here
// (protocols 2 to 5): every other opcode ends the reading with its name and offset, so no file can
// run anything. Nothing is recursive, and what a file may make the machine hold is bounded
// (kMostValues and the constants below it).
//
// Each dictionary is shown to `Taker` when it is put into a list. One that is taken is forgotten,
// and its place used again: a list of a million events takes the room of one.
//
// Cost: some 10 ns an opcode. Memory: what was not taken, four bytes for each memoized object,
// texts once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/strings.hpp"

namespace rangescope::read::snapshot {

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kList,  ///< also a tuple or set
  kDict,
  kTagged,  ///< a list that a tag replaced
  kOther,   ///< bytes, integers of more than 64 bits, what was taken
  kMark,
};

/// 16 bytes. Texts, containers and tags are named by their number.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  std::uint32_t generation =
      0;  ///< of the container's place: another container may be there by now
  union {
    std::int64_t integer = 0;
    double real;
    std::uint32_t number;
  };
};

struct PickleField {
  PickleValue key, value;
};

class PickleMachine {
 public:
  /// What a file may make the machine hold: values in containers, containers, values on the stack,
  /// ...
  static constexpr std::size_t kMostValues = std::size_t{1} << 25;
  static constexpr std::size_t kMostContainers = std::size_t{1} << 23;
  static constexpr std::size_t kMostStacked = std::size_t{1} << 20;
  static constexpr std::size_t kMostTexts = std::size_t{1} << 22;
  static constexpr std::size_t kMostMemoized = std::size_t{1} << 27;

  /// Whether the dictionary that is put into a list is used up.
  using Taker = std::function<bool(PickleMachine& machine, PickleValue list, PickleValue dict)>;

  /// `keys`: texts that get the numbers 1, 2, ... (0 is ""), so that keys of dictionaries are
  /// compared as numbers.
  explicit PickleMachine(std::span<const std::string_view> keys);

  /// Runs to STOP. kBadData with the offset where an opcode is refused or the file is damaged.
  [[nodiscard]] base::Result<PickleValue> run(std::string_view bytes,
                                              const std::string& name,
                                              const Taker& taker);

  /// "" of what is no text.
  [[nodiscard]] std::string_view text(PickleValue value) const;
  /// The elements of a list or tuple; empty of anything else.
  [[nodiscard]] std::span<const PickleValue> elements(PickleValue value) const;
  [[nodiscard]] std::span<const PickleField> fields(PickleValue value) const;
  /// The field whose key is the text of that number; null where there is none.
  [[nodiscard]] const PickleValue* find(PickleValue dict, std::uint32_t key) const;
  /// The tag of a list; nothing where it has none.
  [[nodiscard]] std::optional<std::uint32_t> tag(PickleValue list) const;
  /// Forgets the elements of `list`: from now on it is this number, wherever it is memoized.
  void set_tag(PickleValue list, std::uint32_t tag);

 private:
  static constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};
  template <class Item>
  struct Container {
    std::vector<Item> items;
    std::uint32_t generation = 0;
    std::uint32_t memoized = kNoNumber;  ///< its place in the memo
    std::uint32_t tag = kNoNumber;
  };
  /// Places of containers, used again where one was forgotten.
  template <class Item>
  struct Containers {
    std::vector<Container<Item>> all;
    std::vector<std::uint32_t> free;
    std::uint32_t make();
    void release(std::uint32_t number);
  };
  enum class Step : std::uint8_t { kGoOn, kStop, kFailed };

  [[nodiscard]] Step step(unsigned char opcode);
  [[nodiscard]] Step number_opcode(unsigned char opcode);
  [[nodiscard]] Step text_opcode(unsigned char opcode);
  [[nodiscard]] Step container_opcode(unsigned char opcode);
  [[nodiscard]] Step stack_opcode(unsigned char opcode);
  [[nodiscard]] Step memo_opcode(unsigned char opcode);
  [[nodiscard]] Step refuse(unsigned char opcode);
  Step fail(std::string what, std::string hint = {});

  [[nodiscard]] bool take(std::uint64_t size, std::string_view& out);
  [[nodiscard]] bool take_unsigned(std::size_t size, std::uint64_t& out);
  [[nodiscard]] Step push(PickleValue value);
  [[nodiscard]] Step push_int(std::int64_t value);
  [[nodiscard]] Step push_little_endian(std::size_t size);
  [[nodiscard]] Step push_long(std::size_t size_bytes);
  [[nodiscard]] Step push_float();
  [[nodiscard]] Step push_text(std::size_t size_bytes);
  [[nodiscard]] Step push_bytes(std::size_t size_bytes);
  [[nodiscard]] Step push_list(std::size_t first, std::size_t dropped_from);
  [[nodiscard]] Step push_tuple(std::size_t size);
  [[nodiscard]] Step push_dict();
  [[nodiscard]] Step append_from(std::size_t first, std::size_t dropped_from);
  [[nodiscard]] Step set_from(std::size_t first, std::size_t dropped_from);
  /// Takes the innermost mark off `marks_`; false where there is none.
  [[nodiscard]] bool pop_mark(std::size_t& place);
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back() + 1; }
  [[nodiscard]] Step memoize(std::uint64_t place);
  [[nodiscard]] Step recall(std::uint64_t place);
  [[nodiscard]] bool is_current(PickleValue value) const;
  void forget_dict(PickleValue dict);
  void release_tagged();

  std::string_view bytes_;
  std::size_t at_ = 0, opcode_at_ = 0;
  std::string name_;
  const Taker* taker_ = nullptr;
  base::Error error_;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;  ///< places of marks in `stack_`
  std::vector<std::uint32_t>
      memo_;  ///< kind in the upper bits, number in the others; kNoNumber where empty
  Containers<PickleValue> lists_;
  Containers<PickleField> dicts_;
  std::vector<std::uint32_t> tagged_;  ///< lists to release when the elements at hand were shown
  std::size_t held_ = 0;               ///< values in containers
  model::Strings texts_;
};

}  // namespace rangescope::read::snapshot
