/* Pointwise operators as programs: how a device gets any expression over elements. Plain C11.
   A TenonProgram is a list of primitive operations on typed values; a TenonLaunch is a program with the
   memory that it runs over. `program.h` evaluates launches, `print_c.h` prints them as kernels.

   For each element of the loop, all inputs are loaded, the nodes are computed in order, then all outputs are
   stored. The results are the same bits on every device, where all NaNs count as equal: each operation rounds
   once, to nearest even; nothing is contracted, reassociated, or flushed to zero. */
#ifndef TENON_ABI_TENON_PROGRAM_H
#define TENON_ABI_TENON_PROGRAM_H

#include "tenon/abi/tenon_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a value is. */
typedef uint8_t TenonType;
enum {
  TENON_TYPE_MASK = 0, /* true or false */
  TENON_TYPE_F32 = 1,  /* IEEE 754 binary32 */
  TENON_TYPE_F64 = 2,
  TENON_TYPE_I32 = 3, /* two's complement; arithmetic wraps */
  TENON_TYPE_I64 = 4,
  /* Reserved. */
  TENON_TYPE_I8 = 5,
  TENON_TYPE_U8 = 6,
  TENON_TYPE_I16 = 7,
  TENON_TYPE_U16 = 8,
  TENON_TYPE_U32 = 9,
  TENON_TYPE_U64 = 10
};

/* The carrier of a dtype is the type that its elements have once they are loaded: of bool mask; of float16,
   bfloat16 and float32 f32; of float64 f64; of uint8, int8, int16 and int64 i64; of int32 i32. Complex
   elements come as operands of their parts. Other dtypes have no carrier and occur in no program. */

/* The operations. Where nothing else is said, the operands are of one type, which is that of the result;
   x, y, z are the operands, "float" is f32 or f64, "integer" i32 or i64. Codes stay below 64. */
typedef uint8_t TenonOp;
enum {
  /* Without operands. */
  TENON_OP_LITERAL = 0, /* `bits`, in the low bytes as many as the type has; of a mask 1 or 0 */
  TENON_OP_LOAD = 1,    /* input `bits`: its element as its dtype's carrier, then cast to the node's type */
  TENON_OP_NUMBER = 2,  /* number `bits` of the launch, which is of the node's type */
  /* 3 and 4 (given, call) occur in no program. */

  /* Numbers. */
  TENON_OP_ADD = 5,
  TENON_OP_SUB = 6,
  TENON_OP_MUL = 7,
  TENON_OP_DIV = 8,       /* floats */
  TENON_OP_TRUNC_DIV = 9, /* integers, toward zero; x / 0 is 0; the smallest integer / -1 is itself */
  TENON_OP_FMOD = 10,     /* x - y * trunc(x / y), exact, with the sign of x. Integers: x % 0 is 0. Floats:
                             NaN for an infinite x and for a y of zero; x for an infinite y */
  TENON_OP_NEG = 11,
  TENON_OP_ABS = 12,   /* of the smallest integer: itself */
  TENON_OP_SQRT = 13,  /* floats */
  TENON_OP_FMA = 14,   /* x * y + z; of floats with one rounding */
  TENON_OP_MIN = 15,   /* x if x is NaN or x < y, else y: NaN if either is, the second of equals */
  TENON_OP_MAX = 16,   /* x if x is NaN or x > y, else y */
  TENON_OP_FLOOR = 17, /* floats, as the following three */
  TENON_OP_CEIL = 18,
  TENON_OP_TRUNC = 19,
  TENON_OP_ROUND = 20,   /* to an integral value, half to even */
  TENON_OP_INT_POW = 21, /* integers; for y < 0 what 1 / x^|y| truncates to, and 0 for x = 0 */

  /* Comparisons of numbers; the result is a mask. With a NaN all are false but NE. */
  TENON_OP_EQ = 22,
  TENON_OP_NE = 23,
  TENON_OP_LT = 24,
  TENON_OP_LE = 25,
  TENON_OP_GT = 26,
  TENON_OP_GE = 27,

  /* Bits of integers, or logic of masks. */
  TENON_OP_AND = 28,
  TENON_OP_OR = 29,
  TENON_OP_XOR = 30,
  TENON_OP_NOT = 31,

  TENON_OP_WHERE = 32, /* y where x, a mask, is true, else z; y and z of any type. Neither traps, so that both
                          may be computed */

  TENON_OP_BITS = 33,        /* the bits of a float as the integer of its width */
  TENON_OP_FROM_BITS = 34,   /* the reverse */
  TENON_OP_SHIFT_LEFT = 35,  /* integers, by `bits` places, less than the width; as the following two */
  TENON_OP_SHIFT_RIGHT = 36, /* the sign comes in */
  TENON_OP_SHIFT_RIGHT_LOGICAL = 37, /* zeros come in */

