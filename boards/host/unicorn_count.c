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
    /* by halfwords of the code, or 0: ran + 1 where a block begins, - 1
     * behind it, so that sums of it from the start are how often each was run;
     * left: how often the code did not go on where a block before had ended */
    int64_t *ran;
    int64_t *left;
};

/* An engine, which is one core: what its hooks are given. */
struct unicorn_core {
    struct unicorn_count *count;
    uint64_t k; /* from 0 */
};

enum { UNICORN_WRITES = 17 }; /* UC_MEM_WRITE */

void unicorn_block(void *engine, uint64_t address, uint32_t bytes, void *user);
void unicorn_read(void *engine, int kind, uint64_t address, int bytes,
                  int64_t value, void *user);
void unicorn_meets(void *engine, int kind, uint64_t address, int bytes,
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

/* What is left of an inference before is not part of this one. */
static void forget(struct unicorn_count *u)
{
    uint64_t i;

    for (i = 0; i <= u->code_bytes / 2u; i++)
        u->ran[i] = u->left[i] = 0;
}

static void trace(struct unicorn_count *u, uint64_t k, uint64_t address,
                  uint32_t bytes)
{
    const struct count *c = &u->count;
    const uint64_t at = address - u->code_at;
    const uint64_t before = c->core[k].next - u->code_at;

    if (k == 0 && !c->begun && (address == c->begin || address == c->last))
        forget(u);
    else if (!c->on || address == c->end)
        return;
    if (at >= u->code_bytes || bytes > u->code_bytes - at)
        return;
    u->ran[at / 2u]++;
    u->ran[(at + bytes) / 2u]--;
    if (before != at && before <= u->code_bytes)
        u->left[before / 2u]++;
}

void unicorn_block(void *engine, uint64_t address, uint32_t bytes, void *user)
{
    const struct unicorn_core *core = (const struct unicorn_core *)user;
    struct unicorn_count *u = core->count;
    struct block block;

    block.address = address;
    block.bytes = bytes;
    block.instructions = instructions(u, address, bytes);
    count_cycles(&u->costs, &block);
    (void)engine;
    if (u->ran != 0)
        trace(u, core->k, address, bytes);
    count_block(&u->count, core->k, &block);
}

void unicorn_read(void *engine, int kind, uint64_t address, int bytes,
                  int64_t value, void *user)
{
    const struct unicorn_core *core = (const struct unicorn_core *)user;

    (void)engine;
    (void)kind;
    (void)bytes;
    (void)value;
    count_read(&core->count->count, core->k, address);
}

void unicorn_meets(void *engine, int kind, uint64_t address, int bytes,
                   int64_t value, void *user)
{
    const struct unicorn_core *core = (const struct unicorn_core *)user;

    (void)engine;
    (void)bytes;
    (void)value;
    count_meets(&core->count->count, core->k, address, kind == UNICORN_WRITES);
}
