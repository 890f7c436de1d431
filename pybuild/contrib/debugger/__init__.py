"""TVM's tvm.contrib.debugger."""
