#include "inject/mpi/run.hpp"

#include "inject/mpi/communicators.hpp"
#include "inject/mpi/requests.hpp"

namespace rangescope::inject::mpi {
namespace {

class Call {
 public:
  Call(Function& function, Language language, Word* words, int count, Invoke invoke, void* real)
      : function_(function),
        arguments_(function, words, language),
        words_(words),
        count_(count),
        invoke_(invoke),
        real_(real) {}

  int run() {
    switch (function_.act) {
      case Act::kPrepare: return prepare();
      case Act::kStart: return start();
      case Act::kComplete:
      case Act::kTest: return complete();
      case Act::kFree: {
        (void)active_requests.take(arguments_.handle_at('R'));
        return call_mpi();
      }
      case Act::kForget: return free_communicator();
      case Act::kLook: return probe_without_waiting();
      case Act::kTake: return receive_probed();
      case Act::kTakeLater: return begin_receive_of_probed();
      default: return call();
    }
  }

 private:
  /// The result of MPI's own function; in Fortran that is in the last argument.
  int call_mpi() {
    const int returned = invoke_(real_, words_);
    if (!arguments_.fortran())
      return returned;
    const int* const error = reinterpret_cast<const int*>(words_[count_]);
    if (error == nullptr)
      return 0;
    return *error;
  }

  [[nodiscard]] Word communicator_or_window() const {
    return arguments_.handle(arguments_.has('c') ? 'c' : 'w');
  }

  /// Sets peer and tag from the arguments; returns which fields were set.
  std::uint8_t set_begun(Begun& begun) const {
    std::uint8_t says = 0;
    const auto rank = [&](char role) { return abi().rank(arguments_.number(role)); };
    if (arguments_.has('p')) {
      says |= kSaysPeer;
      begun.peer = rank('p');
    }
    if (arguments_.has('g')) {
      says |= kSaysTag;
      begun.tag = arguments_.number('g');
    }
    if (arguments_.has('q')) {
      says |= kSaysSource;
      begun.source = rank('q');
      begun.source_tag = arguments_.number('h');
    }
    return says;
  }

  [[nodiscard]] bool is_message() const { return arguments_.has('g'); }

  int call() {
    if (!arguments_.has('c') && !arguments_.has('w')) {
      const Range range(function_.range_name());
      return call_mpi();
    }
    Begun begun{};
    std::uint8_t says = set_begun(begun);
    if (function_.act == Act::kBegin || function_.act == Act::kProbe) {
      says |= kSaysRequest;
      begun.request = next_number();
    }
    const Word parent = communicator_or_window();
    Range range(function_.range_name(), parent, says, begun);
    alignas(8) char status[24];
    if (function_.act == Act::kReceive && arguments_.is_ignored('S'))
      arguments_.word('S') = reinterpret_cast<Word>(status);
    const int result = call_mpi();
    if (result != 0) {
      if (is_message())
        set_failed(range);
      return result;
    }
    if (function_.act == Act::kReceive)
      set_received(range, begun);
    else if ((says & kSaysRequest) != 0)
      follow_request(range, begun);
    else
      range.bytes(sent_bytes(range.self(), begun));
    note_made(parent);
    return result;
  }

  void follow_request(Range& range, const Begun& begun) const {
    const bool sends = !function_.receives || arguments_.has('q');
    const std::uint64_t bytes = sends ? sent_bytes(range.self(), begun) : kUnknownBytes;
    range.bytes(bytes);
    if (!range.is_followed())
      return;
    const Word handle = arguments_.handle_at(function_.act == Act::kProbe ? 'M' : 'R');
    put(handle, {begun.request, bytes, begun.peer, begun.tag, function_.receives});
  }

  /// MPI does not read the type of a call between two groups, or to MPI_PROC_NULL, so it may be
  /// invalid.
  [[nodiscard]] std::uint64_t sent_bytes(int self, const Begun& begun) const {
    const bool has_no_peer = is_message() && begun.peer == -2;
    if (self < 0 || has_no_peer)
      return kUnknownBytes;
    return arguments_.bytes(self);
  }

  /// There was no message.
  void set_failed(Range& range) const {
    range.received_from(-2, 0, false);
    if (arguments_.has('q'))
      range.received_from(-2, 0, true);
  }

  void set_received(Range& range, const Begun& begun) const {
    const void* const status = arguments_.pointer('S');
    const bool exchange = arguments_.has('q');
    if (exchange)
      range.bytes(sent_bytes(range.self(), begun));
    else if (status != nullptr)
      range.bytes(abi().bytes(status));
    if (status != nullptr)
      range.received_from(abi().source(status), abi().tag(status), exchange);
  }

  /// Notes a communicator or window that the call has made.
  void note_made(Word parent) const {
    Word communicator = 0;
    if (arguments_.has('C'))
      communicator = arguments_.handle_at('C');
    if (communicator != 0) {
      if (arguments_.has('R'))
        note_copy(parent, communicator);
      else if (arguments_.has('a'))
        note_group(parent, communicator, arguments_.number('a'));
      else
        note_communicator(parent, communicator);
    }
    Word window = 0;
    if (arguments_.has('W'))
      window = arguments_.handle_at('W');
    if (window != 0)
      note_window(parent, window);
  }

