// Every header of crt in C++, twice each, and the calls as C++ sees them.
#include "crt/abi.h"
#include "crt/between.h"
#include "crt/calls.h"
#include "crt/config.h"
#include "crt/copy.h"
#include "crt/crc.h"
#include "crt/device.h"
#include "crt/error.h"
#include "crt/extremes.h"
#include "crt/finite.h"
#include "crt/frame.h"
#include "crt/graph.h"
#include "crt/inline.h"
#include "crt/intrin.h"
#include "crt/lockstep.h"
#include "crt/lz4.h"
#include "crt/params.h"
#include "crt/port.h"
#include "crt/push.h"
#include "crt/floats.h"
#include "crt/reals.h"
#include "crt/rounds.h"
#include "crt/wide.h"
#include "crt/halves.h"
#include "crt/packs.h"
#include "crt/rpc.h"
#include "crt/rvv.h"
#include "crt/slots.h"
#include "crt/state.h"
#include "crt/timing.h"
#include "crt/trace.h"
#include "crt/types.h"
#include "crt/unpack.h"
#include "crt/gathers.h"
#include "crt/lanes.h"
#include "crt/vector.h"
#include "crt/verify.h"
#include "crt/weights.h"

#include "crt/abi.h"
#include "crt/between.h"
#include "crt/calls.h"
#include "crt/config.h"
#include "crt/copy.h"
#include "crt/crc.h"
#include "crt/device.h"
#include "crt/error.h"
#include "crt/extremes.h"
#include "crt/finite.h"
#include "crt/frame.h"
#include "crt/graph.h"
#include "crt/inline.h"
#include "crt/intrin.h"
#include "crt/lockstep.h"
#include "crt/lz4.h"
#include "crt/params.h"
#include "crt/port.h"
#include "crt/push.h"
#include "crt/floats.h"
#include "crt/reals.h"
#include "crt/rounds.h"
#include "crt/wide.h"
#include "crt/halves.h"
#include "crt/packs.h"
#include "crt/rpc.h"
#include "crt/rvv.h"
#include "crt/slots.h"
#include "crt/state.h"
#include "crt/timing.h"
#include "crt/trace.h"
#include "crt/types.h"
#include "crt/unpack.h"
#include "crt/vector.h"
#include "crt/verify.h"
#include "crt/weights.h"

int main()
{
    crt_graph graph = crt_graph();
    char text[3] = {0, 0, 0};

    crt_copy(text, "ab", 2);
    crt_turn turn = crt_turn();
    bool shared = crt_graph_share_storage(&graph, &turn) == CRT_ERR_NULL &&
                  crt_graph_release_params(&graph) == CRT_ERR_NULL &&
                  crt_accelerator.step != nullptr &&
                  crt_raise_flag(&turn.running) == 0;
    bool good =
        text[1] == 'b' && crt_graph_run(&graph, nullptr) == CRT_ERR_NULL;
    return good && shared && *crt_strerror(CRT_OK) == 'n' ? 0 : 1;
}
