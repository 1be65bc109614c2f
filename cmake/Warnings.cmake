# Warnings and sanitizers as one interface library that every target of ours links.
add_library(rangescope_flags INTERFACE)
target_compile_options(rangescope_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align
                       -Woverloaded-virtual -Wno-missing-field-initializers
                       # g++ 12 reports std::string itself where it is inlined out of a precompiled header (GCC bug 105329 and
                       # its kin). AddressSanitizer's build sees what these would have told of our own code.
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
                         -Wno-stringop-overread>)
if(DEFINED ENV{CI} AND NOT RANGESCOPE_SANITIZE)
  target_compile_options(rangescope_flags INTERFACE -Werror)
endif()
if(RANGESCOPE_SANITIZE)
  # Instrumentation hides from g++ what was checked before a value is read: the plain builds warn of the true ones.
  target_compile_options(rangescope_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_compile_options(rangescope_flags INTERFACE -fsanitize=${RANGESCOPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(rangescope_flags INTERFACE -fsanitize=${RANGESCOPE_SANITIZE})
  if(RANGESCOPE_SANITIZE MATCHES address)
    # AddressSanitizer's checks as calls: a fifth less to compile, and tests take a fifth longer.
    target_compile_options(rangescope_flags INTERFACE
                           $<$<CXX_COMPILER_ID:GNU>:--param=asan-instrumentation-with-call-threshold=0>)
  endif()
  if(RANGESCOPE_SANITIZE MATCHES undefined)
    # These checks look at every member access: they double what a file takes to compile. AddressSanitizer sees what matters
    # of them at run time.
    target_compile_options(rangescope_flags INTERFACE -fno-sanitize=null,vptr,object-size,alignment,nonnull-attribute,returns-nonnull-attribute,pointer-overflow)
  endif()
endif()
if(RANGESCOPE_FUZZ)
  target_compile_options(rangescope_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
