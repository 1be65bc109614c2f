// The CPython of this process, 3.9 to 3.15: where it has frames (wire/cpython.hpp), instances and
// dictionaries. Its memory is only read. The only functions called are
// PyGILState_GetThisThreadState, which reads a variable of the thread, and Py_IsFinalizing, which
// reads a word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/python/own_memory.hpp"
#include "wire/cpython.hpp"

namespace rangescope::inject::python {

/// The handle with which dlsym finds its functions: the program, or the library of an interpreter
/// that was loaded with RTLD_LOCAL; null if there is none.
[[nodiscard]] void* library_of_python();

struct Interpreter {
  wire::cpython::Fields fields{};
  int minor = 0;
  std::uint64_t code_type = 0, cell_type = 0, text_type = 0;
  void* (*this_thread)() = nullptr;
  int (*finalizing)() = nullptr;

  /// The loaded interpreter; false, with the reason in `why`, if none can be read.
  [[nodiscard]] bool find(const OwnMemory& memory, const char*& why);

  /// Offset of the current instruction in a frame.
  [[nodiscard]] std::uint32_t position() const {
    if (fields.instruction != 0)
      return fields.instruction;
    return fields.generator + 8;  // f_lasti is after f_gen
  }
  [[nodiscard]] std::uint32_t header() const { return fields.type + 8; }  ///< bytes, of an object
  /// An ASCII text; false for other texts, and longer ones than `most` - 1.
  [[nodiscard]] bool text(const OwnMemory& memory,
                          std::uint64_t object,
                          char* into,
                          std::size_t most) const;
  /// The name of a type, without its module.
  [[nodiscard]] bool type_name(const OwnMemory& memory,
                               std::uint64_t type,
                               char* into,
                               std::size_t most) const;
  /// The address of an instance's pointer to the dictionary of its attributes; 0 if it has none.
  [[nodiscard]] std::uint64_t dictionary_place(const OwnMemory& memory, std::uint64_t object) const;
  /// The dictionary of an instance's attributes; 0 if it has none.
  [[nodiscard]] std::uint64_t attributes(const OwnMemory& memory, std::uint64_t object) const;
  /// The attributes of an instance that has no dictionary yet: the keys are in its type, the values
  /// in the instance. Since 3.11.
  [[nodiscard]] bool inline_attributes(const OwnMemory& memory,
                                       std::uint64_t object,
                                       std::uint64_t& keys,
                                       std::uint64_t& values) const;
  /// An integer from 0 to below 2^30, also of an enumeration.
  [[nodiscard]] bool number(const OwnMemory& memory,
                            std::uint64_t object,
                            std::uint32_t& value) const;
  [[nodiscard]] bool is_dictionary(const OwnMemory& memory, std::uint64_t object) const;

 private:
  [[nodiscard]] bool flags_of(const OwnMemory& memory,
                              std::uint64_t object,
                              std::uint64_t& type,
                              std::uint64_t& flags) const;
};

/// A copy of the items of a dictionary.
class Items {
 public:
  static constexpr std::size_t kMost = 4096;
  Items(const Interpreter& python, const OwnMemory& memory) : python_(python), memory_(memory) {}
  Items& operator=(Items&&) = delete;
  ~Items();

  /// False if that is not a dictionary, or has more than kMost items.
  [[nodiscard]] bool read(std::uint64_t dictionary);
  /// The attributes of an instance.
  [[nodiscard]] bool read_attributes(std::uint64_t object);
  struct Item {
    std::uint64_t key = 0, value = 0;
    std::uint64_t place = 0;     ///< address of key and value; 0: the value is in another table
    std::uint64_t value_at = 0;  ///< address of the value
  };
  /// False after the last item. Key or value of a deleted item is 0.
  [[nodiscard]] bool item(std::size_t number, Item& into) const;

 private:
  bool read(std::uint64_t keys, std::uint64_t values);
  bool reserve(std::size_t words);

  const Interpreter& python_;
  const OwnMemory& memory_;
  std::uint64_t entries_ = 0;    ///< address of the entries that were copied
  std::uint64_t values_at_ = 0;  ///< address of the separate values that were copied
  std::size_t count_ = 0;
  std::size_t stride_ = 0;          ///< words of an entry
  std::size_t room_ = 0;            ///< words
  bool split_ = false;              ///< values are in another table than keys
  std::uint64_t* words_ = nullptr;  ///< the entries, then the separate values
  std::uint64_t* values_ = nullptr;
};

}  // namespace rangescope::inject::python
