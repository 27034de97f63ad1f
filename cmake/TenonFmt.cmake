# fmt, compiled in: nothing that Tenon installs needs libfmt when it runs. Gives tenon_fmt, which is its headers, and
# TENON_FMT_OBJECTS, which is what a library or module links beside them.
add_library(tenon_fmt INTERFACE)
get_target_property(include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(tenon_fmt SYSTEM INTERFACE ${include})
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  # Its functions once, hidden, so that a program's own fmt stays apart.
  add_library(tenon_fmt_functions OBJECT cmake/fmt.cc)
  target_link_libraries(tenon_fmt_functions PRIVATE tenon_fmt)
  set_target_properties(tenon_fmt_functions PROPERTIES CXX_VISIBILITY_PRESET hidden)
  target_compile_options(tenon_fmt_functions PRIVATE $<$<CONFIG:Release>:-Os>)
  set(TENON_FMT_OBJECTS $<TARGET_OBJECTS:tenon_fmt_functions>)
else()
  # Which functions there are differs with the version: each file compiles what it calls, which takes longer.
  target_compile_definitions(tenon_fmt INTERFACE FMT_HEADER_ONLY=1)
  set(TENON_FMT_OBJECTS "")
endif()
