// Reader of what PyTorch's `key_averages().table()` prints, as people paste it (docs/formats/key-averages.md):
//
//   ---------  ------------  ------------  ------------  ------------  ------------
//        Name    Self CPU %      Self CPU     CPU total     Self CUDA    # of Calls
//   ---------  ------------  ------------  ------------  ------------  ------------
//    aten::mm        45.58%     572.000us     576.000us     319.000us             1
//   ---------  ------------  ------------  ------------  ------------  ------------
//   Self CPU time total: 1.255ms
//
// Other text may surround it. Of several tables the first one is read: people print one recording sorted twice.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::averages {

extern const Reader kReader;

/// kBadData without a table of calls and times.
[[nodiscard]] base::Result<model::Session> read_text(std::string_view text, const std::string& name);

}  // namespace rangescope::read::averages
