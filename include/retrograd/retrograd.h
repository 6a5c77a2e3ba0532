/* SPDX-License-Identifier: Apache-2.0
 * Calls of our own: version and last error for users of every interface, loops on a host runtime's threads,
 * and a small interface for what aclnn and infiniop cannot say. docs/c_api.md has examples.
 */
#ifndef RETROGRAD_RETROGRAD_H
#define RETROGRAD_RETROGRAD_H

#include <stddef.h>
#include <stdint.h>

#include "export.h"

#define RETROGRAD_VERSION_MAJOR 0
#define RETROGRAD_VERSION_MINOR 2
#define RETROGRAD_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that was loaded, "0.2.0"; the macros above are that of the header. */
RETROGRAD_API const char* retrogradVersion(void);

/* Why the calling thread's last failing call failed: "<number> <function>: <sentence>". Never null; "" when
 * no call of this thread failed yet. A call that succeeds leaves the text. Valid until the thread's next
 * failing call. */
RETROGRAD_API const char* retrogradGetLastError(void);

/* What every call below returns. Numbers are never given another meaning; new ones may come. */
typedef enum RETROGRAD_INT_ENUM {
  RETROGRAD_OK = 0,
  RETROGRAD_NULL_ARGUMENT = 1,    /* a pointer that must not be null */
  RETROGRAD_INVALID_ARGUMENT = 2, /* an attribute outside its range, a text that does not parse */
  RETROGRAD_BAD_SHAPE = 3,        /* sizes that do not fit together */
  RETROGRAD_BAD_DTYPE = 4,        /* an element type, or a mix of them, that is not served */
  RETROGRAD_BAD_STRIDES = 5,      /* a result that overlaps itself, a view larger than its memory */
  RETROGRAD_BAD_WORKSPACE = 6,    /* null or too small */
  RETROGRAD_BAD_HANDLE = 7,       /* a plan or a stream that is not alive */
  RETROGRAD_WRONG_DEVICE = 8,     /* tensors or streams of different devices */
  RETROGRAD_NO_DEVICE = 9,        /* no such device here */
  RETROGRAD_OUT_OF_MEMORY = 10,
  RETROGRAD_INTERNAL_ERROR = 11
} retrogradStatus_t;

/* ---- threads ---- */

/* One piece of a loop of ours. Takes what is left of the loop's work until none is left; never throws. */
typedef void (*retrogradPiece_t)(void* piece_context, int64_t piece);
/* The host's loop: calls piece(piece_context, i) once for each i in [0, pieces), on any threads, in any
 * order, and returns when all these calls have returned. To run them one after the other, or on fewer
 * threads, is right as well. Must not throw. */
typedef void (*retrogradParallelFor_t)(void* context, int64_t pieces, retrogradPiece_t piece,
                                       void* piece_context);
/* How many threads the host would use for a loop now. Asked at the beginning of every loop: no more pieces
 * than this are made. 1 or less: the loop runs on its caller, and the host is not asked. */
typedef int (*retrogradThreadCount_t)(void* context);

/* From now on the CPU loops of every interface run on the host runtime's threads. A null `thread_count`
 * stands for as many as our own pool has; a null `parallel_for` gives the loops back to our own pool. Results
 * have the same bits, whatever the host does and however many threads it has. A loop within a loop runs on
 * the thread it is in. Loops may begin on several threads at once, and on threads of ours (those of acl and
 * infinirt streams): the host then gets several calls at once. Loops that have begun go on as they began, so
 * `context` must outlive them. A forked child begins with a pool of our own. */
RETROGRAD_API retrogradStatus_t retrogradSetParallelFor(retrogradParallelFor_t parallel_for,
                                                        retrogradThreadCount_t thread_count, void* context);

/* ---- problems ---- */

typedef enum RETROGRAD_INT_ENUM {
  RETROGRAD_F32 = 0,
  RETROGRAD_F16 = 1,
  RETROGRAD_BF16 = 2,
  RETROGRAD_HIF8 = 3,
  RETROGRAD_E4M3 = 4 /* float8_e4m3fn */
} retrogradDtype_t;

typedef enum RETROGRAD_INT_ENUM { RETROGRAD_CPU = 0, RETROGRAD_CUDA = 1 } retrogradDeviceType_t;

