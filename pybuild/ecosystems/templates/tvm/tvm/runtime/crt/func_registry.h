/* tvm/runtime/crt/func_registry.h: for programs that include it. There is no
 * registry: layers are called through tables. */
#ifndef TVM_RUNTIME_CRT_FUNC_REGISTRY_H_
#define TVM_RUNTIME_CRT_FUNC_REGISTRY_H_

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/error_codes.h>

#endif
