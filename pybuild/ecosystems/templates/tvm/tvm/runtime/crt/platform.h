/* tvm/runtime/crt/platform.h: the functions that the program defines. The graph
 * executor calls TVMPlatformAbort and, of logging.h, TVMLogf; models that are
 * built with -DTVM_PLATFORM_WORKSPACE call TVMPlatformMemoryAllocate. */
#ifndef TVM_RUNTIME_CRT_PLATFORM_H_
#define TVM_RUNTIME_CRT_PLATFORM_H_

#include <stdarg.h>
#include <stddef.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Must not return. */
#if defined(_MSC_VER)
__declspec(noreturn) void TVMPlatformAbort(tvm_crt_error_t code);
#else
void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t code);
#endif

size_t TVMPlatformFormatMessage(char *out_buf, size_t out_buf_size_bytes,
                                const char *fmt, va_list args);
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev,
                                          void **out_ptr);
tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev);
tvm_crt_error_t TVMPlatformTimerStart(void);
tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds);
tvm_crt_error_t TVMPlatformBeforeMeasurement(void);
tvm_crt_error_t TVMPlatformAfterMeasurement(void);
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes);
tvm_crt_error_t TVMPlatformInitialize(void);

#ifdef __cplusplus
}
#endif

#endif
