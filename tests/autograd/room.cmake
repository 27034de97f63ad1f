# Error messages name lines where debug information is there.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/autograd/source_test.cc PROPERTIES COMPILE_OPTIONS -g1
                            SKIP_PRECOMPILE_HEADERS ON)
