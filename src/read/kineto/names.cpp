#include "read/kineto/names.hpp"

#include <utility>

namespace rangescope::read::kineto {

std::string cuda_name(std::string_view api) {
  if (!api.starts_with("hip"))
    return std::string(api);
  return "cuda" + std::string(api.substr(3));
}

std::uint64_t bytes_of(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::uint64_t> kTypes[] = {{"Float", 4},
                                                                   {"Half", 2},
                                                                   {"BFloat16", 2},
                                                                   {"Double", 8},
                                                                   {"Long", 8},
                                                                   {"Int", 4},
                                                                   {"Short", 2},
                                                                   {"Char", 1},
                                                                   {"Byte", 1},
                                                                   {"Bool", 1},
                                                                   {"ComplexFloat", 8},
                                                                   {"ComplexDouble", 16},
                                                                   {"Float8_e4m3fn", 1},
                                                                   {"Float8_e5m2", 1},
                                                                   {"Float8_e4m3fnuz", 1},
                                                                   {"Float8_e5m2fnuz", 1}};
  for (const auto& [name, bytes] : kTypes)
    if (name == dtype)
      return bytes;
  return 0;
}

std::string_view nccl_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kOperations[] = {
      {"reduce_scatter", "ncclReduceScatter"},
      {"allgather", "ncclAllGather"},
      {"all_gather", "ncclAllGather"},
      {"allreduce", "ncclAllReduce"},
      {"all_reduce", "ncclAllReduce"},
      {"broadcast", "ncclBroadcast"},
      {"all_to_all", "ncclAlltoAll"},
      {"alltoall", "ncclAlltoAll"},
      {"reduce", "ncclReduce"},
      {"gather", "ncclGather"},
      {"scatter", "ncclScatter"}};
  for (const auto& [part, call] : kOperations)
    if (name.find(part) != std::string_view::npos)
      return call;
  return {};
}

}  // namespace rangescope::read::kineto
