// Forwards a call of the program to the MPI library, within a range.
#pragma once

#include <utility>

#include "inject/mpi/function.hpp"

namespace rangescope::inject::mpi {

using Invoke = int (*)(void* real, Word* words);

/// MPI's result; in Fortran that is in the last argument, after those that have roles.
int run(Function& function,
        Language language,
        Word* words,
        int count,
        Invoke invoke,
        const void* caller);

template <std::size_t... I>
int invoke_with(void* real, Word* words, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(decltype(I, Word{})...)>(real)(words[I]...);
}
template <std::size_t n>
int invoke(void* real, Word* words) {
  return invoke_with(real, words, std::make_index_sequence<n>());
}

}  // namespace rangescope::inject::mpi
