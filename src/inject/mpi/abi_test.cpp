// Handles and statuses as Open MPI and as MPICH lay them out.
#include "inject/mpi/abi.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <string>

#include "inject/mpi/function.hpp"
#include "inject/mpi/handles.hpp"
#include "inject/mpi/range.hpp"

namespace rangescope::inject::mpi {
namespace abi_test {

Abi open_mpi() {
  Abi abi{Abi::Kind::kOpenMpi, 8, 24, 0, 4};
  abi.no_request = 0x7f0000001000;
  abi.done_request = 0x7f0000002000;
  abi.proc_null = -2;
  return abi;
}
Abi mpich() {
  Abi abi{Abi::Kind::kMpich, 4, 20, 8, 12};
  abi.no_request = 0x2c000000;
  abi.proc_null = -1;
  return abi;
}

/// ompi_status_public_t
struct OpenMpiStatus {
  int source, tag, error, cancelled;
  std::uint64_t bytes;
};
/// MPI_Status of MPICH: of the second word the lowest bit says that the request was cancelled, the
/// others are the upper bits of the count.
struct MpichStatus {
  std::uint32_t count_low, count_high_and_cancelled;
  int source, tag, error;
};

TEST(MpiAbi, AHandleOfMpichIsHalfAWord) {
  EXPECT_EQ(mpich().handle(0xdeadbeef44000000), 0x44000000u);
  EXPECT_EQ(open_mpi().handle(0x7f0000001234), 0x7f0000001234u);
}

TEST(MpiAbi, RequestsThatWereCompleteAtOnceShareAHandle) {
  EXPECT_TRUE(open_mpi().is_shared(0x7f0000001000)) << "MPI_REQUEST_NULL";
  EXPECT_TRUE(open_mpi().is_shared(0x7f0000002000)) << "ompi_request_empty";
  EXPECT_FALSE(open_mpi().is_shared(0x7f0000003000));
  EXPECT_TRUE(mpich().is_shared(0x2c000000)) << "MPI_REQUEST_NULL";
  EXPECT_TRUE(mpich().is_shared(0x6c000000)) << "built in";
  EXPECT_FALSE(mpich().is_shared(0x98000001)) << "allocated";
}

TEST(MpiAbi, RanksHaveTheNumbersOfOpenMpi) {
  EXPECT_EQ(open_mpi().rank(3), 3);
  EXPECT_EQ(open_mpi().rank(-1), -1) << "MPI_ANY_SOURCE";
  EXPECT_EQ(open_mpi().rank(-2), -2) << "MPI_PROC_NULL";
  EXPECT_EQ(mpich().rank(3), 3);
  EXPECT_EQ(mpich().rank(-2), -1) << "MPI_ANY_SOURCE";
  EXPECT_EQ(mpich().rank(-1), -2) << "MPI_PROC_NULL";
}

TEST(MpiAbi, AStatusOfOpenMpi) {
  const OpenMpiStatus status{5, 77, 0, 0, 5'000'000'000};
  EXPECT_EQ(open_mpi().source(&status), 5);
  EXPECT_EQ(open_mpi().tag(&status), 77);
  EXPECT_EQ(open_mpi().bytes(&status), 5'000'000'000u);
  EXPECT_FALSE(open_mpi().is_cancelled(&status));
  const OpenMpiStatus cancelled{5, 77, 0, 1, 0};
  EXPECT_TRUE(open_mpi().is_cancelled(&cancelled));
}

TEST(MpiAbi, AStatusOfMpich) {
  const MpichStatus status{705'032'704, 1 << 1, 5, 77, 0};  // 5,000,000,000 bytes
  EXPECT_EQ(mpich().source(&status), 5);
  EXPECT_EQ(mpich().tag(&status), 77);
  EXPECT_EQ(mpich().bytes(&status), 5'000'000'000u);
  EXPECT_FALSE(mpich().is_cancelled(&status));
  const MpichStatus cancelled{0, 1, 5, 77, 0};
  EXPECT_TRUE(mpich().is_cancelled(&cancelled));
  EXPECT_EQ(mpich().bytes(&cancelled), 0u);
}

TEST(MpiAbi, AMessageOfNobodyHasNoSource) {
  const OpenMpiStatus of_open_mpi{-2, -1, 0, 0, 0};
  EXPECT_EQ(open_mpi().source(&of_open_mpi), -2);
  const MpichStatus of_mpich{0, 0, -1, -1, 0};
  EXPECT_EQ(mpich().source(&of_mpich), -2);
}

TEST(MpiAbi, AProcessWithoutMpiHasNone) {
  EXPECT_EQ(abi(reinterpret_cast<const void*>(&open_mpi)).kind, Abi::Kind::kUnknown);
  EXPECT_EQ(symbol("PMPI_Send", reinterpret_cast<const void*>(&open_mpi)), nullptr);
  EXPECT_EQ(variable("ompi_mpi_comm_world"), 0u);
}

TEST(MpiHandles, AValueIsTakenOnce) {
  Handles<int> values;
  EXPECT_TRUE(values.put(0x1000, 7));
  EXPECT_EQ(values.take(0x1000), 7);
  EXPECT_EQ(values.take(0x1000), 0);
}

TEST(MpiHandles, AHandleThatIsUsedAgainHasItsNewValue) {
  Handles<int> values;
  EXPECT_TRUE(values.put(0x1000, 7));
  EXPECT_TRUE(values.put(0x1000, 8));
  EXPECT_EQ(values.take(0x1000), 8);
  EXPECT_EQ(values.take(0x1000), 0) << "the first one is gone";
}

TEST(MpiHandles, HandlesOfOneShareAreToldApart) {
  Handles<int> values;
  for (Word handle = 0; handle < 1000; ++handle)
    EXPECT_TRUE(values.put(handle * 64, static_cast<int>(handle)));
  for (Word handle = 0; handle < 1000; handle += 2)
    EXPECT_EQ(values.take(handle * 64), static_cast<int>(handle));
  for (Word handle = 0; handle < 1000; ++handle)
    EXPECT_EQ(values.take(handle * 64), handle % 2 == 0 ? 0 : static_cast<int>(handle));
}

TEST(MpiHandles, AValueIsChangedInPlace) {
  Handles<int> values;
  EXPECT_TRUE(values.put(0x1000, 7));
  EXPECT_TRUE(values.with(0x1000, [](int& value) { ++value; }));
  EXPECT_FALSE(values.with(0x2000, [](int& value) { ++value; }));
  EXPECT_EQ(values.take(0x1000), 8);
}

// --- arguments ---

TEST(MpiArguments, ALetterIsTheArgumentAtItsPlace) {
  // MPI_Recv(buffer, count, type, source, tag, comm, status)
  const Function receive("MPI_Recv", Act::kReceive, ".ntpgcS", true);
  Word words[] = {0, 12, 0, 3, 99, 0x44000000, 0};
  const Arguments arguments(receive, words, Language::kC);
  EXPECT_EQ(arguments.number('n'), 12);
  EXPECT_EQ(arguments.number('p'), 3);
  EXPECT_EQ(arguments.number('g'), 99);
  EXPECT_FALSE(arguments.has('R'));
  EXPECT_EQ(arguments.number('R', -5), -5);
  EXPECT_EQ(arguments.pointer('R'), nullptr);
}

TEST(MpiArguments, TheUpperHalfOfANumberIsIgnored) {
  const Function send("MPI_Send", Act::kCall, ".n");
  Word words[] = {0, 0xdeadbeef0000000c};
  EXPECT_EQ(Arguments(send, words, Language::kC).number('n'), 12);
  Word negative[] = {0, 0x00000000fffffffe};
  EXPECT_EQ(Arguments(send, negative, Language::kC).number('n'), -2);
}

TEST(MpiArguments, FortranPassesAddresses) {
  const Function send("MPI_Send", Act::kCall, ".n");
  int count = 12;
  Word words[] = {0, reinterpret_cast<Word>(&count)};
  EXPECT_EQ(Arguments(send, words, Language::kFortran).number('n'), 12);
  EXPECT_EQ(Arguments(send, words, Language::kFortran08).number('n'), 12);
}

TEST(MpiArguments, FortranCountsFromOne) {
  const Function wait_some("MPI_Waitsome", Act::kComplete, "nRkxS");
  int indexes[] = {1, 4};
  Word words[] = {0, 0, 0, reinterpret_cast<Word>(indexes), 0};
  EXPECT_EQ(Arguments(wait_some, words, Language::kC).index('x', 1), 4);
  EXPECT_EQ(Arguments(wait_some, words, Language::kFortran).index('x', 1), 3);
}

TEST(MpiArguments, AMessageOfNoItemsHasNoBytes) {
  const Function send("MPI_Send", Act::kCall, ".nt");
  Word words[] = {0, 0, 0};
  EXPECT_EQ(Arguments(send, words, Language::kC).bytes(0), 0u);
}

TEST(MpiArguments, BytesAreUnknownWithoutACountOrAType) {
  const Function barrier("MPI_Barrier", Act::kCall, "c");
  Word communicator[] = {0};
  EXPECT_EQ(Arguments(barrier, communicator, Language::kC).bytes(0), kUnknownBytes);
  const Function send("MPI_Send", Act::kCall, ".nt");
  Word negative[] = {0, static_cast<Word>(-1), 0};
  EXPECT_EQ(Arguments(send, negative, Language::kC).bytes(0), kUnknownBytes);
  Word unsized[] = {0, 8, 0x4c000101};
  EXPECT_EQ(Arguments(send, unsized, Language::kC).bytes(0), kUnknownBytes)
      << "no MPI says how large its type is";
}

}  // namespace abi_test
}  // namespace rangescope::inject::mpi
