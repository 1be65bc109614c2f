// Why a CUDA program did no work on a GPU: the file `cuda_error` next to its captures, one line of
// text. rangescope writes it after a run without a GPU stream of a program that has GPU code.
#pragma once

namespace rangescope::wire {

inline constexpr char kCudaErrorFile[] = "cuda_error";

}  // namespace rangescope::wire
