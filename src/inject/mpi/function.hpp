// One function of MPI: what our library knows of it, and its arguments in C (also with large
// counts) or Fortran.
//
// `roles` has a letter for each argument:
//   n t, N T   count and type of the message; those that count where the buffer `I` is MPI_IN_PLACE
//   m, A       multiplies the count; counts of all ranks, in the place of N
//   c C, w W   communicator, one that is made; window, one that is made
//   p g, q h   peer or root, tag; the source and its tag, beside a send
//   a          tag of a group, no message's
//   R S, M     request or requests, status or statuses; a message that was probed
//   i f, k x   index of the one that is complete, whether any is; how many are complete, their
//   indexes
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <atomic>

#include "inject/mpi/abi.hpp"

namespace rangescope::inject::mpi {

enum class Act : std::uint8_t {
  kCall,  ///< a range and no more: collectives, one-sided calls, messages that are through when it
          ///< ends
  kReceive,   ///< that and where the message came from: MPI_Recv, MPI_Sendrecv
  kBegin,     ///< with a request: MPI_Isend, MPI_Iallreduce
  kPrepare,   ///< a persistent request
  kStart,     ///< one or all of them
  kComplete,  ///< MPI_Wait and its kin
  kTest,      ///< MPI_Test and its kin: a range where they found something
  kFree,      ///< of a request
  kForget,    ///< of a communicator or window
  kProbe,     ///< the begin of a receive: MPI_Mprobe
  kLook,      ///< where there is a message: MPI_Improbe
  kTake,      ///< its end: MPI_Mrecv
  kTakeLater  ///< MPI_Imrecv
};

enum class Language : std::uint8_t { kC, kLarge, kFortran, kFortran08 };

struct Function {
  const char* name;  ///< "MPI_Send"
  Act act;
  bool receives;
  signed char at[128] = {};  ///< of each role, the number of the argument from 1
  std::atomic<void*> real[4] = {};
  std::atomic<nvtxStringHandle_t> texts[2] = {};

  constexpr Function(const char* called, Act what, const char* roles, bool receive = false)
      : name(called), act(what), receives(receive) {
    for (signed char i = 0; roles[i] != '\0'; ++i)
      at[static_cast<unsigned char>(roles[i])] = static_cast<signed char>(i + 1);
  }

  /// The library's own: PMPI_Send, and mpi_send_, which in MPICH calls MPI_Send. Null where it has
  /// none.
  [[nodiscard]] void* behind(Language language, const void* caller);
  [[nodiscard]] nvtxStringHandle_t text();
  /// Of the ranges that stand for each start of a persistent request.
  [[nodiscard]] nvtxStringHandle_t start_text();
};

class Arguments {
 public:
  Arguments(const Function& function, Word* words, Language language)
      : function_(function), words_(words), language_(language), mpi_(abi()) {}

  [[nodiscard]] bool has(char role) const {
    return function_.at[static_cast<unsigned char>(role)] != 0;
  }
  [[nodiscard]] Word& word(char role) const {
    return words_[function_.at[static_cast<unsigned char>(role)] - 1];
  }
  template <typename Type = void>
  [[nodiscard]] Type* pointer(char role) const {
    return has(role) ? reinterpret_cast<Type*>(word(role)) : nullptr;
  }
  [[nodiscard]] int number(char role) const {
    return fortran() ? *reinterpret_cast<int*>(word(role)) : static_cast<int>(word(role));
  }
  /// Where it is `otherwise` if there is none.
  [[nodiscard]] int number(char role, int otherwise) const {
    return has(role) ? number(role) : otherwise;
  }
  /// A communicator, type, window, request or message, as C has it.
  [[nodiscard]] Word handle(char role) const;
  /// The one at `place` of those that the argument points to.
  [[nodiscard]] Word handle_at(char role, std::size_t place = 0) const;
  /// One of indexes that MPI answered, from 0; negative for none.
  [[nodiscard]] int index(char role, std::size_t place = 0) const {
    return pointer<int>(role)[place] - (fortran() ? 1 : 0);
  }
  /// Of one rank's message, of a call that MPI has accepted. kUnknownBytes where nobody says.
  /// `self`: the own rank.
  [[nodiscard]] std::uint64_t bytes(int self) const;
  [[nodiscard]] bool is_ignored(char role) const;  ///< MPI_STATUS_IGNORE
  [[nodiscard]] bool fortran() const { return language_ >= Language::kFortran; }
  [[nodiscard]] std::size_t handle_bytes() const { return fortran() ? 4 : mpi_.handle_bytes; }

 private:
  [[nodiscard]] Word from_fortran(char role, int handle) const;
  [[nodiscard]] std::int64_t count(char role) const;
  const Function& function_;
  Word* words_;
  Language language_;
  const Abi& mpi_;
};

}  // namespace rangescope::inject::mpi
