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
        (void)under_way.take(arguments_.handle_at('R'));
        return go();
      }
      case Act::kForget: return forgotten();
      case Act::kLook: return look();
      case Act::kTake: return take();
      case Act::kTakeLater: return take_later();
      default: return call();
    }
  }

 private:
  int go() {
    const int returned = invoke_(real_, words_);
    if (!arguments_.fortran()) return returned;
    const int* const error = reinterpret_cast<const int*>(words_[count_]);
    return error == nullptr ? 0 : *error;
  }

  [[nodiscard]] Word place() const { return arguments_.handle(arguments_.has('c') ? 'c' : 'w'); }

  /// What the call says of itself, by its arguments.
  std::uint8_t begun(Begun& begun) const {
    std::uint8_t says = 0;
    const auto rank = [&](char role) { return abi().rank(arguments_.number(role)); };
    if (arguments_.has('p')) says |= kSaysPeer, begun.peer = rank('p');
    if (arguments_.has('g')) says |= kSaysTag, begun.tag = arguments_.number('g');
    if (arguments_.has('q'))
      says |= kSaysSource, begun.source = rank('q'), begun.source_tag = arguments_.number('h');
    return says;
  }

  [[nodiscard]] bool is_message() const { return arguments_.has('g'); }

  int call() {
    if (!arguments_.has('c') && !arguments_.has('w')) {
      const Range range(function_.text());
      return go();
    }
    Begun says_what{};
    std::uint8_t says = begun(says_what);
    if (function_.act == Act::kBegin || function_.act == Act::kProbe)
      says |= kSaysRequest, says_what.request = next_number();
    const Word in = place();
    Range range(function_.text(), in, says, says_what);
    alignas(8) char status[24];
    if (function_.act == Act::kReceive && arguments_.is_ignored('S'))
      arguments_.word('S') = reinterpret_cast<Word>(status);
    const int result = go();
    if (result != 0) {
      if (is_message()) failed(range);
      return result;
    }
    if (function_.act == Act::kReceive) {
      received(range, says_what);
    } else if ((says & kSaysRequest) != 0) {
      const bool sends = !function_.receives || arguments_.has('q');
      const Posted posted{says_what.request, sends ? sent(range.self(), says_what) : kUnknownBytes,
                          says_what.peer, says_what.tag, function_.receives};
      range.bytes(posted.bytes);
      if (range.is_followed())
        put(arguments_.handle_at(function_.act == Act::kProbe ? 'M' : 'R'), posted);
    } else {
      range.bytes(sent(range.self(), says_what));
    }
    made(in);
    return result;
  }

  /// Of the types that such calls have between two groups, or to nobody, MPI reads none: nor do we.
  [[nodiscard]] std::uint64_t sent(int self, const Begun& begun) const {
    const bool nobody = is_message() && begun.peer == -2;
    return self < 0 || nobody ? kUnknownBytes : arguments_.bytes(self);
  }

  /// A message that never was.
  void failed(Range& range) const {
    range.came(-2, 0, false);
    if (arguments_.has('q')) range.came(-2, 0, true);
  }

  void received(Range& range, const Begun& begun) const {
    const void* const status = arguments_.pointer('S');
    const bool exchange = arguments_.has('q');
    if (exchange)
      range.bytes(sent(range.self(), begun));
    else if (status != nullptr)
      range.bytes(abi().bytes(status));
    if (status != nullptr) range.came(abi().source(status), abi().tag(status), exchange);
  }

  void made(Word parent) const {
    const auto each = [&](char role, auto note) {
      if (const Word made = arguments_.has(role) ? arguments_.handle_at(role) : 0; made != 0)
        note(made);
    };
    each('C', [&](Word made) {
      if (arguments_.has('R'))
        note_copy(parent, made);
      else if (arguments_.has('a'))
        note_group(parent, made, arguments_.number('a'));
      else
        note_communicator(parent, made);
    });
    each('W', [&](Word made) { note_window(parent, made); });
  }

  int prepare() {
    Begun what{};
    (void)begun(what);
    const Word in = place();
    const int result = go();
    if (result == 0)
      put(arguments_.handle_at('R'),
          {0, function_.receives ? kUnknownBytes : sent(communicator_of(in).self, what), what.peer,
           what.tag, function_.receives, function_.start_text(), in});
    return result;
  }

  int start() {
    const Range range(function_.text());
    const int all = arguments_.number('n', 1);
    for (int i = 0; i < all && arguments_.word('R') != 0; ++i) {
      const Word request = arguments_.handle_at('R', static_cast<std::size_t>(i));
      Posted posted = under_way.take(request);
      if (posted.start != nullptr) {
        const std::uint64_t number = next_number();
        Range begun(posted.start, posted.comm, kSaysPeer | kSaysTag | kSaysRequest,
                    {0, number, posted.peer, posted.tag, 0, 0, 0, 0});
        begun.bytes(posted.bytes);
        posted.number = begun.is_followed() ? number : 0;
      }
      put(request, posted);
    }
    return go();
  }

  int complete() {
    Completing completing(arguments_);
    if (function_.act == Act::kTest) {
      const int result = go();
      completing.done(result == 0);
      if (completing.any()) {
        Range range(function_.text());
        completing.tell(range);
      }
      return result;
    }
    Range range(function_.text());
    const int result = go();
    completing.done(result == 0);
    completing.tell(range);
    return result;
  }

  /// The begin of a receive only where there is a message.
  int look() {
    const int result = go();
    if (result != 0 || *arguments_.pointer<int>('f') == 0) return result;
    Begun what{};
    const std::uint8_t says = begun(what);
    what.request = next_number();
    const Range range(function_.text(), place(), says | kSaysRequest, what);
    if (range.is_followed())
      put(arguments_.handle_at('M'), {what.request, kUnknownBytes, what.peer, what.tag, true});
    return result;
  }

  /// Before the call, behind which another thread may get the same handle.
  int forgotten() {
    const bool window = arguments_.has('W');
    const Word handle = arguments_.handle_at(window ? 'W' : 'C');
    if (window) {
      const Range range(function_.text(), handle, 0, {});
      forget(handle);
      return go();
    }
    forget(handle);
    return go();
  }

  /// A message that was probed: what MPI_Mprobe began ends here.
  int take() {
    const Posted posted = under_way.take(arguments_.handle_at('M'));
    Completion completion{};
    nvtxPayloadData_t data{};  // outlives the range
    Range range(function_.text());
    alignas(8) char status[24];
    if (arguments_.is_ignored('S')) arguments_.word('S') = reinterpret_cast<Word>(status);
    const int result = go();
    if (result != 0 || posted.number == 0 || arguments_.word('S') == 0) return result;
    const void* const said = arguments_.pointer('S');
    completion = {posted.number, abi().bytes(said), abi().source(said), abi().tag(said)};
    data = payload_of(completion);
    range.completed(&data, 1);
    return result;
  }
  int take_later() {
    const Posted posted = under_way.take(arguments_.handle_at('M'));
    const Range range(function_.text());
    const int result = go();
    if (result == 0) put(arguments_.handle_at('R'), posted);
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

int run(Function& function, Language language, Word* words, int count, Invoke invoke,
        const void* caller) {
  void* const real = function.behind(language, caller);
  constexpr int kOtherError = 15;  // MPI_ERR_OTHER, near enough in every MPI
  if (real == nullptr) return kOtherError;
  const Abi& mpi = abi(caller);
  if (mpi.kind == Abi::Kind::kUnknown && language < Language::kFortran) {
    const Range range(function.text());
    return invoke(real, words);
  }
  // Fortran of Open MPI calls PMPI's functions, that of the others MPI's, which come by here again.
  // With module mpi_f08 it is the other way round: Open MPI's goes on to its Fortran of old,
  // MPICH's of what has no buffer to PMPI's.
  const auto unseen = mpi.kind == Abi::Kind::kOpenMpi ? Language::kFortran : Language::kFortran08;
  if (language >= Language::kFortran && language != unseen) return invoke(real, words);
  return Call(function, language, words, count, invoke, real).run();
}

}  // namespace rangescope::inject::mpi
