/* The least that a device can be, in plain C: memory of malloc, and work that is done when a call returns. */
#include <stdlib.h>
#include <string.h>

#include "tenon/abi/tenon_abi.h"

static const TenonHost* host;

static int32_t device_count(void* self) {
  (void)self;
  return 1;
}

static TenonStatus* properties(void* self, int32_t index, TenonDeviceProperties* out) {
  TenonDeviceProperties p = {0};
  (void)self, (void)index;
  p.struct_size = sizeof p;
  p.granularity = 64;
  p.description = "a device in plain C";
  memcpy(out, &p, out->struct_size < sizeof p ? out->struct_size : sizeof p);
  return NULL;
}

static TenonStatus* raw_alloc(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  void* block = aligned_alloc(64, (nbytes + 63) / 64 * 64);
  (void)self, (void)index;
  if (!block) return host->status_new(TENON_ERROR_OUT_OF_MEMORY, "malloc has no more");
  *out = (TenonAddress)(uintptr_t)block;
  return NULL;
}

static TenonStatus* raw_free(void* self, int32_t index, TenonAddress address, uint64_t nbytes) {
  (void)self, (void)index, (void)nbytes;
  free((void*)(uintptr_t)address);
  return NULL;
}

static TenonStatus* copy(void* self, TenonStream stream, TenonAddress dst, TenonPlace dst_place,
                         TenonAddress src, TenonPlace src_place, uint64_t nbytes, uint32_t flags) {
  (void)self, (void)stream, (void)dst_place, (void)src_place, (void)flags;
  memmove((void*)(uintptr_t)dst, (const void*)(uintptr_t)src, nbytes);
  return NULL;
}

static TenonStatus* new_id(void* self, int32_t index, uint64_t* out) {
  (void)self, (void)index;
  *out = 1;
  return NULL;
}
static TenonStatus* of_stream(void* self, TenonStream stream) {
  (void)self, (void)stream;
  return NULL;
}
static TenonStatus* of_event(void* self, int32_t index, uint64_t event) {
  (void)self, (void)index, (void)event;
  return NULL;
}
static TenonStatus* event_record(void* self, int32_t index, uint64_t event, TenonStream stream) {
  (void)self, (void)index, (void)event, (void)stream;
  return NULL;
}

static const TenonDeviceTable table = {
    .struct_size = sizeof(TenonDeviceTable),
    .device_count = device_count,
    .properties = properties,
    .raw_alloc = raw_alloc,
    .raw_free = raw_free,
    .copy = copy,
    .stream_new = new_id,
    .stream_free = of_stream,
    .stream_sync = of_stream,
    .event_new = new_id,
    .event_free = of_event,
    .event_record = event_record,
    .event_sync = of_event,
};

TenonStatus* tenon_plugin_v1(const TenonHost* given, const TenonOptions* options, TenonPlugin* out) {
  TenonPlugin plugin = {0};
  host = given;
  if (options->num_options > 0) return host->status_new(TENON_ERROR_VALUE, "this device has no options");
  plugin.struct_size = sizeof plugin;
  plugin.built_minor = TENON_ABI_MINOR;
  plugin.name = "plain";
  plugin.key = "Plain";
  plugin.table = &table;
  memcpy(out, &plugin, out->struct_size < sizeof plugin ? out->struct_size : sizeof plugin);
  return NULL;
}
