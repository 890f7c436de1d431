/* tvm/runtime/crt/module.h: the model of a build as TVM's system library. */
#ifndef TVM_RUNTIME_CRT_MODULE_H_
#define TVM_RUNTIME_CRT_MODULE_H_

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/func_registry.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMModule TVMModule;

/* The handle of a module; 0, or -1 for NULL. */
int TVMModCreateFromCModule(const TVMModule *mod, TVMModuleHandle *out_handle);

/* The model of this build. */
const TVMModule *TVMSystemLibEntryPoint(void);

#ifdef __cplusplus
}
#endif

#endif