  int prepare() {
    Begun begun{};
    (void)set_begun(begun);
    const Word comm = communicator_or_window();
    const int result = call_mpi();
    if (result != 0)
      return result;
    std::uint64_t bytes = kUnknownBytes;
    if (!function_.receives)
      bytes = sent_bytes(communicator_of(comm).self, begun);
    put(arguments_.handle_at('R'),
        {0, bytes, begun.peer, begun.tag, function_.receives, function_.start_name(), comm});
    return result;
  }

  int start() {
    const Range range(function_.range_name());
    const int requests = arguments_.number('n', 1);
    for (int i = 0; i < requests && arguments_.word('R') != 0; ++i) {
      const Word request = arguments_.handle_at('R', static_cast<std::size_t>(i));
      Posted posted = active_requests.take(request);
      if (posted.start != nullptr) {
        const std::uint64_t number = next_number();
        Range started(posted.start,
                      posted.comm,
                      kSaysPeer | kSaysTag | kSaysRequest,
                      {0, number, posted.peer, posted.tag, 0, 0, 0, 0});
        started.bytes(posted.bytes);
        posted.number = started.is_followed() ? number : 0;
      }
      put(request, posted);
    }
    return call_mpi();
  }

  int complete() {
    Completing completing(arguments_);
    if (function_.act == Act::kTest) {
      const int result = call_mpi();
      completing.finish(result == 0);
      if (completing.any()) {
        Range range(function_.range_name());
        completing.attach_to(range);
      }
      return result;
    }
    Range range(function_.range_name());
    const int result = call_mpi();
    completing.finish(result == 0);
    completing.attach_to(range);
    return result;
  }

  /// Begins a receive only if there is a message.
  int probe_without_waiting() {
    const int result = call_mpi();
    if (result != 0 || *arguments_.pointer<int>('f') == 0)
      return result;
    Begun begun{};
    const std::uint8_t says = set_begun(begun);
    begun.request = next_number();
    const Range range(function_.range_name(), communicator_or_window(), says | kSaysRequest, begun);
    if (range.is_followed())
      put(arguments_.handle_at('M'), {begun.request, kUnknownBytes, begun.peer, begun.tag, true});
    return result;
  }

  /// Forgets the handle before the call, after which another thread may get the same one.
  int free_communicator() {
    const bool is_window = arguments_.has('W');
    const Word handle = arguments_.handle_at(is_window ? 'W' : 'C');
    if (is_window) {
      const Range range(function_.range_name(), handle, 0, {});
      forget(handle);
      return call_mpi();
    }
    forget(handle);
    return call_mpi();
  }

  /// Ends the receive that MPI_Mprobe began.
  int receive_probed() {
    const Posted posted = active_requests.take(arguments_.handle_at('M'));
    Completion completion{};
    nvtxPayloadData_t data{};  // outlives the range
    Range range(function_.range_name());
    alignas(8) char own_status[24];
    if (arguments_.is_ignored('S'))
      arguments_.word('S') = reinterpret_cast<Word>(own_status);
    const int result = call_mpi();
    if (result != 0 || posted.number == 0 || arguments_.word('S') == 0)
      return result;
    const void* const status = arguments_.pointer('S');
    completion = {posted.number, abi().bytes(status), abi().source(status), abi().tag(status)};
    data = payload_of(completion);
    range.completed(&data, 1);
    return result;
  }
  int begin_receive_of_probed() {
    const Posted posted = active_requests.take(arguments_.handle_at('M'));
    const Range range(function_.range_name());
    const int result = call_mpi();
    if (result == 0)
      put(arguments_.handle_at('R'), posted);
    return result;
  }

  Function& function_;
  Arguments arguments_;
  Word* words_;
  int count_;
  Invoke invoke_;
  void* real_;
};

}  // namespace

int run(Function& function,
        Language language,
        Word* words,
        int count,
        Invoke invoke,
        const void* caller) {
  void* const real = function.real_function(language, caller);
  constexpr int kOtherError = 15;  // MPI_ERR_OTHER, or a similar error, in every MPI
  if (real == nullptr)
    return kOtherError;
  const Abi& mpi = abi(caller);
  if (mpi.kind == Abi::Kind::kUnknown && language < Language::kFortran) {
    const Range range(function.range_name());
    return invoke(real, words);
  }
  // Open MPI's Fortran functions call PMPI's, so their range is made here. Those of other MPIs call
  // MPI's functions, which are seen here again. With module mpi_f08 it is the opposite: Open MPI's
  // call its older Fortran functions; MPICH's for calls without a buffer call PMPI's.
  const auto calls_pmpi =
      mpi.kind == Abi::Kind::kOpenMpi ? Language::kFortran : Language::kFortran08;
  if (language >= Language::kFortran && language != calls_pmpi)
    return invoke(real, words);
  return Call(function, language, words, count, invoke, real).run();
}

}  // namespace rangescope::inject::mpi