typedef struct retrogradDevice {
  retrogradDeviceType_t type;
  int32_t index;
} retrogradDevice_t;

typedef struct retrogradTensor {
  void* data; /* the element at index 0…0. Only retrogradRun looks at it */
  retrogradDtype_t dtype;
  int32_t rank;
  const int64_t* shape;   /* rank sizes */
  const int64_t* strides; /* rank strides in elements, of inputs 0 and negative ones too; null: dense, last
                             axis fastest */
  retrogradDevice_t device;
} retrogradTensor_t;

/* A list of integers, one for each spatial axis. A single one stands for all axes; none (count 0) for the
 * default. */
typedef struct retrogradInts {
  const int64_t* values;
  size_t count;
} retrogradInts_t;

typedef enum RETROGRAD_INT_ENUM {
  RETROGRAD_CONV_BACKWARD = 0,
  RETROGRAD_CONV_TBC_BACKWARD = 1,
  RETROGRAD_AVG_POOL_BACKWARD = 2,
  RETROGRAD_CONV = 3, /* the forward twins */
  RETROGRAD_CONV_TBC = 4,
  RETROGRAD_AVG_POOL = 5
} retrogradOperation_t;

/* How products of F32 operands are made: docs/numerics.md. */
typedef enum RETROGRAD_INT_ENUM {
  RETROGRAD_MATH_KEEP = 0,    /* exactly as they are */
  RETROGRAD_MATH_REDUCED = 1, /* a device may round them to HF32 or TF32 where that is faster */
  RETROGRAD_MATH_F16 = 2,     /* rounded to F16 */
  RETROGRAD_MATH_HF32 = 3     /* rounded to HF32 */
} retrogradMath_t;

/* What is to be computed. retrogradInitProblem fills in the defaults. A tensor's description is needed even
 * where its data is not read. All tensors lie on one device. */
typedef struct retrogradProblem {
  size_t struct_size; /* of the caller's struct: fields may be added behind the last one */
  retrogradOperation_t operation;
  /* (N, C, spatial…), weight (C_out, C_in / groups, kernel…), of a transposed convolution (C_in, C_out /
   * groups, kernel…). conv_tbc: (T, B, C) and (kernel, C_in, C_out). Pooling has no weight. */
  const retrogradTensor_t *grad_output, *input, *weight;
  /* Results of backward operations, with strides and types of their own. Null: not asked for. */
  const retrogradTensor_t *grad_input, *grad_weight, *grad_bias;
  retrogradInts_t kernel; /* pooling only, and required there */
  retrogradInts_t stride; /* default 1; of pooling: the kernel */
  retrogradInts_t
      padding; /* default 0. Convolutions: also two for each axis, in front and behind, axis by axis */
  retrogradInts_t dilation;       /* default 1 */
  retrogradInts_t output_padding; /* default 0; transposed only. Any size: beyond the stride, too */
  int64_t groups;                 /* 1 */
  int64_t divisor_override;       /* pooling: what sums are divided by; 0: the count of the window */
  int32_t spatial_rank;           /* pooling: 0 for rank - 2; otherwise the batch axis may be missing */
  int32_t transposed;             /* 0 or 1, as the following ones */
  int32_t ceil_mode;
  int32_t count_include_pad; /* 1 */
  int32_t winograd;          /* 1: F32 may use Winograd, as with RETROGRAD_WINOGRAD=1 */
  retrogradMath_t math;
  /* Forward operations: read input, weight and bias, and write output, with strides of its own; gradients and
   * grad_output are null. bias is (C_out), and may be null but for conv_tbc. */
  const retrogradTensor_t *output, *bias;
} retrogradProblem_t;

/* Defaults, and no tensors. `struct_size` is sizeof(retrogradProblem_t). A program that was compiled with an
 * earlier header says what it was there: the struct ended behind `math`. */
RETROGRAD_API retrogradStatus_t retrogradInitProblem(retrogradProblem_t* problem, size_t struct_size,
                                                     retrogradOperation_t operation);

/* Texts are written as far as `capacity` bytes go, the last of them 0; `length` becomes the length of the
 * whole text. text may be null with a capacity of 0, length may be null. */

/* The problem as one line of text: docs/dispatch.md, "The text form". */
RETROGRAD_API retrogradStatus_t retrogradProblemText(const retrogradProblem_t* problem, char* text,
                                                     size_t capacity, size_t* length);
