// The short name of a kernel: what the library that counts goes by, too.
#pragma once

#include "wire/kernel_name.hpp"

namespace rangescope::model {

using wire::short_kernel_name;

}  // namespace rangescope::model
