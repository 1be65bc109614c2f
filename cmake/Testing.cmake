# What the sanitizer presets build and run: the unit tests and the victims (rangescope_gtest and rangescope_fuzz add to it).
add_custom_target(sanitized)
# What `./dev fuzz` builds.
add_custom_target(fuzzers)

# rangescope_gtest(NAME COMMAND target [LABELS label...] [TIMEOUT seconds] [ENVIRONMENT var=value...])
#
# A ctest of a GoogleTest program. Its XML goes to build/<preset>/cases/NAME.xml, where `./dev test` counts single cases.
function(rangescope_gtest name)
  cmake_parse_arguments(arg "" "COMMAND;TIMEOUT" "LABELS;ENVIRONMENT" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1800)  # for a busy machine: what hangs, not what is slow
  endif()
  if(CMAKE_CROSSCOMPILING)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 10")  # qemu-user
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND} "--gtest_output=xml:${PROJECT_BINARY_DIR}/cases/${name}.xml")
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${arg_ENVIRONMENT}")
  if(arg_LABELS MATCHES "unit|victim")
    add_dependencies(sanitized ${arg_COMMAND})
  endif()
endfunction()

# rangescope_script(NAME SCRIPT file [ARGS arg...] [LABELS label...] [TIMEOUT seconds] [NSYS])
#
# A ctest that runs a Python script (standard library only). Exit code 77 means skipped; a script may write a file with
# lines `pass|fail|skip <case>` to $RANGESCOPE_CASES to have its cases counted one by one. NSYS: it starts the
# real nsys, whose agents lose each other when several come and go at once, so such tests take turns.
function(rangescope_script name)
  cmake_parse_arguments(arg "NSYS" "SCRIPT;TIMEOUT" "ARGS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1800)  # for a busy machine: what hangs, not what is slow
  endif()
  add_test(NAME ${name} COMMAND ${RANGESCOPE_PYTHON} ${arg_SCRIPT} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
                       ENVIRONMENT "RANGESCOPE_CASES=${PROJECT_BINARY_DIR}/cases/${name}.txt;PYTHONDONTWRITEBYTECODE=1")
  if(arg_NSYS)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK nsys)
  endif()
endfunction()

# rangescope_fuzz(NAME SOURCE file CORPUS folder [LIBRARIES lib...])
#
# A fuzz target: the file defines LLVMFuzzerTestOneInput. In the preset `fuzz` (clang) it is a libFuzzer program, run for
# $RANGESCOPE_FUZZ_SECONDS by `./dev fuzz`. In every other build it is a unit test that replays the corpus, each file
# whole, cut short and with changed bytes, so that what was once found stays found. ThreadSanitizer's build has none.
function(rangescope_fuzz name)
  if(RANGESCOPE_SANITIZE STREQUAL "thread")
    return()
  endif()
  cmake_parse_arguments(arg "" "SOURCE;CORPUS" "LIBRARIES" ${ARGN})
  if(RANGESCOPE_FUZZ)
    add_executable(${name}_fuzz ${arg_SOURCE})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz.${name} COMMAND sh -c
             "mkdir -p found && exec $0 -max_total_time=\${RANGESCOPE_FUZZ_SECONDS:-60} -rss_limit_mb=4096 -timeout=20 -artifact_prefix=found/ new-${name} $1"
             $<TARGET_FILE:${name}_fuzz> ${arg_CORPUS})
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/new-${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
    add_dependencies(fuzzers ${name}_fuzz)
  else()
    if(NOT TARGET fuzz_replay)
      add_library(fuzz_replay OBJECT ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cpp)
      target_link_libraries(fuzz_replay PRIVATE rangescope_flags)
    endif()
    add_executable(${name}_fuzz ${arg_SOURCE} $<TARGET_OBJECTS:fuzz_replay>)
    rangescope_test_program(${name}_fuzz)
    add_test(NAME fuzz.${name} COMMAND ${name}_fuzz ${arg_CORPUS})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS unit TIMEOUT 600)
    add_dependencies(sanitized ${name}_fuzz)
  endif()
  target_link_libraries(${name}_fuzz PRIVATE ${arg_LIBRARIES} rangescope_flags)
endfunction()
