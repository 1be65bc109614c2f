// From what a person names to one session: files, and all captures of runs.
//
// The captures of one profiled run are one program that ran several times under different tools.
// Its timelines (native, nsys) would count everything twice, so the better one is taken, and a note
// names the other; results of ncu are joined to it. Files that were given by themselves, or
// imported, lie side by side.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analyze/names/fold.hpp"
#include "base/result.hpp"
#include "model/session.hpp"
#include "read/reader.hpp"

namespace rangescope::profile {

/// Which results of a joined session a report of ncu holds: measurements [first, first + count) are
/// its results 0, 1
/// ...
struct NcuPart {
  std::filesystem::path file;
  std::size_t first = 0, count = 0;
};

struct Captured {
  std::vector<std::filesystem::path> in_order;  ///< what was read, as it was made
  model::Session session;
  std::vector<NcuPart> parts;  ///< of reports of which every result was read
  std::vector<std::string> notes;
};

/// The session that tells more of the two timelines of one program: the one with GPU work, else
/// native, else the other. Null where neither is there.
[[nodiscard]] const model::Session* better_timeline(const model::Session* native,
                                                    const model::Session* nsys);

/// Sessions of captures that were read already, by path.
using Sessions = std::map<std::filesystem::path, model::Session>;

/// Reads what is not in `read`, folds names and joins. kUsage for no input; the readers' errors,
/// with their places.
[[nodiscard]] base::Result<Captured> read_captures(std::span<const std::filesystem::path> inputs,
                                                   const read::Options& options,
                                                   const analyze::NameFolder& names,
                                                   Sessions read = {});

/// Captures of a finished run, below `inputs`, that are gone or shorter than its manifest has them:
/// a file that was cut between two blocks looks whole. `known`: what their readers noticed by
/// themselves.
[[nodiscard]] std::vector<model::Loss> missing_captures(
    const std::filesystem::path& run,
    std::span<const std::filesystem::path> inputs,
    const std::vector<model::Loss>& known);

/// What a file is that others read, so that an output does not replace it: "a baseline", "a
/// recording (native)"; "" for any other.
[[nodiscard]] std::string kept_file(const std::filesystem::path& file);

}  // namespace rangescope::profile