  /* x less a multiple of pi/2, for floats with |x| > 16384; 0 for smaller ones, NaN for infinities and NaN.
     `bits` is the part: 0, the remainder of the nearest multiple, rounded; 1, what that rounding lost; 2,
     the multiple mod 4. The exact definition is tenon_pi_reduce_f32 and _f64 in definitions.h. */
  TENON_OP_PI_REDUCE = 38,

  /* x as the node's type. Integers wrap or extend. An integer becomes a float with one rounding, and so does
     an f64 an f32. A float becomes an i64 by truncation toward zero, the smallest i64 where it is NaN or out
     of range; an i32 is what that i64 wraps to. A mask is 1 or 0. Anything but zero is true, NaN included. */
  TENON_OP_CAST = 39,

  /* What storing x as dtype `bits` and loading it again gives; x is of the dtype's carrier. float16,
     bfloat16: to nearest even, too large ones become infinite; uint8, int8, int16: wraps. */
  TENON_OP_ROUND_TO = 40

  /* From 41 on: of rows and random numbers; no program of this version has them. */
};

/* What a node varies with. */
enum {
  TENON_RANK_NUMBER = 0, /* with nothing: one value for the whole launch */
  TENON_RANK_ROW = 1,    /* reserved */
  TENON_RANK_COLUMN = 2, /* reserved */
  TENON_RANK_ELEMENT = 3
};

/* One operation. Lies in arrays, and therefore never changes. */
typedef struct TenonNode {
  TenonOp op;
  TenonType type; /* of its value */
  uint8_t arity;
  uint8_t flags;    /* the rank in the low two bits; the others are to be ignored */
  uint32_t args[3]; /* the operands: nodes before this one */
  uint64_t bits;
} TenonNode;

/* A program: the same object for every launch of one expression in one type. Lives as long as the process. */
typedef struct TenonProgram {
  uint32_t struct_size;
  uint32_t num_inputs;
  uint32_t num_scalars;
  uint32_t num_outputs;
  uint32_t num_nodes;
  uint32_t types_used;     /* bit t: a node is of type t, or an operation needs it to be exact */
  uint64_t ops_used;       /* bit o: some node's operation is o */
  const TenonNode* nodes;  /* no node is unused */
  const uint32_t* outputs; /* of each output its node */
  uint64_t hash[2];        /* of what it computes: the same in every process and on every machine */
  const char* text;        /* what was compiled, in a notation for people; functions are still calls */
} TenonProgram;

/* One operand of a launch. Lies in arrays, and therefore never changes. */
typedef struct TenonOperand {
  TenonAddress address;   /* of the element at which the loop starts */
  const int64_t* strides; /* in bytes, over the launch's sizes; 0 where it is repeated, or negative */
  TenonDType dtype;       /* what is stored; of complex elements the part */
  TenonPlace place;       /* an input may be one number of the host: all its strides are 0 */
  uint8_t reserved[6];    /* 0 */
} TenonOperand;

enum {
  /* One dimension, in which every operand is dense or repeated: its stride is its item's size or 0. */
  TENON_FORM_DENSE = 0,
  TENON_FORM_STRIDED = 1
};

/* One call. What it points to lives until the device's function returns, the operands' memory until the
   stream has passed the work. An output may be an input, element by element; else they do not overlap. */
typedef struct TenonLaunch {
  uint32_t struct_size;
  uint32_t ndim;    /* at least 1 */
  const char* name; /* of the operator: "add" */
  const TenonProgram* program;
  TenonStream stream;
  const int64_t* sizes;         /* of the loop, innermost first; at least one element */
  const TenonOperand* operands; /* the outputs, then the inputs */
  /* Of each output the dtype of the result. A value is cast to that dtype's carrier, rounded to the dtype,
     cast to the carrier of the operand's dtype, which mostly is the same, and stored. */
  const TenonDType* results;
  const uint64_t* scalars; /* the numbers' bits: as many of the low bytes as their types have */
  /* Of the program, the form, ndim, the operands' dtypes and places, the results, and what is repeated in the
     dense form: launches of equal variants run the same kernel. The same in every process, as the hash. */
  uint64_t variant[2];
  uint32_t form;
  uint32_t reserved; /* 0 */
  /* The plug-in's own place for what it makes of this program: null at first, then what the plug-in has put
     there. Launches of many threads may find it null at once, so it is read and written atomically. */
  void** slot;
} TenonLaunch;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TENON_ABI_TENON_PROGRAM_H */
