# rangescope_precompile(TARGET OWNER [header...])
#
# The standard library's common headers, and those named, parsed once: for OWNER, whose result every other TARGET of the
# same flags takes (macros of its own may differ, as long as those headers do not ask for them). The fuzz build, with
# another compiler, takes none, and so shows an include that was forgotten.
function(rangescope_precompile target owner)
  if(RANGESCOPE_FUZZ)
    return()
  endif()
  # On -pthread all must agree; through -fpch-preprocess ccache sees the headers.
  target_compile_options(${target} PRIVATE -pthread $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  if(NOT target STREQUAL owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    return()
  endif()
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <chrono> <cstdint> <filesystem> <fstream> <functional>
    <map> <memory> <optional> <set> <span> <string> <string_view> <unordered_map> <variant> <vector> ${ARGN})
endfunction()

# base/source_dir.hpp, defined in one object: the others of two checkouts are the same bytes then, and ccache finds them.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/source_dir.cpp CONTENT
     "#include \"base/source_dir.hpp\"\nconst char* const rangescope::base::source_dir = \"${PROJECT_SOURCE_DIR}\";\n")
add_library(rangescope_source_dir STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/source_dir.cpp)
target_include_directories(rangescope_source_dir PRIVATE ${PROJECT_SOURCE_DIR}/src)

# rangescope_test_program(TARGET)
#
# What is tested is optimized and instrumented; the tests themselves only have to compile quickly.
function(rangescope_test_program target)
  target_compile_options(${target} PRIVATE -O0 -g1)
  if(RANGESCOPE_SANITIZE STREQUAL "address,undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  # The precompiled headers of all tests were made with these definitions.
  target_link_libraries(${target} PRIVATE GTest::gtest rangescope_source_dir)
  rangescope_precompile(${target} base_test <gtest/gtest.h>)
endfunction()

# rangescope_together(TARGET)
#
# With RANGESCOPE_UNITY eight files are compiled as one: most of the time goes into headers. Names of a room's files must
# then differ also where they are local to a file (a test's stand in a namespace called after it).
add_library(unity_flags INTERFACE)
target_compile_options(unity_flags INTERFACE -Wno-shadow)  # of a name in another of the eight; linked last, it wins
function(rangescope_together target)
  if(RANGESCOPE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    target_link_libraries(${target} PRIVATE unity_flags)
  endif()
endfunction()

# rangescope_room(NAME [THREADS] [ROOMS room...] [LIBRARIES lib...])
#
# Makes the static library rangescope_NAME of every src/NAME/**/*.cpp that is no test, allowed to include (and linked to)
# only ROOMS, and, from every *_test.cpp beside the code, the test program NAME_test. A file X.tsv beside X.cpp is
# RANGESCOPE_TSV there, for base/embedded.hpp, and so are others of data. THREADS: it starts threads; other rooms cannot race, and are left out of
# ThreadSanitizer's build.
function(rangescope_room name)
  cmake_parse_arguments(arg "THREADS" "" "ROOMS;LIBRARIES" ${ARGN})
  if(RANGESCOPE_SANITIZE STREQUAL "thread" AND NOT arg_THREADS)
    set(RANGESCOPE_TESTS OFF)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(data ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB_RECURSE data CONFIGURE_DEPENDS ${data}/*.tsv ${data}/*.ptx ${data}/*.bash ${data}/*.zsh ${data}/*.sql
       ${data}/*.html)
  foreach(file ${data})
    string(REGEX REPLACE "[a-z]+$" "cpp" source ${file})
    cmake_path(GET file EXTENSION LAST_ONLY kind)
    string(TOUPPER "${kind}" kind)
    string(REPLACE "." "RANGESCOPE_" macro "${kind}")
    set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS ${file})
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS ${macro}="${file}")
  endforeach()
  if(sources)
    add_library(rangescope_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(rangescope_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(rangescope_${name} ${scope} ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(rangescope_${name} SYSTEM ${scope} ${EXPECTED_INCLUDE_DIR})
  list(TRANSFORM arg_ROOMS PREPEND rangescope_)
  target_link_libraries(rangescope_${name} ${scope} ${arg_ROOMS})
  if(sources)
    target_link_libraries(rangescope_${name} PUBLIC ${arg_LIBRARIES} PRIVATE rangescope_flags)
  endif()
  if(sources)
    rangescope_precompile(rangescope_${name} rangescope_base <fmt/format.h>)
    rangescope_together(rangescope_${name})
  endif()
  if(tests AND RANGESCOPE_TESTS)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE rangescope_${name} rangescope_flags GTest::gtest_main)
    rangescope_test_program(${name}_test)
    rangescope_together(${name}_test)
    if(RANGESCOPE_SANITIZE STREQUAL "thread")
      # A minute of statistics and zeros, all in one thread; and the sanitizer holds back the signal that ends demangling.
      set(chosen ENVIRONMENT "GTEST_FILTER=-*ErrorRate*:*AsOftenAsItSays*:*ABomb*:Demangle*")
    endif()
    rangescope_gtest(unit.${name} COMMAND ${name}_test LABELS unit ${chosen})
  endif()
endfunction()
