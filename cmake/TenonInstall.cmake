# What `cmake --install` puts where. The folder is a prefix of its own, which may be moved; a wheel has the same one inside
# the Python package. Components: development (all that find_package(Tenon) needs), static (Tenon::tenon_static, when it
# was built) and python (python/CMakeLists.txt).
include(CMakePackageConfigHelpers)
set(TENON_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

install(TARGETS tenon tenon_abi EXPORT TenonTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development NAMELINK_COMPONENT namelink
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION ${TENON_CMAKE_DIR} COMPONENT development)

# An archive of one object: a linker takes from an archive what is asked for by name, and nobody asks for the objects that
# register operators and kernels. Sections stay apart, for --gc-sections.
function(tenon_join_objects target)
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/${target}_joined.o)
  add_custom_command(
    TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -o ${joined} "-Wl,--unique=.text*,--unique=.data*,--unique=.rodata*"
            -Wl,--whole-archive $<TARGET_FILE:${target}> -Wl,--no-whole-archive
    COMMAND ${CMAKE_COMMAND} -E rm $<TARGET_FILE:${target}>
    COMMAND ${CMAKE_AR} rcs $<TARGET_FILE:${target}> ${joined}
    COMMAND ${CMAKE_COMMAND} -E rm ${joined}
    VERBATIM)
endfunction()

# CMake strips no archive, because a linker needs some of its symbols: of those, all stay that are not local.
function(tenon_strip_archive target component)
  if(TENON_STRIP AND CMAKE_STRIP)
    install(CODE "
      set(archive \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${target}>\")
      execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded \"\${archive}\" COMMAND_ERROR_IS_FATAL ANY)"
            COMPONENT ${component} ${ARGN})
  endif()
endfunction()

if(BUILD_SHARED_LIBS)
  # The same objects; `cmake --build ... --target tenon_static`, then `cmake --install ... --component static`.
  add_library(tenon_static STATIC EXCLUDE_FROM_ALL $<FILTER:$<TARGET_OBJECTS:tenon>,EXCLUDE,older_glibc>
                                                   $<TARGET_OBJECTS:tenon_base> ${TENON_COLD_OBJECTS}
                                                   ${TENON_FMT_OBJECTS})
  tenon_join_objects(tenon_static)
  target_compile_features(tenon_static PUBLIC cxx_std_20)
  target_include_directories(tenon_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(tenon_static PRIVATE ${TENON_SYSTEM_LIBRARIES} Threads::Threads)
  set_target_properties(tenon_static PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME tenon)
  install(TARGETS tenon_static EXPORT TenonStaticTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT static EXCLUDE_FROM_ALL)
  tenon_strip_archive(tenon_static static EXCLUDE_FROM_ALL)
  install(EXPORT TenonStaticTargets NAMESPACE Tenon:: DESTINATION ${TENON_CMAKE_DIR} COMPONENT static EXCLUDE_FROM_ALL)
else()
  tenon_join_objects(tenon)
  tenon_strip_archive(tenon development)
endif()

# Public headers: those that programs are told to include, and what they include themselves.
set(TENON_PUBLIC_HEADERS
    tenon/autograd/custom_derivative.h
    tenon/autograd/fallback.h
    tenon/builder/cached_plan.h
    tenon/builder/graph.h
    tenon/builder/inference.h
    tenon/core/dispatch_dtype.h
    tenon/dispatch/dispatcher.h
    tenon/dispatch/stub.h
    tenon/dispatch/trace.h
    tenon/io/safetensors.h
    tenon/iter/cpu_kernel.h
    tenon/ops/device_stubs.h
    tenon/ops/fallback/cpu_fallback.h
    tenon/plugin/load.h
    tenon/record/compile.h)
file(GLOB programs RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tenon/*.h
     ${PROJECT_SOURCE_DIR}/tenon/abi/*.h)
list(APPEND TENON_PUBLIC_HEADERS ${programs})
install(CODE "
  set(TENON_HEADERS \"${TENON_PUBLIC_HEADERS}\")
  set(TENON_HEADER_ROOTS \"${PROJECT_SOURCE_DIR};${TENON_GENERATED}\")
  set(TENON_INCLUDE_DIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")" COMPONENT development)
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake COMPONENT development)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TenonConfig.cmake.in ${PROJECT_BINARY_DIR}/TenonConfig.cmake
                              INSTALL_DESTINATION ${TENON_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TenonConfig.cmake ${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake
        DESTINATION ${TENON_CMAKE_DIR} COMPONENT development)

# For builds without CMake: `pkg-config --cflags --libs tenon`.
list(TRANSFORM TENON_SYSTEM_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE TENON_PC_PRIVATE)
list(JOIN TENON_PC_PRIVATE " " TENON_PC_PRIVATE)
file(RELATIVE_PATH TENON_PREFIX_FROM_PKGCONFIG /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TENON_PREFIX_FROM_PKGCONFIG ${TENON_PREFIX_FROM_PKGCONFIG})
configure_file(${PROJECT_SOURCE_DIR}/cmake/tenon.pc.in ${PROJECT_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon/licenses COMPONENT development)
# The pages that docstrings and messages name, with the reference of all operators.
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
install(FILES ${pages} ${TENON_GENERATED}/docs/operators.md DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon/docs
        COMPONENT development)
# A device to begin with, whose work is asynchronous; it builds against what is installed.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/backends/openreg DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon/examples
        COMPONENT development)
# Where devices are found by their names (tenon/plugin/load.h).
install(FILES ${PROJECT_SOURCE_DIR}/cmake/plugins.txt DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon/plugins
        RENAME README.txt COMPONENT development)
