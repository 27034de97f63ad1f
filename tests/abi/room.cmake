# Of tests/CMakeLists.txt: the families whose operators are tried, and the compilers that tests call.
file(GLOB yaml CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tenon/ops/yaml/*.yaml)
set(families "")
foreach(file ${yaml})
  get_filename_component(family ${file} NAME_WE)
  string(APPEND families "FAMILY(${family})")
endforeach()
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/abi/program_test.cc PROPERTIES COMPILE_DEFINITIONS
                                                                                       "TENON_FAMILIES=${families}")
foreach(name headers_test print_c_test)
  set_source_files_properties(
    ${CMAKE_CURRENT_SOURCE_DIR}/abi/${name}.cc
    PROPERTIES
      COMPILE_DEFINITIONS
      "TENON_CXX_COMPILER=\"${CMAKE_CXX_COMPILER}\";TENON_C_COMPILER=\"${CMAKE_CXX_COMPILER} -x c\";TENON_SOURCE=\"${PROJECT_SOURCE_DIR}\"")
endforeach()
