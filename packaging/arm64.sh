#!/usr/bin/env bash
# arm64.sh CHECKOUT BUILD PORTABLE: the tests of units and of profiled programs, and the demo, built for arm64 against what
# fetch.sh put into PORTABLE and run under qemu-user, with Debian 11's libc. What qemu-user or the stand-in machine lacks is
# left out, and said. Programs start each other, so the kernel has to know qemu (binfmt_misc; root sets that up where
# nobody did). Exit code: 0 when all passed.
set -euo pipefail
root=${1:?usage: arm64.sh CHECKOUT BUILD PORTABLE} build=$2 portable=$3
die() { printf 'arm64: error: %s\n  hint: %s\n' "$1" "$2" >&2; exit 69; }
cmake --preset dev -S "$root" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$root/cmake/arm64.cmake" -DRANGESCOPE_PORTABLE="$portable" \
  -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DRANGESCOPE_BENCH=OFF -DRANGESCOPE_UNITY=ON \
  '-DCMAKE_CXX_FLAGS=-O1 -Wno-maybe-uninitialized' >"$build.log" 2>&1 || { tail -n 20 "$build.log" >&2; exit 1; }
cmake --build "$build" --target sanitized bin/rangescope bin/llm >>"$build.log" 2>&1 || { tail -n 30 "$build.log" >&2; exit 1; }
known=/proc/sys/fs/binfmt_misc
[[ -e $known/register ]] || mount -t binfmt_misc binfmt_misc "$known" 2>/dev/null || true
if [[ ! -e $known/qemu-aarch64 ]]; then
  cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$known/register" 2>/dev/null ||
    die "the kernel does not start programs for arm64" "As root: cat /usr/lib/binfmt.d/qemu-aarch64.conf >$known/register"
fi

# Suite.Name of GoogleTest|what is missing
left_out=(
  'Process.Sigterm*|qemu runs as a process of its own name: ps and /proc/PID/cmdline show it'
  'Process.TimeLimitEndsWhatLeft*|the same'
  'Process.SaysWhyItCannotRun|what is no program is answered by qemu'
  'HeldRuns.RemovalStaysOnOneFileSystem|openat2'
  'PythonModules.*|process_vm_readv'
  'HostilePython.*|process_vm_readv'
  'PublishedPython.*|process_vm_readv'
  'Scenario.Fork*|MADV_WIPEONFORK, which qemu 7.2 takes and does not do: the library sees no fork'
  'Interrupted.Fork*|the same'
  'Interrupted.Schedules|the same'
  'Scenario.OwnLimitOnFileSize|mremap of size 0: every chunk then needs a descriptor and room under the limit'
  'Scenario.NoDescriptorsLeft|the same'
  'Scenario.NoMemoryLeft|RLIMIT_AS'
  'Scenario.PythonChildrenForkedAndSpawned|a Python for arm64'
  'Cornered.AMapCannotBeMadeTwice|seccomp'
  'Cornered.Filter*|seccomp'
  'Cornered.SetUserIdLeavesNothingOfAnotherUser|rights of a file (Debian registers qemu without C)'
)
filter=-
for line in "${left_out[@]}"; do
  test=${line%%|*}
  suite=${test%%.*} name=${test#*.}
  grep -rqE "TEST(_F|_P)?\($suite, ${name%%\**}" "$root/src" "$root/tests" || die "there is no test $test" "Remove it from $0"
  filter+=$test:
  printf 'left out: %s: %s\n' "$test" "${line#*|}"
done
export QEMU_LD_PREFIX=$portable/sysroot GTEST_FILTER=$filter
ctest --test-dir "$build" -L '^(unit|victim)$' --output-on-failure --no-tests=error -j "$(nproc)"
cd "$(mktemp -d)"
"$build/bin/rangescope" profile --no-project --cpu off -o table.txt -- "$build/bin/llm" --requests 1
grep decode table.txt
