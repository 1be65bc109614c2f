# With RANGESCOPE_PORTABLE (the folder that packaging/fetch.sh fills) everything but libc is linked into what is built,
# and libc is Debian 11's: the result runs wherever glibc is 2.31 or newer, the injected library from 2.28 on.
function(rangescope_archives target)  # IMPORTED-TARGET archive...: links those archives instead of shared libraries
  set(paths)
  foreach(name IN LISTS ARGN)
    find_library(archive_${name} lib${name}.a REQUIRED)
    list(APPEND paths ${archive_${name}})
  endforeach()
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${paths}")
endfunction()

add_library(portable_fmt STATIC ${RANGESCOPE_PORTABLE}/fmtlib-9.1.0+ds1/src/format.cc)
target_include_directories(portable_fmt SYSTEM PUBLIC ${RANGESCOPE_PORTABLE}/fmtlib-9.1.0+ds1/include)
add_library(fmt::fmt ALIAS portable_fmt)
add_library(portable_simdjson STATIC ${RANGESCOPE_PORTABLE}/simdjson-3.0.1/singleheader/simdjson.cpp)
target_include_directories(portable_simdjson SYSTEM PUBLIC ${RANGESCOPE_PORTABLE}/simdjson-3.0.1/singleheader)
target_compile_definitions(portable_simdjson PUBLIC SIMDJSON_THREADS_ENABLED=1)
add_library(PkgConfig::simdjson ALIAS portable_simdjson)
add_library(portable_yaml INTERFACE)
target_compile_definitions(portable_yaml INTERFACE YAML_CPP_STATIC_DEFINE)
rangescope_archives(portable_yaml yaml-cpp)
add_library(yaml-cpp ALIAS portable_yaml)
rangescope_archives(PkgConfig::sqlite3 sqlite3 z)
set_property(TARGET PkgConfig::sqlite3 APPEND PROPERTY INTERFACE_LINK_LIBRARIES m rt)  # rt: timers, before glibc 2.34
rangescope_archives(PkgConfig::re2 re2)
rangescope_archives(PkgConfig::zstd zstd)
rangescope_archives(PkgConfig::zlib z)
rangescope_archives(PkgConfig::libdw dw elf bz2 lzma z)

link_libraries(dl m)  # dl: in libc itself since glibc 2.34; m: floor.o
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${RANGESCOPE_PORTABLE}=portable)
add_link_options(@${RANGESCOPE_PORTABLE}/link -Wl,--build-id=sha1)
