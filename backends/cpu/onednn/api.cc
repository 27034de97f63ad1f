#include "backends/cpu/onednn/api.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tenon::cpu::onednn {
namespace {

constexpr const char* kFile = "libdnnl.so.3";

/// The name of the first function that the library lacks; null if it has all.
const char* look_up(void* handle, Api& api) {
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    void* const found = dlsym(handle, name);
    if (!found && !missing) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find("dnnl_version", api.version);
  find("dnnl_engine_create", api.engine_create);
  find("dnnl_stream_create", api.stream_create);
  find("dnnl_stream_destroy", api.stream_destroy);
  find("dnnl_stream_wait", api.stream_wait);
  find("dnnl_memory_desc_create_with_strides", api.memory_desc_create_with_strides);
  find("dnnl_memory_desc_create_with_tag", api.memory_desc_create_with_tag);
  find("dnnl_memory_desc_destroy", api.memory_desc_destroy);
  find("dnnl_memory_desc_get_size", api.memory_desc_get_size);
  find("dnnl_memory_desc_equal", api.memory_desc_equal);
  find("dnnl_memory_create", api.memory_create);
  find("dnnl_memory_destroy", api.memory_destroy);
  find("dnnl_post_ops_create", api.post_ops_create);
  find("dnnl_post_ops_destroy", api.post_ops_destroy);
  find("dnnl_post_ops_append_eltwise", api.post_ops_append_eltwise);
  find("dnnl_post_ops_append_binary", api.post_ops_append_binary);
  find("dnnl_primitive_attr_create", api.primitive_attr_create);
  find("dnnl_primitive_attr_destroy", api.primitive_attr_destroy);
  find("dnnl_primitive_attr_set_post_ops", api.primitive_attr_set_post_ops);
  find("dnnl_primitive_attr_set_scratchpad_mode", api.primitive_attr_set_scratchpad_mode);
  find("dnnl_primitive_attr_set_fpmath_mode", api.primitive_attr_set_fpmath_mode);
  find("dnnl_matmul_primitive_desc_create", api.matmul_primitive_desc_create);
  find("dnnl_convolution_forward_primitive_desc_create", api.convolution_forward_primitive_desc_create);
  find("dnnl_reorder_primitive_desc_create", api.reorder_primitive_desc_create);
  find("dnnl_primitive_desc_destroy", api.primitive_desc_destroy);
  find("dnnl_primitive_desc_query", api.primitive_desc_query);
  find("dnnl_primitive_desc_query_md", api.primitive_desc_query_md);
  find("dnnl_primitive_create", api.primitive_create);
  find("dnnl_primitive_destroy", api.primitive_destroy);
  find("dnnl_primitive_execute", api.primitive_execute);
  return missing;
}

Library load() {
  Library made;
  void* const handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    made.problem = fmt::format(
        "oneDNN is not installed: the loader finds no {}; `pip install onednn-cpu-gomp` brings it, and so "
        "does "
        "libdnnl-dev from Debian 13 on",
        kFile);
    return made;
  }
  if (const char* const missing = look_up(handle, made.api)) {
    made.problem = fmt::format("{} has no function {}: it is no oneDNN 3", kFile, missing);
    return made;
  }
  // Another pool of threads would compete with Tenon's own.
  const bool intel = dlsym(handle, "__kmpc_fork_call") != nullptr;
  const Version& version = *made.api.version();
  if (version.cpu_runtime != kOpenMpRuntime || intel) {
    made.problem = fmt::format(
        "oneDNN {}.{}.{} was built for another pool of threads than libgomp's; onednn-cpu-gomp has the one "
        "for "
        "it",
        version.major, version.minor, version.patch);
    return made;
  }
  if (made.api.engine_create(&made.engine, kCpu, 0) != 0) made.problem = "oneDNN does not run on this CPU";
  return made;
}

}  // namespace

const Library& library() {
  static const Library& loaded = *new Library(load());
  return loaded;
}

}  // namespace tenon::cpu::onednn
