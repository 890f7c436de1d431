/* crt/error.h: everything that can go wrong in crt, one list.
 * Knows nothing of graphs. pybuild reads this list too: one line an entry. */
#ifndef CRT_ERROR_H
#define CRT_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text). Values are for ever: never reuse or renumber one. */
/* MISRA 20.7: a list of items, X is called with each */
#define CRT_ERRORS(X)                                                          \
    X(CRT_OK, 0, "no error")                                                   \
    X(CRT_ERR_NULL, -1, "NULL pointer, or NAME_init was not called")           \
    X(CRT_ERR_ABI, -2, "model and crt are of different CRT_ABI")               \
    X(CRT_ERR_REGION, -3, "wrong number of memory regions, or one too small")  \
    X(CRT_ERR_ALIGN, -4, "pointer is not aligned as the model needs it")       \
    X(CRT_ERR_INDEX, -5, "no tensor or stage of this number")                  \
    X(CRT_ERR_NAME, -6, "no tensor of this name")                              \
    X(CRT_ERR_SIZE, -7, "byte count is not that of the tensor")                \
    X(CRT_ERR_INPUT_MISSING, -8, "an input was never given")                   \
    X(CRT_ERR_INPUT_CONSUMED, -9, "an input was used up: give it again")       \
    X(CRT_ERR_STOPPED, -10, "the hook stopped the run")                        \
    X(CRT_ERR_STAGE, -11, "stages must run in order, from 0")                  \
    X(CRT_ERR_NO_OUTPUT, -12, "no output: not run yet, or overwritten since")  \
    X(CRT_ERR_SELFTEST, -13, "the self-test gave another answer")              \
    X(CRT_ERR_UNBOUND, -14, "a lazy tensor or a parameter is not bound")       \
    X(CRT_ERR_LAZY, -15, "a lazy input has no memory to copy to: bind it")     \
    X(CRT_ERR_DTYPE, -16, "array is of another type than the tensor")          \
    X(CRT_ERR_SHAPE, -17, "array is of another shape than the tensor")         \
    X(CRT_ERR_STRIDES, -18, "array has gaps, or another order of elements")    \
    X(CRT_ERR_DEVICE, -19, "devices are not set, or one has failed")           \
    X(CRT_ERR_MAGIC, -20, "not a parameter image")                             \
    X(CRT_ERR_VERSION, -21, "parameter image of another version")              \
    X(CRT_ERR_CHECKSUM, -22, "parameter image is damaged: wrong checksum")     \
    X(CRT_ERR_FORMAT, -23, "parameter image is cut or inconsistent")           \
    X(CRT_ERR_CODEC, -24, "parameter is packed by a codec that is not here")   \
    X(CRT_ERR_UNPACK, -25, "packed parameter is damaged")                      \
    X(CRT_ERR_LAYOUT, -26, "parameter is arranged for another model")          \
    X(CRT_ERR_CONTENT, -27, "parameter has another content")                   \
    X(CRT_ERR_IN_USE, -28, "parameters are in use by an instance")             \
    X(CRT_ERR_BUSY, -29, "another instance is running in the shared storage")  \
    X(CRT_ERR_MEMORY, -30, "the board has no memory left for this")            \
    X(CRT_ERR_CALL, -31, "the board knows no such call, or it was cut")        \
    X(CRT_ERR_ROWS, -32, "more rows than the input has left, or wants now")    \
    X(CRT_ERR_PUSHED, -33, "the input takes no rows, or it was bound")         \
    X(CRT_ERR_STATE, -34, "state is damaged, of another build, or not kept")   \
    X(CRT_ERR_OVERLAP, -35, "bound memory is used by a model during runs")     \
    X(CRT_ERR_TASK, -36, "step is not a kernel: only whole runs compute it")   \
    X(CRT_ERR_CORE, -37, "another core did not come, or did not finish")

/* Without a tag: they are ints, as what they are compared with.
 * MISRA 20.7: a name that is declared takes no brackets */
#define CRT_ERROR_VALUE(name, value, text) name = (value),
enum { CRT_ERRORS(CRT_ERROR_VALUE) };
#undef CRT_ERROR_VALUE

/* The text of an error code; "unknown error" for any other number.
 *
 * Owner   static, never freed
 * Thread  re-entrant */
const char *crt_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
