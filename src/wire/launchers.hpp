// The environment variables in which launchers pass a process its rank in a parallel job: torchrun,
// Open MPI, PMIx, PMI (MPICH, Intel MPI), Slurm. The first that is set counts.
#pragma once

namespace rangescope::wire {

inline constexpr const char* kRankVariables[] = {
    "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK"};
inline constexpr const char* kLocalRankVariables[] = {"LOCAL_RANK",
                                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                                      "MPI_LOCALRANKID",
                                                      "PMI_LOCAL_RANK",
                                                      "SLURM_LOCALID"};
inline constexpr const char* kLocalWorldVariables[] = {
    "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
inline constexpr const char* kWorldVariables[] = {
    "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
inline constexpr unsigned kMostRanks = 100000000;

/// Parses a rank or size; false if the text is not one.
[[nodiscard]] inline bool parse_rank(const char* text, unsigned& value) {
  if (text == nullptr || *text == '\0')
    return false;
  for (value = 0; *text >= '0' && *text <= '9' && value < kMostRanks; ++text)
    value = value * 10 + static_cast<unsigned>(*text - '0');
  return *text == '\0';
}

/// Whether `rank` is in a list like "0-7,16".
[[nodiscard]] inline bool lists_rank(const char* list, unsigned rank) {
  const auto number = [&list] {
    unsigned value = 0;
    for (; *list >= '0' && *list <= '9' && value < kMostRanks; ++list)
      value = value * 10 + static_cast<unsigned>(*list - '0');
    return value;
  };
  while (*list >= '0' && *list <= '9') {
    const unsigned first = number();
    unsigned last = first;
    if (*list == '-') {
      ++list;
      last = number();
    }
    if (first <= rank && rank <= last)
      return true;
    if (*list == ',')
      ++list;
    while (*list == ' ')
      ++list;
  }
  return false;
}

}  // namespace rangescope::wire
