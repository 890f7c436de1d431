/* crt/abi.h: what generated code and the runtime agree on: the step tables
 * that pybuild puts in flash and the kernel type that they call.
 * Knows no operator and no model. Change CRT_ABI with any change here. */
#ifndef CRT_ABI_H
#define CRT_ABI_H

#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CRT_ABI 9

/* A kernel computes one band of output rows.
 *
 * p       output rows, input rows, constants, scratch: in this order, each a
 *         pointer; the step below says how many of each
 * a       the layer's integers (widths, strides, clamps, ...), in flash
 * Owner   all memory is the caller's; nothing is kept after the call
 * Thread  re-entrant */
typedef void crt_kernel(void *const *p, const int32_t *a);

/* How a step reads or writes a tensor: as rows of `row_bytes`, a window of
 * which is handed to the kernel on each call. A band is what one call makes.
 *
 * For band b of image n the first row of the window is
 * b * stride - pad; rows before 0 or from `count` on are `pad_row`.
 * Row r of image n lies at (n * count + r) * row_bytes; in a ring, shorter
 * than `count`, at (r % ring) * row_bytes.
 * stride 0 means the same window of image 0 on every call (broadcast,
 * scratch); a whole image per call has stride = window = count. For a single
 * row, which does not move, row_bytes is 0. */
struct crt_rows {
    const void *pad_row; /* stands for rows outside; NULL: none are used */
    uint32_t row_bytes;  /* bytes from one row to the next */
    uint16_t count;      /* rows of one image */
    uint16_t ring;       /* rows kept in memory; equals count: held whole */
    uint16_t window;     /* row pointers handed over per call, at least 1 */
    uint16_t stride;     /* rows the window moves per band */
    int16_t pad;         /* rows of padding above row 0 */
};

/* What a step reads or writes: where it is, and in which rows. */
struct crt_operand {
    uint32_t at;     /* bytes from the start of the buffer to row 0 */
    uint16_t buffer; /* index into crt_graph.base: regions, then inputs,
                      * outputs, parameters */
    uint16_t rows;   /* index into crt_model.rows */
};

/* What a step without a kernel does; args[0] of that step. */
enum crt_task {
    /* operand 0 = operand 1; args: from device, to device (one of them is 0,
     * the CPU), bytes. May go on after the step. */
    CRT_TASK_COPY = 1,
    CRT_TASK_WAIT = 2,   /* until a device has done all; args: device */
    CRT_TASK_UNPACK = 3, /* constant 0 to operand 0; args: from, to bytes */
    CRT_TASK_INPUT = 4   /* rows that the caller pushes; args: input */
};

/* One layer, or one fused group of layers: a kernel and all that it reads. */
struct crt_step {
    crt_kernel *kernel; /* NULL: a task of the runtime's own */
    const int32_t *args;
    /* `constant_count` pointers; NULL: the next operand says where it is (a
     * parameter, or what a task has unpacked) */
    const void *const *constants;
    const struct crt_operand *operands; /* in the order of a kernel's p */
    uint16_t images;                    /* batch */
    uint16_t bands;                     /* calls per image */
    uint8_t output_count;
    uint8_t input_count;
    uint8_t constant_count;
    uint8_t scratch_count;
};

/* Consecutive steps that are advanced together, on one device: one after the
 * other, or, where the stage has links, row by row in lock step. */
struct crt_stage {
    uint16_t first; /* index of the first step */
    uint8_t count;  /* steps */
    uint8_t device; /* index into the device table; 0: the CPU */
    uint16_t link;  /* index of the first link; 0: it has none */
};

/* In lock step: before `reader` computes band b, `maker` must have made
 * min(b * stride + ahead, rows) rows; each of its bands makes `made`. Those
 * that `reader` makes are asked for by one link, always: `asker` is its number,
 * from 1 in the stage; 0: it is not always the same, or nobody asks.
 *
 * Steps are numbered from 1 in their stage; makers come before their readers,
 * a stage's links begin with those of its last step, and reader 0 ends them. */
