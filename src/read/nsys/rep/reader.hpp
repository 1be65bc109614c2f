// Reader of Nsight Systems reports, .nsys-rep and .qdrep, and of the .qdstrm that is left when nsys
// could not import.
//
// These formats are not documented; the user's own nsys turns them into SQLite (`nsys export`), and
// a .qdstrm into a report first (QdstrmImporter of the same version). They are recognized by their
// first bytes:
//
//   "NVIDIA Tegra Profiler Report 1."                 reports up to 2023
//   "NVIDIA Tegra Profiler Report 2024@6@2@225-..."   reports from 2024 on: the version that wrote
//   it "U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-..."   stream
//
// What was made is kept as FILE.rangescope-SIZE-MTIME.sqlite next to the file (or in
// $XDG_CACHE_HOME/rangescope where that is not writable), readable by its owner only, since an
// export holds the environment of the profiled program.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::nsys_rep {

extern const Reader kReader;

/// A .qdstrm as a report, by the importer of this nsys. kToolMissing where it has none or a library
/// is missing.
[[nodiscard]] base::Result<void> import_stream(const std::filesystem::path& nsys,
                                               const std::filesystem::path& stream,
                                               const std::filesystem::path& report);

}  // namespace rangescope::read::nsys_rep
