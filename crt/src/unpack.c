/* unpack.c: packed parameters of images back to bytes.
 * Knows no model. */
#include "crt/unpack.h"
#include "crt/lz4.h"
#include "crt/port.h"

uint32_t crt_params_unpacked_bytes(const struct crt_params *p)
{
    return p == NULL ? 0u : crt_params_unpacked_at(p, p->count);
}

int crt_params_unpack_all(struct crt_params *p, void *memory, uint32_t bytes,
                          crt_codec *codec, void *context)
{
    struct crt_param param;
    uint32_t need;
    uint32_t i;

    if (p == NULL || memory == NULL) {
        return CRT_ERR_NULL;
    }
    if (p->unpacked != NULL) { /* it is: nothing is packed any more */
        return CRT_OK;
    }
    need = crt_params_unpacked_bytes(p);
    if (need == UINT32_MAX || bytes < need) {
        return CRT_ERR_SIZE;
    }
    /* MISRA 11.6: only the lower bits are looked at */
    if (((uintptr_t)memory & (CRT_UNPACK_ALIGN - 1u)) != 0u) {
        return CRT_ERR_ALIGN;
    }
    for (i = 0; i < p->count; i++) {
        uint8_t *to = (uint8_t *)memory + crt_params_unpacked_at(p, i);
        int error = CRT_OK;

        (void)crt_params_get(p, i, &param);
        if (param.codec != (uint32_t)CRT_CODEC_NONE) {
            error = crt_params_unpack(&param, to, param.bytes, codec, context);
        }
        if (error != CRT_OK) {
            return error;
        }
    }
    p->unpacked = (const uint8_t *)memory;
    return CRT_OK;
}

int crt_params_unpack(const struct crt_param *param, void *to, uint32_t bytes,
                      crt_codec *codec, void *context)
{
    if (param == NULL || to == NULL) {
        return CRT_ERR_NULL;
    }
    if (bytes != param->bytes) {
        return CRT_ERR_SIZE;
    }
    if (param->codec == (uint32_t)CRT_CODEC_NONE) {
        crt_copy(to, param->data, bytes);
        return CRT_OK;
    }
    if (param->codec == (uint32_t)CRT_CODEC_LZ4) {
        return crt_lz4_unpack(param->data, param->stored, to, bytes);
    }
    if (codec == NULL) {
        return CRT_ERR_CODEC;
    }
    if (codec(context, param->codec, param->data, param->stored, to, bytes) !=
        0) {
        return CRT_ERR_UNPACK;
    }
    return CRT_OK;
}
