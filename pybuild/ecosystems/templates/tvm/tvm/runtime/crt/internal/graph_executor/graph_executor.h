/* For programs that include it for the fields of TVMGraphExecutor. */
#ifndef TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_H_
#define TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_H_

#include <tvm/runtime/crt/graph_executor.h>

#endif
