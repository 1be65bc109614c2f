// A recording of the CPU's side alone: launches whose work it does not show.
#pragma once

#include "model/session.hpp"

namespace rangescope::read {

/// A recording with launches and without any GPU work says nothing about the GPU: its numbers are
/// unknown, not zero. Adds the loss `launches_without_work`.
void note_missing_work(model::Session& session);

}  // namespace rangescope::read
