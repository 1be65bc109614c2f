// The CPython of this process, 3.9 to 3.15: where it keeps frames (wire/cpython.hpp), instances and
// dictionaries. Reads only: nothing of it is called but PyGILState_GetThisThreadState, which looks
// into a thread's own variable, and Py_IsFinalizing, which reads a word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/python/own_memory.hpp"
#include "wire/cpython.hpp"

namespace rangescope::inject::python {

/// Where dlsym finds its functions: the program, or the library of an interpreter that a program
/// loaded for itself alone; null where there is none.
[[nodiscard]] void* library_of_python();

struct Interpreter {
  wire::cpython::Fields fields{};
  int minor = 0;
  std::uint64_t code_type = 0, cell_type = 0, text_type = 0;
  void* (*this_thread)() = nullptr;
  int (*finalizing)() = nullptr;

  /// The one that is loaded; false, with why, where there is none that can be read.
  [[nodiscard]] bool find(const OwnMemory& memory, const char*& why);

  /// Where an instruction's place stands in a frame.
  [[nodiscard]] std::uint32_t position() const {
    return fields.instruction != 0 ? fields.instruction
                                   : fields.generator + 8;  // f_lasti is behind f_gen
  }
  [[nodiscard]] std::uint32_t header() const { return fields.type + 8; }  ///< of an object
  /// An ASCII text; false for others and for longer ones than `most` - 1.
  [[nodiscard]] bool text(const OwnMemory& memory, std::uint64_t object, char* into,
                          std::size_t most) const;
  /// The name of a type, without what it is in.
  [[nodiscard]] bool type_name(const OwnMemory& memory, std::uint64_t type, char* into,
                               std::size_t most) const;
  /// Where an instance has the dictionary of its attributes; 0 where it has none.
  [[nodiscard]] std::uint64_t dictionary_place(const OwnMemory& memory, std::uint64_t object) const;
  [[nodiscard]] std::uint64_t attributes(const OwnMemory& memory, std::uint64_t object) const;
  /// Where attributes are that have no dictionary (yet): keys of the type, values of the instance.
  /// Since 3.11.
  [[nodiscard]] bool inline_attributes(const OwnMemory& memory, std::uint64_t object,
                                       std::uint64_t& keys, std::uint64_t& values) const;
  /// A whole number below 2^30, an enumeration's too.
  [[nodiscard]] bool number(const OwnMemory& memory, std::uint64_t object,
                            std::uint32_t& value) const;
  [[nodiscard]] bool is_dictionary(const OwnMemory& memory, std::uint64_t object) const;

 private:
  [[nodiscard]] bool flags_of(const OwnMemory& memory, std::uint64_t object, std::uint64_t& type,
                              std::uint64_t& flags) const;
};

/// The items of a dictionary, as it was when they were copied.
class Items {
 public:
  static constexpr std::size_t kMost = 4096;
  Items(const Interpreter& python, const OwnMemory& memory) : python_(python), memory_(memory) {}
  Items& operator=(Items&&) = delete;
  ~Items();

  /// False where that is no dictionary, or a larger one than kMost.
  [[nodiscard]] bool read(std::uint64_t dictionary);
  /// The attributes of an instance.
  [[nodiscard]] bool read_attributes(std::uint64_t object);
  struct Item {
    std::uint64_t key = 0, value = 0;
    std::uint64_t place = 0;     ///< where both stand; 0: the value stands elsewhere
    std::uint64_t value_at = 0;  ///< where the value stands
  };
  /// False behind the last one. Of one that was taken out, key or value is 0.
  [[nodiscard]] bool item(std::size_t number, Item& into) const;

 private:
  bool read(std::uint64_t keys, std::uint64_t values);
  const Interpreter& python_;
  const OwnMemory& memory_;
  std::uint64_t entries_ = 0, values_at_ = 0;  ///< where they stood
  std::size_t count_ = 0, stride_ = 0, room_ = 0;
  bool split_ = false;
  std::uint64_t* words_ = nullptr;  ///< of the entries, then of values that stand apart
  std::uint64_t* values_ = nullptr;
};

}  // namespace rangescope::inject::python
