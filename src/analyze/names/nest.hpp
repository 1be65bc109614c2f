// Names that spell a hierarchy, as `A::A1` does under --nest '::', become ranges within ranges: A >
// A1.
//
// Levels that are open already are not opened again: `A::A1` inside of `A` is A1. Those that are
// not begin and end with the range whose name contains them. Push/pop ranges only. O(ranges).
#pragma once

#include <string_view>

#include "model/session.hpp"

namespace rangescope::analyze {

/// Ranges, the paths of results, of graph nodes and of waits. An empty separator changes nothing.
void nest_names(model::Session& session, std::string_view separator);

}  // namespace rangescope::analyze
