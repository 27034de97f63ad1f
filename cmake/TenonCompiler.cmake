# How every target of the project is compiled: the language, the warnings, the floating-point contract, the tools.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Default visibility, but bound inside the library: a call within it never goes through the PLT. Inline functions are in
# every file that calls them, and no library need offer its own.
add_compile_options(-fno-semantic-interposition -fno-plt -fno-gnu-unique -fvisibility-inlines-hidden)
add_link_options(-Wl,-Bsymbolic-functions)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Release keeps assertions out; a debug preset exists for them.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# For work in progress (the preset `dev`): quick to compile, assertions on.
set(CMAKE_CXX_FLAGS_DEV "-O1")

# The same bits everywhere: no contraction of a*b+c unless the source says fma.
add_compile_options(-ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-unused-parameter
                    -Wno-missing-field-initializers)

find_program(TENON_CCACHE ccache)
if(TENON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Relative to the tree, so that another clone or a copy finds what this one has compiled. What is built with a
  # precompiled header is cached too; GCC itself refuses one whose macros differ, and __TIME__ is used nowhere.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true
      CCACHE_SLOPPINESS=pch_defines,time_macros ${TENON_CCACHE})
endif()
# For programs that run for a moment, the generator and the tests: to compile them well takes longer than it saves.
function(tenon_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

find_program(TENON_MOLD mold)
if(TENON_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()
# As bits, in the order of CpuTarget (backends/cpu/targets.h); all is what the sources take for granted.
set(bits 0)
foreach(target IN LISTS TENON_CPU_TARGETS)
  string(TOUPPER "${target}" target)
  if(target STREQUAL "SSE4")
    math(EXPR bits "${bits} | 1")
  elseif(target STREQUAL "AVX2")
    math(EXPR bits "${bits} | 2")
  elseif(target STREQUAL "AVX3")
    math(EXPR bits "${bits} | 4")
  else()
    message(FATAL_ERROR "TENON_CPU_TARGETS has '${target}'; expected some of SSE4, AVX2, AVX3, separated by ;")
  endif()
endforeach()
if(bits EQUAL 0)
  message(FATAL_ERROR "TENON_CPU_TARGETS is empty; expected some of SSE4, AVX2, AVX3, separated by ;")
elseif(NOT bits EQUAL 7)
  add_compile_definitions(TENON_CPU_TARGETS=${bits})
endif()
if(NOT TENON_SANITIZE)
  # So that a linker can leave out what nothing reaches (--gc-sections): of the library, and of programs with the archive.
  add_compile_options(-ffunction-sections -fdata-sections)
endif()
if(TENON_SANITIZE)
  # -O1: instrumented code takes twice as long to optimise, and is no likelier to show a fault for it.
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer -g1 -O1)
  if(TENON_SANITIZE MATCHES "address")
    # A null pointer that is used stops AddressSanitizer too. UndefinedBehaviorSanitizer's check at every use of a pointer
    # is a third of what compiling takes.
    add_compile_options(-fno-sanitize=null)
  endif()
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()
