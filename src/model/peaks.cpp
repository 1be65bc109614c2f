#include "model/peaks.hpp"

namespace rangescope::model {

namespace {

/// Does the name go on behind a match with what makes it another product: A100 behind A10, RTX 3080
/// Ti behind RTX 3080, a Laptop GPU behind the desktop's?
bool another(std::string_view rest) {
  const auto letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (!rest.empty() && letter(rest.front()))
    return true;
  for (const std::string_view suffix : {" Ti", " SUPER", " D", " Laptop", " Max-Q", " Mobile"})
    if (rest.starts_with(suffix) && (rest.size() == suffix.size() || !letter(rest[suffix.size()])))
      return true;
  return false;
}

}  // namespace

const Peaks* find_peaks(std::span<const Peaks> all, std::string_view device_name) {
  const Peaks* best = nullptr;
  std::size_t longest = 0;
  for (const Peaks& candidate : all) {
    for (const std::string& match : candidate.match) {
      const std::size_t place = device_name.find(match);
      if (match.size() > longest && place != std::string_view::npos &&
          !another(device_name.substr(place + match.size()))) {
        best = &candidate;
        longest = match.size();
      }
    }
  }
  return best;
}

double host_link_of(std::span<const Peaks> peaks, std::span<const std::string> gpus) {
  std::vector<Peaks> with_link;
  for (const Peaks& of_gpu : peaks) {
    if (of_gpu.host_link_bytes_per_s > 0)
      with_link.push_back(of_gpu);
  }
  for (const std::string& gpu : gpus) {
    const Peaks* found = find_peaks(with_link, gpu);
    if (found != nullptr)
      return found->host_link_bytes_per_s;
  }
  return 0;
}

}  // namespace rangescope::model
