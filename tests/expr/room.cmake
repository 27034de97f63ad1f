# Of tests/CMakeLists.txt: random expressions printed and compiled for expr_tests, beside what the interpreter runs.
add_executable(print_random_kernels ${CMAKE_CURRENT_SOURCE_DIR}/expr/print_random_kernels.cc
                                    $<TARGET_OBJECTS:tenon_printer> $<TARGET_OBJECTS:tenon_base>)
target_include_directories(print_random_kernels PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(print_random_kernels PRIVATE fmt::fmt)
set(random_kernels ${CMAKE_CURRENT_BINARY_DIR}/expr_printed/random_kernels.cc)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/expr_printed)
add_custom_command(OUTPUT ${random_kernels} COMMAND print_random_kernels ${random_kernels}
                   DEPENDS print_random_kernels VERBATIM)
set_source_files_properties(${random_kernels} PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_CURRENT_BINARY_DIR}/expr_printed
                                                       SKIP_PRECOMPILE_HEADERS ON)
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/expr/printed_kernels_test.cc
                            PROPERTIES COMPILE_DEFINITIONS TENON_RANDOM_KERNELS)
list(APPEND sources ${random_kernels} $<TARGET_OBJECTS:tenon_printer>)

# The sample of expr.h, for sample_test.cc.
set(sample ${CMAKE_CURRENT_BINARY_DIR}/expr_printed/expr_sample.inc)
add_custom_command(OUTPUT ${sample} COMMAND sed -n "s|^//   ||p" ${PROJECT_SOURCE_DIR}/tenon/expr/expr.h > ${sample}
                   DEPENDS ${PROJECT_SOURCE_DIR}/tenon/expr/expr.h VERBATIM)
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/expr/sample_test.cc
                            PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_CURRENT_BINARY_DIR}/expr_printed OBJECT_DEPENDS ${sample})
