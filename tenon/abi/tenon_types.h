/* Basic types of the plug-in interface: dtypes, devices, streams, addresses. Plain C11.
   Included by tenon_abi.h and tenon_program.h. Numbers never change; new ones are appended. */
#ifndef TENON_ABI_TENON_TYPES_H
#define TENON_ABI_TENON_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What one element of a tensor is. Codes from TENON_DTYPE_FIRST_REGISTERED on belong to dtypes that are
   registered at run time. */
typedef uint8_t TenonDType;
enum {
  TENON_DTYPE_BOOL = 0, /* one byte; any byte but 0 is true, 1 is what is stored */
  TENON_DTYPE_UINT8 = 1,
  TENON_DTYPE_INT8 = 2,
  TENON_DTYPE_INT16 = 3,
  TENON_DTYPE_INT32 = 4,
  TENON_DTYPE_INT64 = 5,
  TENON_DTYPE_FLOAT16 = 6,  /* IEEE 754 binary16 */
  TENON_DTYPE_BFLOAT16 = 7, /* the upper half of a binary32 */
  TENON_DTYPE_FLOAT32 = 8,
  TENON_DTYPE_FLOAT64 = 9,
  TENON_DTYPE_COMPLEX64 = 10,  /* two float32: the real and the imaginary part */
  TENON_DTYPE_COMPLEX128 = 11, /* two float64 */
  TENON_DTYPE_QINT8 = 12,
  TENON_DTYPE_QUINT8 = 13,
  TENON_DTYPE_FLOAT8_E4M3FN = 14,
  TENON_DTYPE_FLOAT8_E5M2 = 15,
  TENON_DTYPE_UINT16 = 16,
  TENON_DTYPE_UINT32 = 17,
  TENON_DTYPE_UINT64 = 18,
  TENON_DTYPE_FIRST_REGISTERED = 64
};

/* A device: the number of its backend, and which of the backend's devices it is. */
typedef struct TenonDevice {
  uint8_t backend;
  int8_t index;
} TenonDevice;

/* A queue of work on a device. 0 is the default stream, which every device has. */
typedef struct TenonStream {
  uint64_t id;
  TenonDevice device;
  uint8_t reserved[6]; /* 0 */
} TenonStream;

/* Memory of a device. The device alone knows what the number means; adding bytes to it moves it on. */
typedef uint64_t TenonAddress;

/* Whose memory an address is. */
typedef uint8_t TenonPlace;
enum {
  TENON_PLACE_DEVICE = 0,
  TENON_PLACE_HOST = 1 /* the address is a pointer */
};

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TENON_ABI_TENON_TYPES_H */
