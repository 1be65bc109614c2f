// One function of MPI: its description, and its arguments in C (also with large counts) or Fortran.
//
// `roles` has a letter for each argument:
//   n t, N T   count and type of the message; those that apply if the buffer `I` is MPI_IN_PLACE
//   m, A       multiplies the count; counts of all ranks, instead of N
//   c C, w W   communicator, one that is made; window, one that is made
//   p g, q h   peer or root, tag; the source and its tag, in addition to a send
//   a          tag of a group, not of a message
//   R S, M     request or requests, status or statuses; a message that was probed
//   i f, k x   index of the complete request, whether any is; the number of complete requests,
//   their
//              indexes
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <atomic>

#include "inject/mpi/abi.hpp"

namespace rangescope::inject::mpi {

enum class Act : std::uint8_t {
  kCall,      ///< only a range: collectives, one-sided calls, blocking sends
  kReceive,   ///< a range with the sender of the message: MPI_Recv, MPI_Sendrecv
  kBegin,     ///< makes a request: MPI_Isend, MPI_Iallreduce
  kPrepare,   ///< makes a persistent request
  kStart,     ///< starts one or several of those
  kComplete,  ///< MPI_Wait and similar
  kTest,      ///< MPI_Test and similar: a range only if something was complete
  kFree,      ///< frees a request
  kForget,    ///< frees a communicator or window
  kProbe,     ///< begins a receive: MPI_Mprobe
  kLook,      ///< begins a receive if there is a message: MPI_Improbe
  kTake,      ///< ends a receive: MPI_Mrecv
  kTakeLater  ///< MPI_Imrecv
};

enum class Language : std::uint8_t { kC, kLarge, kFortran, kFortran08 };

struct Function {
  const char* name;  ///< "MPI_Send"
  Act act;
  bool receives;
  signed char argument[128] = {};  ///< of each role, the number of the argument from 1; 0: none
  std::atomic<void*> real[4] = {};
  std::atomic<nvtxStringHandle_t> texts[2] = {};

  constexpr Function(const char* mpi_name, Act its_act, const char* roles, bool is_receive = false)
      : name(mpi_name), act(its_act), receives(is_receive) {
    for (signed char i = 0; roles[i] != '\0'; ++i)
      argument[static_cast<unsigned char>(roles[i])] = static_cast<signed char>(i + 1);
  }

  /// The library's own function: PMPI_Send, or mpi_send_, which in MPICH calls MPI_Send. Null if it
  /// has none.
  [[nodiscard]] void* real_function(Language language, const void* caller);
  [[nodiscard]] nvtxStringHandle_t range_name();
  /// The name of the ranges of starts of a persistent request.
  [[nodiscard]] nvtxStringHandle_t start_name();
};

class Arguments {
 public:
  Arguments(const Function& function, Word* words, Language language)
      : function_(function), words_(words), language_(language), mpi_(abi()) {}

  [[nodiscard]] bool has(char role) const {
    return function_.argument[static_cast<unsigned char>(role)] != 0;
  }
  [[nodiscard]] Word& word(char role) const {
    return words_[function_.argument[static_cast<unsigned char>(role)] - 1];
  }
  template <typename Type = void>
  [[nodiscard]] Type* pointer(char role) const {
    if (!has(role))
      return nullptr;
    return reinterpret_cast<Type*>(word(role));
  }
  [[nodiscard]] int number(char role) const {
    if (fortran())
      return *reinterpret_cast<int*>(word(role));
    return static_cast<int>(word(role));
  }
  /// `fallback` if the function has no such argument.
  [[nodiscard]] int number(char role, int fallback) const {
    if (!has(role))
      return fallback;
    return number(role);
  }
  /// A communicator, type, window, request or message, as a handle of C.
  [[nodiscard]] Word handle(char role) const;
  /// Handle `index` of those that the argument points to.
  [[nodiscard]] Word handle_at(char role, std::size_t index = 0) const;
  /// Element `i` of the indexes that MPI returned, from 0; negative for none.
  [[nodiscard]] int index(char role, std::size_t i = 0) const {
    return pointer<int>(role)[i] - (fortran() ? 1 : 0);
  }
  /// The bytes of one rank's message, for a call that MPI has accepted; kUnknownBytes if the
  /// arguments do not say. `self`: the own rank.
  [[nodiscard]] std::uint64_t bytes(int self) const;
  [[nodiscard]] bool is_ignored(char role) const;  ///< MPI_STATUS_IGNORE
  [[nodiscard]] bool fortran() const { return language_ >= Language::kFortran; }
  [[nodiscard]] std::size_t handle_bytes() const { return fortran() ? 4 : mpi_.handle_bytes; }

 private:
  [[nodiscard]] Word from_fortran(char role, int handle) const;
  [[nodiscard]] bool is_in_place_buffer() const;
  [[nodiscard]] std::int64_t count_of_rank(int rank) const;
  [[nodiscard]] std::int64_t count(char role) const;
  const Function& function_;
  Word* words_;
  Language language_;
  const Abi& mpi_;
};

}  // namespace rangescope::inject::mpi
