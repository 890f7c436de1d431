/* What CMSIS-DSP's transforms ask of a compiler on a Cortex-M4: instructions as
 * GNU assembly. Its own header is in CMSIS-Core, which no package index has. */
#ifndef CMSIS_COMPILER_H
#define CMSIS_COMPILER_H

#include <stdint.h>

#define __STATIC_FORCEINLINE static inline __attribute__((always_inline))
#define __STATIC_INLINE      static inline
#define __INLINE             inline
#define __WEAK               __attribute__((weak))
#define __ALIGNED(x)         __attribute__((aligned(x)))
#define __RESTRICT           __restrict
#define CMSIS_INLINE         inline
#define TWO(name, code)                                                        \
    __STATIC_FORCEINLINE uint32_t name(uint32_t a, uint32_t b)                 \
    {                                                                          \
        uint32_t made;                                                         \
        __asm(code " %0, %1, %2" : "=r"(made) : "r"(a), "r"(b));               \
        return made;                                                           \
    }
#define THREE(name, code)                                                      \
    __STATIC_FORCEINLINE uint32_t name(uint32_t a, uint32_t b, uint32_t c)     \
    {                                                                          \
        uint32_t made;                                                         \
        __asm(code " %0, %1, %2, %3" : "=r"(made) : "r"(a), "r"(b), "r"(c));   \
        return made;                                                           \
    }
TWO(__QADD16, "qadd16")
TWO(__QSUB16, "qsub16")
TWO(__QASX, "qasx")
TWO(__QSAX, "qsax")
TWO(__QADD8, "qadd8")
TWO(__QSUB8, "qsub8")
TWO(__SHADD16, "shadd16")
TWO(__SHSUB16, "shsub16")
TWO(__SHASX, "shasx")
TWO(__SHSAX, "shsax")
TWO(__SMUAD, "smuad")
TWO(__SMUADX, "smuadx")
TWO(__SMUSD, "smusd")
TWO(__SMUSDX, "smusdx")
TWO(__QADD, "qadd")
TWO(__QSUB, "qsub")
THREE(__SMLAD, "smlad")
THREE(__SMLADX, "smladx")
THREE(__SMLSD, "smlsd")
THREE(__SMLSDX, "smlsdx")
THREE(__SMMLA, "smmla")
#define __PKHBT(a, b, s)                                                       \
    ((uint32_t)(((a) & 0xFFFF) | ((uint32_t)(b) << (s) & 0xFFFF0000u)))
#define __PKHTB(a, b, s)                                                       \
    ((uint32_t)(((uint32_t)(a) & 0xFFFF0000u) | ((int32_t)(b) >> (s) & 0xFFFF)))
#define __SSAT(a, s)                                                           \
    ({                                                                         \
        int32_t made_;                                                         \
        __asm("ssat %0, %1, %2" : "=r"(made_) : "I"(s), "r"(a));               \
        made_;                                                                 \
    })
#define __USAT(a, s)                                                           \
    ({                                                                         \
        uint32_t made_;                                                        \
        __asm("usat %0, %1, %2" : "=r"(made_) : "I"(s), "r"(a));               \
        made_;                                                                 \
    })
#define __CLZ              __builtin_clz
#define __ROR(a, s)        (((a) >> (s)) | ((a) << (32 - (s))))
#define __SMLALD(a, b, c)  __builtin_arm_smlald(a, b, c)
#define __SMLALDX(a, b, c) __builtin_arm_smlaldx(a, b, c)
__STATIC_FORCEINLINE uint32_t __SXTB16(uint32_t a)
{
    uint32_t made;
    __asm("sxtb16 %0, %1" : "=r"(made) : "r"(a));
    return made;
}
#define __SXTB16_RORn(a, s) __SXTB16(__ROR(a, s))

#endif
