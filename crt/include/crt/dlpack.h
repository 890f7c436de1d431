/* crt/dlpack.h: DLPack's tensors, and whether one is what a model's tensor is.
 * Optional, for crt/compat_tvm.h. A dlpack.h that is included first stays. */
#ifndef CRT_DLPACK_H
#define CRT_DLPACK_H

#include "crt/abi.h"
#include "crt/error.h"
#include "crt/inline.h"

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(DLPACK_VERSION) && !defined(DLPACK_MAJOR_VERSION)
typedef enum { kDLCPU = 1 } DLDeviceType;

typedef struct {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;

typedef enum {
    kDLInt = 0,
    kDLUInt = 1, /* of 1 bit: CRT_BOOL */
    kDLFloat = 2,
    kDLBfloat = 4
} DLDataTypeCode;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes; /* 1; some firmware leaves it 0 */
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major without gaps */
    uint64_t byte_offset;
} DLTensor;
#endif

CRT_C_BODIES

/* The enum crt_dtype of a type; 0: crt has none. */
static inline int crt_dlpack_dtype(DLDataType type)
{
    static const uint8_t known[][3] = {
        {kDLInt, 8, CRT_INT8},        {kDLInt, 16, CRT_INT16},
        {kDLInt, 32, CRT_INT32},      {kDLInt, 64, CRT_INT64},
        {kDLUInt, 1, CRT_BOOL},       {kDLUInt, 8, CRT_UINT8},
        {kDLUInt, 16, CRT_UINT16},    {kDLUInt, 32, CRT_UINT32},
        {kDLUInt, 64, CRT_UINT64},    {kDLFloat, 16, CRT_FLOAT16},
        {kDLFloat, 32, CRT_FLOAT32},  {kDLFloat, 64, CRT_FLOAT64},
        {kDLBfloat, 16, CRT_BFLOAT16}};
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i][0] == type.code && known[i][1] == type.bits) {
            return type.lanes > 1u ? 0 : (int)known[i][2];
        }
    }
    return 0;
}

/* Whether an array is what a tensor of the model is.
 *
 * Errors  CRT_ERR_NULL, CRT_ERR_DTYPE, CRT_ERR_SHAPE, CRT_ERR_STRIDES */
static inline int crt_dlpack_check(const DLTensor *array,
                                   const struct crt_tensor *tensor)
{
    int64_t step = 1;
    int32_t i;

    if (array == NULL || array->data == NULL) {
        return CRT_ERR_NULL;
    }
    if (crt_dlpack_dtype(array->dtype) != (int)tensor->dtype) {
        return CRT_ERR_DTYPE;
    }
    if (array->ndim != (int32_t)tensor->rank) {
        return CRT_ERR_SHAPE;
    }
    for (i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] != tensor->dims[i]) {
            return CRT_ERR_SHAPE;
        }
        if (array->strides != NULL && tensor->dims[i] != 1 &&
            array->strides[i] != step) {
            return CRT_ERR_STRIDES;
        }
        step *= tensor->dims[i];
    }
    return CRT_OK;
}

CRT_C_BODIES_END

#ifdef __cplusplus
}
#endif

#endif
