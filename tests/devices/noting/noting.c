/* The device of plain.c, twice, which prints what it is asked for; and a driver that ends at the process's
 * exit. */
#define tenon_plugin_v1 plain_plugin_v1
#include "../plain/plain.c"
#undef tenon_plugin_v1

#include <stdio.h>

static TenonDeviceTable noting;

static int32_t two(void* self) {
  (void)self;
  return 2;
}
static TenonStatus* noted_alloc(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  TenonStatus* status = table.raw_alloc(self, index, nbytes, out);
  if (!status) printf("alloc %llu %llu\n", (unsigned long long)*out, (unsigned long long)nbytes);
  return status;
}
static TenonStatus* noted_free(void* self, int32_t index, TenonAddress address, uint64_t nbytes) {
  printf("free %llu %llu\n", (unsigned long long)address, (unsigned long long)nbytes);
  return table.raw_free(self, index, address, nbytes);
}
static TenonStatus* noted_copy(void* self, TenonStream stream, TenonAddress dst, TenonPlace dst_place,
                               TenonAddress src, TenonPlace src_place, uint64_t nbytes, uint32_t flags) {
  printf("copy %d %d %d %llu %llu %llu\n", stream.device.index, dst_place, src_place, (unsigned long long)dst,
         (unsigned long long)src, (unsigned long long)nbytes);
  return table.copy(self, stream, dst, dst_place, src, src_place, nbytes, flags);
}
static TenonStatus* noted_stream(void* self, int32_t index, uint64_t* out) {
  static uint64_t last = 0;
  (void)self, (void)index;
  *out = ++last;
  printf("stream %llu\n", (unsigned long long)last);
  return NULL;
}
static TenonStatus* noted_stream_free(void* self, TenonStream stream) {
  (void)self;
  printf("stream_free %llu\n", (unsigned long long)stream.id);
  return NULL;
}
static void noted_shutdown(void* self) {
  (void)self;
  puts("shutdown");
}
static void driver_ends(void) { puts("driver ends"); }

TenonStatus* tenon_plugin_v1(const TenonHost* given, const TenonOptions* options, TenonPlugin* out) {
  TenonStatus* status = plain_plugin_v1(given, options, out);
  if (status) return status;
  noting = table;
  noting.device_count = two;
  noting.raw_alloc = noted_alloc;
  noting.raw_free = noted_free;
  noting.copy = noted_copy;
  noting.stream_new = noted_stream;
  noting.stream_free = noted_stream_free;
  noting.shutdown = noted_shutdown;
  out->table = &noting;
  setvbuf(stdout, NULL, _IOLBF, 0);
  atexit(driver_ends);
  return NULL;
}
