# What runs now and then: a file is read, a graph written down, machine code made, a device loaded, something printed. It is
# compiled for size, which halves it; no call of an operator goes through it. Takes these files out of TENON_SOURCES and
# TENON_CPU_SOURCES and gives TENON_COLD_OBJECTS, which libraries have in their place.
# The loops of recurrent layers are here, too, and families that compose other operators: products, expressions and kernels, which
# are elsewhere, take their time. So are the functions of these families, and the code of signatures that Python calls over cells,
# because no step of training or inference needs them often (tools/opgen/typed_signatures.cc). Paths are those of the lists, which have no "..".
file(GLOB cold CONFIGURE_DEPENDS
     autograd/anomaly.cc autograd/print_history.cc
     builder/*.cc
     cache/*.cc
     core/*_report.cc core/memory_history.cc core/memory_snapshot.cc core/memory_stats.cc
     dispatch/introspect.cc dispatch/invariants.cc dispatch/library*.cc dispatch/load.cc dispatch/trace*.cc
     graph/engine/trial_memory.cc graph/fuse/race.cc
     graph/ir/region.cc graph/ir/verify*.cc graph/plan/plan.cc graph/plan/report.cc
     graph/plan/store.cc graph/plan/timing.cc graph/plan/tuner.cc graph/text/*.cc
     io/*.cc
     nn/*.cc
     onnx/*.cc onnx/save/*.cc
     ops/print.cc
     ops/arrange/*.cc ops/distance/*.cc ops/fft/*.cc ops/linalg/*.cc ops/numeric/*.cc ops/statistics/*.cc ops/window/grid_sampling.cc
     ops/linalg/*.cc ${PROJECT_SOURCE_DIR}/backends/cpu/linalg/eigen_solvers.cc ${PROJECT_SOURCE_DIR}/backends/cpu/ops/linalg_ldl.cc
     ops/recurrent/*.cc ${PROJECT_SOURCE_DIR}/backends/cpu/ops/recurrent*.cc ${PROJECT_SOURCE_DIR}/backends/cpu/ops/int8*.cc
     ${PROJECT_SOURCE_DIR}/backends/cpu/lapack/*.cc ${PROJECT_SOURCE_DIR}/backends/cpu/ops/linalg_spectral.cc
     plugin/*load.cc plugin/library_file.cc plugin/optional_functions.cc plugin/registrar.cc plugin/search.cc
     record/report.cc
     ${PROJECT_SOURCE_DIR}/backends/cpu/jit/*.cc
     ${PROJECT_SOURCE_DIR}/backends/cpu/onednn/api.cc ${PROJECT_SOURCE_DIR}/backends/cpu/onednn/engine.cc ${PROJECT_SOURCE_DIR}/backends/cpu/onednn/primitive.cc)
# How a plan runs, and sums over bytes.
list(FILTER cold EXCLUDE REGEX "/(builder/(cached_plan|plans)|cache/form|jit/compiled|io/(checkpoint|crc32|safetensors|zip))\\.cc$")

set(cold_generated ${TENON_GENERATED_SOURCES})
list(FILTER cold_generated INCLUDE REGEX "/(rare_signatures_[0-9]+|(arrange|distance|fft|linalg|numeric|statistics|recurrent|special)/operators)\\.cc$")

set(TENON_COLD_OBJECTS "")
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT TENON_SANITIZE)
  set(all ${TENON_SOURCES} ${TENON_CPU_SOURCES})
  list(REMOVE_ITEM TENON_SOURCES ${cold})
  list(REMOVE_ITEM TENON_CPU_SOURCES ${cold})
  list(REMOVE_ITEM all ${TENON_SOURCES} ${TENON_CPU_SOURCES})
  tenon_unite(all)
  list(APPEND all ${cold_generated})
  list(REMOVE_ITEM TENON_GENERATED_SOURCES ${cold_generated})
  # A target, for its precompiled header: GCC takes one for what is compiled alike.
  add_library(tenon_cold OBJECT ${all})
  add_dependencies(tenon_cold tenon_generated)
  target_include_directories(tenon_cold PRIVATE $<TARGET_PROPERTY:tenon,INCLUDE_DIRECTORIES>)
  target_link_libraries(tenon_cold PRIVATE tenon_fmt)
  # With -Os, GCC 12 takes empty optionals for values that are read before they are written.
  target_compile_options(tenon_cold PRIVATE -Os $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_precompile_headers(tenon_cold PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled/library.h)
  set(TENON_COLD_OBJECTS $<TARGET_OBJECTS:tenon_cold>)
endif()
