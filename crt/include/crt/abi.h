/* crt/abi.h: what generated code and the runtime agree on: the step tables
 * that pybuild puts in flash and the kernel type that they call.
 * Knows no operator and no model. Change CRT_ABI with any change here. */
#ifndef CRT_ABI_H
#define CRT_ABI_H

#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CRT_ABI 1

/* A kernel computes one band of output rows.
 *
 * p       output rows, input rows, constants, scratch: in this order, each a
 *         pointer; the step below says how many of each
 * a       the layer's integers (widths, strides, clamps, ...), in flash
 * Owner   all memory is the caller's; nothing is kept after the call
 * Thread  re-entrant */
typedef void crt_kernel(void *const *p, const int32_t *a);

/* How a step meets one tensor: as rows of `row_bytes`, a window of which is
 * handed to the kernel on each call.
 *
 * For band b of image n the first row of the window is
 * b * stride - pad; rows before 0 or from `rows` on are `pad_row`.
 * Row r of image n lies at (n * rows + r) * row_bytes; in a ring, shorter
 * than `rows`, at (r % ring) * row_bytes.
 * stride 0 means the same window of image 0 on every call (broadcast,
 * scratch); a whole image per call has stride = window = rows. */
struct crt_operand {
    const void *pad_row; /* stands for rows outside; NULL: none are used */
    uint32_t at;         /* bytes from the start of the buffer to row 0 */
    uint32_t row_bytes;  /* bytes from one row to the next */
    uint16_t buffer;     /* index into crt_graph.base: regions, then inputs,
                          * then outputs */
    uint16_t rows;       /* rows of one image */
    uint16_t ring;       /* rows kept in memory; equals rows: held whole */
    uint16_t window;     /* row pointers handed over per call */
    uint16_t stride;     /* rows the window moves per band */
    int16_t pad;         /* rows of padding above row 0 */
};

/* One layer, or one fused group of layers: a kernel and all that it reads. */
struct crt_step {
    crt_kernel *kernel;
    const int32_t *args;
    const void *const *constants;       /* `constant_count` pointers */
    const struct crt_operand *operands; /* outputs, inputs, then scratch */
    uint16_t images;                    /* batch */
    uint16_t bands;                     /* calls per image */
    uint8_t output_count;
    uint8_t input_count;
    uint8_t constant_count;
    uint8_t scratch_count;
};

/* Consecutive steps that are advanced together. */
struct crt_stage {
    uint16_t first; /* index of the first step */
    uint16_t count; /* steps */
};

/* A model input or output. */
struct crt_tensor {
    const char *name;
    const int32_t *dims; /* `rank` of them, outermost first */
    float scale;         /* real = scale * (q - zero_point); 0: not quantised */
    int32_t zero_point;
    uint32_t bytes;
    uint32_t at;    /* home: bytes from the start of its region */
    uint16_t align; /* bytes; what a bound pointer must be a multiple of */
    uint8_t region; /* home region */
    uint8_t dtype;  /* enum crt_dtype */
    uint8_t rank;
    uint8_t flags; /* CRT_TENSOR_... */
};

/* The home of this input is used for something else during a run. */
#define CRT_TENSOR_CONSUMED 1u

/* A whole model, const, in flash. */
struct crt_model {
    uint32_t abi; /* CRT_ABI of the generator */
    const char *name;
    const struct crt_stage *stages;
    const struct crt_step *steps;
    const struct crt_tensor *tensors; /* inputs, then outputs */
    const uint32_t *region_bytes;     /* `region_count` of them */
    uint16_t stage_count;
    uint16_t step_count;
    uint16_t input_count;
    uint16_t output_count;
    uint16_t region_count;
    uint16_t pointer_count; /* length of `p` that the largest step needs */
    uint16_t region_align;  /* bytes, a power of 2; of every region */
    uint16_t reserved;
};

#ifdef __cplusplus
}
#endif

#endif