/* Whether the problem is legal, which implementations take each of its passes, why the others do not, and the
 * workspace. */
RETROGRAD_API retrogradStatus_t retrogradExplain(const char* problem_text, retrogradDevice_t device,
                                                 char* text, size_t capacity, size_t* length);

/* ---- plans ---- */

/* How one problem is computed on one device. It holds no addresses. Any number of threads may run a plan at
 * once, each with a workspace of its own. */
typedef struct retrogradPlan* retrogradPlan_t;

RETROGRAD_API retrogradStatus_t retrogradCreatePlan(retrogradPlan_t* plan, const retrogradProblem_t* problem);
/* The same for a problem given as text. */
RETROGRAD_API retrogradStatus_t retrogradCreatePlanFromText(retrogradPlan_t* plan, const char* problem_text,
                                                            retrogradDevice_t device);
/* A plan may be destroyed while others run it: it goes when they are done. */
RETROGRAD_API retrogradStatus_t retrogradDestroyPlan(retrogradPlan_t plan);

/* Bytes of device memory that a run needs, at any alignment; often 0. */
RETROGRAD_API retrogradStatus_t retrogradGetWorkspaceSize(retrogradPlan_t plan, size_t* bytes);
/* The time it is thought to take, in microseconds: what implementations are chosen by. For comparing, not a
 * promise. */
RETROGRAD_API retrogradStatus_t retrogradGetPlanCost(retrogradPlan_t plan, double* microseconds);
/* "grad_input:cpu.dense_gather grad_bias:cpu.chunked_bias": who computes what. */
RETROGRAD_API retrogradStatus_t retrogradDescribePlan(retrogradPlan_t plan, char* text, size_t capacity,
                                                      size_t* length);

typedef enum RETROGRAD_INT_ENUM {
  RETROGRAD_GRAD_OUTPUT = 0,
  RETROGRAD_INPUT = 1,
  RETROGRAD_WEIGHT = 2,
  RETROGRAD_GRAD_INPUT = 3,
  RETROGRAD_GRAD_WEIGHT = 4,
  RETROGRAD_GRAD_BIAS = 5,
  RETROGRAD_BIAS = 6,
  RETROGRAD_OUTPUT = 7
} retrogradOperand_t;

/* A tensor of the plan's problem: what a plan made of a text needs memory for. Shape and strides are valid as
 * long as the plan; data is null. A rank of -1: the problem has no such tensor, or the result is not asked
 * for. */
RETROGRAD_API retrogradStatus_t retrogradGetPlanTensor(retrogradPlan_t plan, retrogradOperand_t operand,
                                                       retrogradTensor_t* tensor);

/* The element at index 0…0 of each tensor. Null for what the plan does not read or write; a result that the
 * plan has and that is null here is not computed. */
typedef struct retrogradAddresses {
  const void *grad_output, *input, *weight;
  void *grad_input, *grad_weight, *grad_bias;
  const void* bias; /* this and the next are looked at by plans of forward operations alone */
  void* output;
} retrogradAddresses_t;

/* CPU: runs on the calling thread and those of the pool, and is done when it returns; `stream` must be null.
 * CUDA: `stream` is a cudaStream_t of the plan's device, null its legacy default stream; returns when
 * everything is on the stream. Allocates nothing, so that it can be captured in a CUDA graph. */
RETROGRAD_API retrogradStatus_t retrogradExecute(retrogradPlan_t plan, const retrogradAddresses_t* addresses,
                                                 void* workspace, size_t workspace_size, void* stream);

/* Plans, allocates a workspace, executes with the tensors' data, and frees: a whole call in one. On a GPU it
 * waits for the stream before it frees a workspace. */
RETROGRAD_API retrogradStatus_t retrogradRun(const retrogradProblem_t* problem, void* stream);

/* ---- devices ---- */

RETROGRAD_API retrogradStatus_t retrogradGetDeviceCount(retrogradDeviceType_t type, int32_t* count);
/* One line: "cpu:0 AVX3_ZEN4, 2 threads, …". */
RETROGRAD_API retrogradStatus_t retrogradDescribeDevice(retrogradDevice_t device, char* text, size_t capacity,
                                                        size_t* length);

#ifdef __cplusplus
}
#endif

#endif
