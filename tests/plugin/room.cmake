set(plugin_loads openreg)
foreach(name backward_test load_test out_of_memory_test race_test streams_test)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/plugin/${name}.cc PROPERTIES
                              COMPILE_DEFINITIONS TENON_OPENREG="$<TARGET_FILE:openreg>")
endforeach()
