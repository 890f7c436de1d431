/* unicorn_count.c: counts instructions by step in Unicorn, from its hooks.
 * Needs no header and no library, so that zig builds it anywhere. */
#include "count.h"

/* The code that runs, and what is counted of it. */
struct unicorn_count {
    struct count count;
    const uint8_t *code;
    uint64_t code_at; /* address of code[0] on the device */
    uint64_t code_bytes;
    uint64_t is_riscv;
    struct costs costs;
};

void unicorn_block(void *engine, uint64_t address, uint32_t bytes, void *user);
void unicorn_read(void *engine, int kind, uint64_t address, int bytes,
                  int64_t value, void *user);

/* Unicorn tells the bytes of a block, not its instructions. */
static uint64_t instructions(const struct unicorn_count *u, uint64_t address,
                             uint32_t bytes)
{
    const uint64_t at = address - u->code_at;
    uint64_t n = 0;
    uint64_t i;

    if (at >= u->code_bytes || bytes > u->code_bytes - at)
        return 0;
    for (i = at; i < at + bytes; n++) {
        const uint32_t low = u->code[i];
        const uint32_t high = u->code[i + 1];

        if (u->is_riscv)
            i += (low & 3u) == 3u ? 4 : 2;
        else
            i += high >= 0xE8u ? 4 : 2;
    }
    return n;
}

void unicorn_block(void *engine, uint64_t address, uint32_t bytes, void *user)
{
    struct unicorn_count *u = (struct unicorn_count *)user;

    struct block block;

    block.address = address;
    block.bytes = bytes;
    block.instructions = instructions(u, address, bytes);
    count_cycles(&u->costs, &block);
    (void)engine;
    count_block(&u->count, 0, &block);
}

void unicorn_read(void *engine, int kind, uint64_t address, int bytes,
                  int64_t value, void *user)
{
    struct unicorn_count *u = (struct unicorn_count *)user;

    (void)engine;
    (void)kind;
    (void)bytes;
    (void)value;
    count_read(&u->count, 0, address);
}