struct crt_link {
    uint8_t reader;
    uint8_t maker;
    uint16_t stride;
    int16_t ahead;
    uint16_t rows;
    uint8_t made;
    uint8_t asker;
};

struct crt_accelerator; /* crt/device.h */

/* The name of a model, an input or an output in generated tables. */
#ifdef CRT_NO_NAMES
#define CRT_NAME(text) NULL
#else
#define CRT_NAME(text) (text)
#endif

/* A model input, output or parameter. */
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
/* This input, output or parameter has no home: it is where it is bound. */
#define CRT_TENSOR_LAZY 2u
/* This input is lazy, and handed over in rows (crt/push.h), not bound. */
#define CRT_TENSOR_PUSHED 4u
/* The home of this input is not for its elements: it is for what they are
 * converted to when they are set (crt/convert.h). */
#define CRT_TENSOR_CONVERTED 8u

struct crt_graph; /* crt/graph.h */

/* Advances a stage in lock step to its end. */
typedef int crt_advance(struct crt_graph *g, void **pointers,
                        const struct crt_stage *stage);

/* Converts an input to its home: crt_convert_input. */
typedef int crt_convert(struct crt_graph *g, const struct crt_tensor *input,
                        const void *data);

/* Puts back what an instance keeps from run to run to where it began. */
typedef void crt_forget(const struct crt_graph *g);

/* A piece of memory that no run but the model's own assignments change. */
struct crt_kept {
    const void *initial; /* `bytes` of them; NULL: zeros */
    uint32_t at;         /* bytes from the start of the region */
    uint32_t bytes;
    uint32_t region;
};

/* All that an instance keeps from run to run (crt/state.h). */
struct crt_state {
    crt_forget *forget;
    const struct crt_kept *kept; /* `count` of them */
    uint32_t count;
    uint32_t bytes; /* of all that is saved, its checksum included */
    uint32_t id;    /* of the model and of this arrangement */
};

/* Unpacks a constant.
 *
 * Errors  non-zero for damaged bytes; never reads or writes outside */
typedef int crt_unpack(const void *from, uint32_t from_bytes, void *to,
                       uint32_t to_bytes);

/* A whole model, const, in flash. */
struct crt_model {
    uint32_t abi; /* CRT_ABI of the generator */
    const char *name;
    /* NULL: each step is a stage, on the CPU */
    const struct crt_stage *stages;
    const struct crt_step *steps;
    const struct crt_tensor *tensors; /* inputs, outputs, then parameters */
    const uint32_t *layouts;          /* of each parameter; 0: row-major */
    const uint32_t *region_bytes;     /* `region_count` of them */
    const uint8_t *region_devices;    /* whose each region is; NULL: all CPU */
    crt_unpack *unpack;               /* for CRT_TASK_UNPACK; NULL: has none */
    /* NULL: all is done by the CPU, and device_count is 1 */
    const struct crt_accelerator *accelerator;
    crt_advance *advance;          /* NULL: no stage is in lock step */
    const struct crt_link *links;  /* NULL without `advance` */
    const struct crt_state *state; /* NULL: nothing is kept from run to run */
    uint32_t counters; /* where in region 0 the bands of each step are counted,
                        * 2 bytes each */
    uint16_t stage_count;
    uint16_t step_count;
    uint16_t input_count;
    uint16_t output_count;
    uint16_t parameter_count;
    uint16_t pointer_count; /* length of `p` that the largest step needs */
    uint16_t region_align;  /* bytes, a power of 2; of every region */
    uint8_t region_count;
    uint8_t device_count;        /* the CPU included */
    const struct crt_rows *rows; /* those of all operands, each once */
    crt_convert *convert; /* NULL: no input is converted when it is set */
};

/* Pointers that struct crt_graph.base needs: regions, inputs, outputs,
 * parameters and where each is from, and the device table if there is one. */
#define CRT_BASE_COUNT(regions, inputs, outputs, parameters, devices)          \
    ((regions) + (inputs) + (outputs) + 2 * (parameters) + ((devices) > 1))

#ifdef __cplusplus
}
#endif

#endif
