# Cross-builds for arm64 with Debian's crossbuild-essential-arm64, against what packaging/fetch.sh put into
# RANGESCOPE_PORTABLE; what is built runs under qemu-user, with Debian 11's libc.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RANGESCOPE_PORTABLE)
set(CMAKE_FIND_ROOT_PATH ${RANGESCOPE_PORTABLE}/libraries)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
# Headers of both architectures are the same, but for those that a library keeps apart (zconf.h).
include_directories(SYSTEM ${RANGESCOPE_PORTABLE}/libraries/usr/include/aarch64-linux-gnu)
# As on x86-64, where g++ keeps products and sums apart: the same numbers on both.
add_compile_options(-ffp-contract=off)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;${RANGESCOPE_PORTABLE}/sysroot)
