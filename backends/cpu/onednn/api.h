// oneDNN's C interface, as far as the engine uses it, looked up when it is first wanted: the library is no
// requirement of the build or of a program. Functions and numbers are those of oneDNN 3 (dnnl.h,
// dnnl_types.h), whose releases keep them. Used in this folder alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::cpu::onednn {

// Objects of the library, which programs see as pointers.
struct EngineObject;
struct StreamObject;
struct LayoutObject;     // dnnl_memory_desc
struct MemoryObject;     // dnnl_memory
struct PostOpsObject;    // dnnl_post_ops
struct AttributeObject;  // dnnl_primitive_attr
struct SketchObject;     // dnnl_primitive_desc
struct PrimitiveObject;

inline constexpr int kMaxDims = 12;  // DNNL_MAX_NDIMS
using Sizes = int64_t[kMaxDims];
inline constexpr int kCpu = 1, kFloat32 = 3, kAnyTag = 1, kForwardInference = 96, kConvolutionDirect = 1;
inline constexpr int kUserScratchpad = 1, kStrictMaths = 0, kOpenMpRuntime = 2;
inline constexpr int kQueryImplementation = 8, kQuerySource = 129, kQueryWeights = 131, kQueryResult = 133,
                     kQueryScratchpad = 136;

/// What an argument of a primitive is.
enum ArgumentKind : int {
  kSource = 1,
  kDestination = 17,
  kWeights = 33,
  kBias = 41,
  kScratchpad = 80,
  kPostOp = 32768,     ///< Times the number of the post-op, from 1 on, and:
  kSecondOperand = 2,  ///< of a binary post-op.
};
struct Argument {
  int kind;
  MemoryObject* memory;
};

struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};

/// All return 0 where nothing went wrong.
struct Api {
  const Version* (*version)();
  int (*engine_create)(EngineObject**, int kind, size_t index);
  int (*stream_create)(StreamObject**, EngineObject*, unsigned flags);
  int (*stream_destroy)(StreamObject*);
  int (*stream_wait)(StreamObject*);
  int (*memory_desc_create_with_strides)(LayoutObject**, int ndims, const Sizes, int dtype, const Sizes);
  int (*memory_desc_create_with_tag)(LayoutObject**, int ndims, const Sizes, int dtype, int tag);
  int (*memory_desc_destroy)(LayoutObject*);
  size_t (*memory_desc_get_size)(const LayoutObject*);
  int (*memory_desc_equal)(const LayoutObject*, const LayoutObject*);
  int (*memory_create)(MemoryObject**, const LayoutObject*, EngineObject*, void*);
  int (*memory_destroy)(MemoryObject*);
  int (*post_ops_create)(PostOpsObject**);
  int (*post_ops_destroy)(PostOpsObject*);
  int (*post_ops_append_eltwise)(PostOpsObject*, int algorithm, float alpha, float beta);
  int (*post_ops_append_binary)(PostOpsObject*, int algorithm, const LayoutObject*);
  int (*primitive_attr_create)(AttributeObject**);
  int (*primitive_attr_destroy)(AttributeObject*);
  int (*primitive_attr_set_post_ops)(AttributeObject*, const PostOpsObject*);
  int (*primitive_attr_set_scratchpad_mode)(AttributeObject*, int mode);
  int (*primitive_attr_set_fpmath_mode)(AttributeObject*, int mode);
  int (*matmul_primitive_desc_create)(SketchObject**, EngineObject*, const LayoutObject* source,
                                      const LayoutObject* weights, const LayoutObject* bias,
                                      const LayoutObject* destination, const AttributeObject*);
  int (*convolution_forward_primitive_desc_create)(SketchObject**, EngineObject*, int propagation,
                                                   int algorithm, const LayoutObject* source,
                                                   const LayoutObject* weights, const LayoutObject* bias,
                                                   const LayoutObject* destination, const Sizes strides,
                                                   const Sizes dilations, const Sizes padding_before,
                                                   const Sizes padding_after, const AttributeObject*);
  int (*reorder_primitive_desc_create)(SketchObject**, const LayoutObject* from, EngineObject*,
                                       const LayoutObject* to, EngineObject*, const AttributeObject*);
  int (*primitive_desc_destroy)(SketchObject*);
  int (*primitive_desc_query)(const SketchObject*, int what, int index, void* result);
  const LayoutObject* (*primitive_desc_query_md)(const SketchObject*, int what, int index);
  int (*primitive_create)(PrimitiveObject**, const SketchObject*);
  int (*primitive_destroy)(PrimitiveObject*);
  int (*primitive_execute)(const PrimitiveObject*, StreamObject*, int count, const Argument*);
};

struct Library {
  Api api{};
  EngineObject* engine = nullptr;
  std::string problem;  ///< Why there is none, as a sentence that says what to do; empty if there is one.
};

/// The library, which stays loaded until the process ends. Thread-safe.
const Library& library();

}  // namespace tenon::cpu::onednn
