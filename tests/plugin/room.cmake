set(plugin_loads openreg)
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/plugin/load_test.cc PROPERTIES
                            COMPILE_DEFINITIONS TENON_OPENREG="$<TARGET_FILE:openreg>")
