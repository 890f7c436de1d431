/* tvm/runtime/crt/logging.h: TVMLogf, which the program defines, and the
 * macros. */
#ifndef TVM_RUNTIME_CRT_LOGGING_H_
#define TVM_RUNTIME_CRT_LOGGING_H_

#include <tvm/runtime/crt/platform.h>

#define TVM_CRT_LOG_LEVEL_DEBUG 3
#define TVM_CRT_LOG_LEVEL_INFO  2
#define TVM_CRT_LOG_LEVEL_WARN  1
#define TVM_CRT_LOG_LEVEL_ERROR 0
#ifndef TVM_CRT_LOG_LEVEL
#define TVM_CRT_LOG_LEVEL TVM_CRT_LOG_LEVEL_ERROR
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
void __attribute__((format(printf, 1, 2))) TVMLogf(const char *fmt, ...);
#else
void TVMLogf(const char *fmt, ...);
#endif

#ifdef __cplusplus
}
#endif

#define TVM_LOG_AT(level, ...)                                                 \
    do {                                                                       \
        if (TVM_CRT_LOG_LEVEL >= (level)) {                                    \
            TVMLogf(__VA_ARGS__);                                              \
        }                                                                      \
    } while (0)
#define LOG_ERROR(...) TVM_LOG_AT(TVM_CRT_LOG_LEVEL_ERROR, __VA_ARGS__)
#define LOG_WARN(...)  TVM_LOG_AT(TVM_CRT_LOG_LEVEL_WARN, __VA_ARGS__)
#define LOG_INFO(...)  TVM_LOG_AT(TVM_CRT_LOG_LEVEL_INFO, __VA_ARGS__)
#define LOG_DEBUG(...) TVM_LOG_AT(TVM_CRT_LOG_LEVEL_DEBUG, __VA_ARGS__)

#ifndef CHECK
#define CHECK(x)                                                               \
    do {                                                                       \
        if (!(x)) {                                                            \
            LOG_ERROR("%s:%d: Check failed: %s\n", __FILE__, __LINE__, #x);    \
            TVMPlatformAbort(kTvmErrorPlatformCheckFailure);                   \
        }                                                                      \
    } while (0)
#endif

/* The last arguments are a message and its values. */
#define TVM_CHECK_IS(op, x, y, ...)                                            \
    do {                                                                       \
        if (!((x)op(y))) {                                                     \
            LOG_ERROR("%s:%d: Check failed: %s %s %s: ", __FILE__, __LINE__,   \
                      #x, #op, #y);                                            \
            LOG_ERROR(__VA_ARGS__);                                            \
            LOG_ERROR("\n");                                                   \
            TVMPlatformAbort(kTvmErrorPlatformCheckFailure);                   \
        }                                                                      \
    } while (0)
#ifndef CHECK_EQ
#define CHECK_EQ(x, y, ...) TVM_CHECK_IS(==, x, y, __VA_ARGS__)
#define CHECK_NE(x, y, ...) TVM_CHECK_IS(!=, x, y, __VA_ARGS__)
#define CHECK_LT(x, y, ...) TVM_CHECK_IS(<, x, y, __VA_ARGS__)
#define CHECK_LE(x, y, ...) TVM_CHECK_IS(<=, x, y, __VA_ARGS__)
#define CHECK_GT(x, y, ...) TVM_CHECK_IS(>, x, y, __VA_ARGS__)
#define CHECK_GE(x, y, ...) TVM_CHECK_IS(>=, x, y, __VA_ARGS__)
#endif

#endif
