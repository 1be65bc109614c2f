# Libraries of Debian 12; `./dev deps` installs them.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(nlohmann_json 3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 REQUIRED)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
find_library(LIBIBERTY iberty REQUIRED)
# Call chains of code without frame pointers, and names of functions; without it sample/cpu/none.cpp stands for both.
pkg_check_modules(libdw IMPORTED_TARGET libdw libelf)
if(RANGESCOPE_PORTABLE)
  include(cmake/Portable.cmake)
else()
  find_package(fmt REQUIRED)
  find_package(yaml-cpp REQUIRED)
  pkg_check_modules(simdjson REQUIRED IMPORTED_TARGET simdjson)
endif()
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)
find_path(EXPECTED_INCLUDE_DIR tl/expected.hpp REQUIRED)
# CUPTI is only ever loaded at run time; with its headers the parts that use it are built.
find_path(RANGESCOPE_CUPTI_INCLUDE_DIR cupti.h
          HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_HOME}/extras/CUPTI/include
                /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include)


add_library(nvtx3 INTERFACE)
target_include_directories(nvtx3 SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/third_party/nvtx3/include)
target_link_libraries(nvtx3 INTERFACE ${CMAKE_DL_LIBS})

if(RANGESCOPE_TESTS)
  find_package(GTest REQUIRED)
  # Debian's own interpreter first: one from pyenv or conda starts ten times slower and may lack modules.
  find_program(RANGESCOPE_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(RANGESCOPE_PYTHON NAMES python3 REQUIRED)
endif()
if(RANGESCOPE_BENCH)
  find_package(benchmark REQUIRED)
endif()
