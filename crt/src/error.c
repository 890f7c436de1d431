/* error.c: texts of the error codes. Its own file, so that a program that
 * never prints them does not carry them. */
#include "crt/error.h"

const char *crt_strerror(int error)
{
    switch (error) {
/* MISRA 20.7: a label and a text take no brackets */
#define CRT_ERROR_TEXT(name, value, text)                                      \
    case name:                                                                 \
        return text;
        CRT_ERRORS(CRT_ERROR_TEXT)
#undef CRT_ERROR_TEXT
    default:
        return "unknown error";
    }
}
