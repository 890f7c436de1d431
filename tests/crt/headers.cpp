// Every header of crt in C++, twice each, and the calls as C++ sees them.
#include "crt/abi.h"
#include "crt/config.h"
#include "crt/crc.h"
#include "crt/error.h"
#include "crt/graph.h"
#include "crt/params.h"
#include "crt/port.h"
#include "crt/types.h"
#include "crt/lz4.h"
#include "crt/unpack.h"

#include "crt/abi.h"
#include "crt/config.h"
#include "crt/crc.h"
#include "crt/error.h"
#include "crt/graph.h"
#include "crt/params.h"
#include "crt/port.h"
#include "crt/types.h"
#include "crt/lz4.h"
#include "crt/unpack.h"

int main()
{
    crt_graph graph = crt_graph();
    char text[3] = {0, 0, 0};

    crt_copy(text, "ab", 2);
    bool good =
        text[1] == 'b' && crt_graph_run(&graph, nullptr) == CRT_ERR_NULL;
    return good && *crt_strerror(CRT_OK) == 'n' ? 0 : 1;
}
