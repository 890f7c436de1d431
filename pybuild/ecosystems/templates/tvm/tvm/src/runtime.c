/* tvm/src/runtime.c: errors, modules and functions by name, of which there is
 * one. */
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/packed_func.h>

#include "tvm/src/model.h"

static const char *last_error = "";
static char given_error[128];
/* what TVMFuncGetGlobal gives for "runtime.SystemLib": only its address counts
 */
static char system_lib;

int crt_tvm_error(int code, const char *text)
{
    last_error = text;
    return code;
}

const char *TVMGetLastError(void)
{
    return last_error;
}

void TVMAPISetLastError(const char *msg)
{
    size_t i;

    for (i = 0; msg[i] != '\0' && i < sizeof given_error - 1u; i++) {
        given_error[i] = msg[i];
    }
    given_error[i] = '\0';
    last_error = given_error;
}

tvm_crt_error_t TVMInitializeRuntime(void)
{
    return kTvmErrorNoError;
}

int TVMModCreateFromCModule(const TVMModule *mod, TVMModuleHandle *out_handle)
{
    if (mod == NULL || out_handle == NULL) {
        return crt_tvm_error(-1, "TVMModCreateFromCModule: NULL");
    }
    *out_handle = (TVMModuleHandle)(uintptr_t)mod;
    return 0;
}

int TVMModFree(TVMModuleHandle mod)
{
    (void)mod;
    return 0;
}

int TVMModGetFunction(TVMModuleHandle mod, const char *func_name,
                      int query_imports, TVMFunctionHandle *out)
{
    (void)mod;
    (void)func_name;
    (void)query_imports;
    (void)out;
    return crt_tvm_error(
        kTvmErrorFunctionNameNotFound,
        "TVMModGetFunction: layers are not found by name: call "
        "TVMGraphExecutor_Run, or tvmgen_default_run");
}

int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out)
{
    static const char known[] = "runtime.SystemLib";
    size_t i;

    for (i = 0; i < sizeof known && name[i] == known[i]; i++) {
        if (known[i] == '\0') {
            *out = &system_lib;
            return 0;
        }
    }
    return crt_tvm_error(kTvmErrorFunctionNameNotFound,
                         "TVMFuncGetGlobal: there is runtime.SystemLib alone: "
                         "call TVMGraphExecutor_Create, ... by their names");
}

int TVMFuncCall(TVMFunctionHandle func, TVMValue *arg_values, int *type_codes,
                int num_args, TVMValue *ret_val, int *ret_type_code)
{
    (void)arg_values;
    (void)type_codes;
    (void)num_args;
    if (func != (TVMFunctionHandle)&system_lib) {
        return crt_tvm_error(kTvmErrorFunctionIndexInvalid,
                             "TVMFuncCall: no function of TVMFuncGetGlobal");
    }
    ret_val->v_handle = (void *)(uintptr_t)TVMSystemLibEntryPoint();
    *ret_type_code = kTVMModuleHandle;
    return 0;
}

int TVMFuncFree(TVMFunctionHandle func)
{
    (void)func;
    return 0;
}

/* ---- packed functions ------------------------------------------------------
 */

TVMArgs TVMArgs_Create(TVMValue *values, uint32_t *tcodes,
                       uint32_t values_count)
{
    TVMArgs args = {{{0}}, {0}, 0};
    uint32_t i;

    if (values_count > TVM_ARGS_ROOM) {
        TVMPlatformAbort(kTvmErrorFunctionCallNumArguments);
    }
    for (i = 0; i < values_count; i++) {
        args.values[i] = values[i];
        args.tcodes[i] = (int)tcodes[i];
    }
    args.values_count = values_count;
    return args;
}

TVMModuleHandle TVMArgs_AsModuleHandle(const TVMArgs *args, size_t index)
{
    if (index >= args->values_count ||
        args->tcodes[index] != kTVMModuleHandle) {
        TVMPlatformAbort(kTvmErrorFunctionCallWrongArgType);
    }
    return args->values[index].v_handle;
}

void TVMPackedFunc_SetArgs(TVMPackedFunc *pf, const TVMArgs *args)
{
    pf->args = *args;
}

int TVMPackedFunc_Call(TVMPackedFunc *pf)
{
    pf->ret_value.values_count = 1;
    pf->ret_value.tcodes[0] = kTVMNullptr; /* of a call that fails */
    return TVMFuncCall(pf->fexec, pf->args.values, pf->args.tcodes,
                       (int)pf->args.values_count, pf->ret_value.values,
                       pf->ret_value.tcodes);
}

int TVMPackedFunc_InitGlobalFunc(TVMPackedFunc *pf, const char *name,
                                 const TVMArgs *args)
{
    pf->Call = TVMPackedFunc_Call;
    pf->SetArgs = TVMPackedFunc_SetArgs;
    pf->SetArgs(pf, args);
    pf->fexec = NULL;
    return TVMFuncGetGlobal(name, &pf->fexec);
}

int TVMPackedFunc_InitModuleFunc(TVMPackedFunc *pf, TVMModuleHandle module,
                                 const char *name, const TVMArgs *args)
{
    pf->Call = TVMPackedFunc_Call;
    pf->SetArgs = TVMPackedFunc_SetArgs;
    pf->SetArgs(pf, args);
    pf->fexec = NULL;
    return TVMModGetFunction(module, name, 0, &pf->fexec);
}
