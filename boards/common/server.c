/* server.c: firmware that lets pybuild.rpc drive a model over the console's
 * line: docs/rpc-protocol.md. All RAM that is left is for instances, weights
 * and buffers. Knows the model through the generated firmware_model.h. */
#include "crt/port.h"
#include "crt/rpc.h"
#include "firmware_model.h"

#define INTERRUPT 256u /* bytes of stack beside what is bounded */

extern uint8_t board_stack_low[], board_stack_top[], board_stack_room[];

static uint8_t room[CRT_RPC_ROOM(SERVER_BYTES)];
static struct crt_rpc server;

int main(void)
{
    const uintptr_t low = ((uintptr_t)board_stack_low + 15u) & ~(uintptr_t)15u;
    const uintptr_t high =
        (uintptr_t)board_stack_top - (uintptr_t)board_stack_room - INTERRUPT;
    struct crt_rpc_config config = {
        .model = &MODEL_TABLES,
        .content = SERVER_CONTENT,
        .board = SERVER_BOARD,
        .put = crt_rpc_port_put,
        .get = crt_rpc_port_get,
        .ticks = crt_rpc_port_ticks,
        .memory = (uint8_t *)low,
        .room = room,
        .room_bytes = sizeof room,
        .hz = BOARD_HZ,
    };
    int error;

    config.memory_bytes = high > low ? (uint32_t)(high - low) : 0;
    error = crt_rpc_init(&server, &config);
    if (error == CRT_OK)
        crt_rpc_log(&server, SERVER_BOARD " serves " SERVER_CONTENT);
    while (error == CRT_OK)
        crt_rpc_poll(&server);
    return -error;
}
