# Of tests/CMakeLists.txt: the checkpoints that record_checkpoints.py has made.
foreach(name checkpoint_test damage_test)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/io/${name}.cc
                              PROPERTIES COMPILE_DEFINITIONS "TENON_RECORDED=\"${CMAKE_CURRENT_SOURCE_DIR}/io/recorded\"")
endforeach()
