// CUPTI as found at run time: its functions, its version, and how it was found. Never linked.
//
// One library per process: a second copy of CUPTI, next to the program's own (PyTorch has one),
// would not see the subscriber of the first. Functions that some supported version lacks may be
// null; load() checks the others.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace rangescope::inject::cupti {

#define RANGESCOPE_CUPTI_REQUIRED(X)   \
  X(cuptiGetVersion)                   \
  X(cuptiGetResultString)              \
  X(cuptiSubscribe)                    \
  X(cuptiUnsubscribe)                  \
  X(cuptiEnableCallback)               \
  X(cuptiGetCallbackName)              \
  X(cuptiActivityRegisterCallbacks)    \
  X(cuptiActivityEnable)               \
  X(cuptiActivityDisable)              \
  X(cuptiActivityFlushAll)             \
  X(cuptiActivityGetNextRecord)        \
  X(cuptiActivityGetNumDroppedRecords) \
  X(cuptiActivitySetAttribute)         \
  X(cuptiGetTimestamp)                 \
  X(cuptiGetGraphNodeId)

#define RANGESCOPE_CUPTI_OPTIONAL(X)        \
  X(cuptiSubscribe_v2)                      \
  X(cuptiActivityRegisterTimestampCallback) \
  X(cuptiActivityEnableDriverApi)           \
  X(cuptiSetThreadIdType)                   \
  X(cuptiGetStreamIdEx)

/// `return RANGESCOPE_CUPTI_X(RANGESCOPE_CUPTI_NEED) true;` looks up the functions of the list one
/// by one, until one is missing.
#define RANGESCOPE_CUPTI_NEED(name) cupti.need(#name, name, why, why_bytes)&&

struct Api {
  void* library = nullptr;
  std::uint32_t version = 0;  ///< of cuptiGetVersion: 26 for 12.8, 130001 for 13.0 update 1
  char path[512] = {};        ///< of the loaded file

#define RANGESCOPE_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
  RANGESCOPE_CUPTI_REQUIRED(RANGESCOPE_CUPTI_MEMBER)
  RANGESCOPE_CUPTI_OPTIONAL(RANGESCOPE_CUPTI_MEMBER)
#undef RANGESCOPE_CUPTI_MEMBER

  /// Any other function of the library; null if it has none of that name.
  [[nodiscard]] void* find(const char* function) const;
  /// The same for a function that counters need: false, and one sentence in `why`, if the library
  /// lacks it.
  template <class Function>
  [[nodiscard]] bool need(const char* name,
                          Function& function,
                          char* why,
                          std::size_t why_bytes) const {
    function = reinterpret_cast<Function>(find(name));
    return function != nullptr || lacks(name, why, why_bytes);
  }
  bool lacks(const char* name, char* why, std::size_t why_bytes) const;
  /// CUPTI's own words for a result; never null.
  [[nodiscard]] const char* text(CUptiResult result) const;
};

/// ". Run as root ...": what to do if the hardware's counters are refused; "" if that is unknown.
[[nodiscard]] const char* advice_of(CUptiResult result);
/// The CUDA version of the driver in this process, 12080 for 12.8; 0 if it is unknown.
[[nodiscard]] int driver_version();
/// Calls `take` with each device of an initialized driver. CUPTI itself records devices only when
/// a context is made.
void each_device(void (*take)(void* user, const CUpti_ActivityDevice4& device), void* user);

/// Whether we know the records that this version of cuptiGetVersion writes. Other versions are
/// refused, because their records may differ.
[[nodiscard]] bool knows_records_of(std::uint32_t version);

/// "12.8" for 26, "13.0.1" for 130001; into `out`, returns it.
const char* version_name(std::uint32_t version, char* out, std::size_t size);

/// Looks for CUPTI ($RANGESCOPE_CUPTI, a copy that the process has mapped, the toolkits' usual
/// places, the loader's path) and fills `api`. On failure returns false and writes one sentence
/// into `why`.
[[nodiscard]] bool load(Api& api, char* why, std::size_t why_size);

// The subscription, which timeline and counters share. By default CUPTI allows one per process.
// From CUDA 13.3 on it can serve several tools if all ask for it: RANGESCOPE_CUPTI_SHARED=on, not
// yet run with a real one. Activities are then enabled for one subscriber, by other functions;
// those for the whole process are refused.

struct Subscription {
  CUpti_SubscriberHandle handle = nullptr;
  bool shared = false;

  CUptiResult turn(const Api& api, CUpti_ActivityKind kind, bool on) const;
  CUptiResult set(const Api& api, CUpti_ActivityAttribute attribute, std::uint8_t value) const;
  CUptiResult buffers(const Api& api,
                      CUpti_BuffersCallbackRequestFunc request,
                      CUpti_BuffersCallbackCompleteFunc complete) const;
  CUptiResult now(const Api& api, std::uint64_t* timestamp) const;
};

/// CUpti_SubscriberParams of CUDA 13.2; the size tells CUPTI which fields there are.
struct SubscriberParameters {
  std::size_t bytes;
  const char* name;
  char* old_name;
  std::size_t old_bytes;
  std::uint8_t shared, reserved[7];
};
static_assert(sizeof(SubscriberParameters) == 40);

/// Subscribes `callback`. On failure writes one sentence that says which tool holds CUPTI, if that
/// is known, and what to do.
[[nodiscard]] bool subscribe(const Api& api,
                             CUpti_CallbackFunc callback,
                             void* user,
                             Subscription& subscription,
                             char* why,
                             std::size_t why_size);

/// Another tool in this process, recognized by mapped files and environment variables: "Nsight
/// Systems", "Nsight Compute", "PyTorch's profiler (Kineto)", or null.
[[nodiscard]] const char* other_tool();

}  // namespace rangescope::inject::cupti
