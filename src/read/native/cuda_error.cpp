#include "read/native/cuda_error.hpp"

#include <algorithm>
#include <string>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "wire/cuda_error.hpp"

namespace rangescope::read::native {

void note_cuda_error(const std::filesystem::path& folder, model::Session& session) {
  constexpr std::size_t kMostText = 500;
  for (const std::filesystem::path& captures : {folder, folder / "native"}) {
    const auto text = base::read_file(captures / wire::kCudaErrorFile);
    if (!text || text->empty())
      continue;
    const std::string line = text->substr(0, std::min(kMostText, text->find('\n')));
    session.losses.push_back({"cuda_failed", 1, base::printable(line)});
    return;
  }
}

}  // namespace rangescope::read::native
