/* What was saved may be any bytes, of any number up to MOST: of an instance
 * only the pieces that it keeps are written, and only if it is as long as that
 * of the model. */
#include "crt/crc.h"
#include "crt/error.h"
#include "crt/slots.h"
#include "crt/state.h"

enum { AT = 3, FIRST = 5, SECOND = 4, REGION = 16, ID = 7 };

uint32_t nondet_number(void);

/* Any number: which bytes have which checksum is not what is asked. */
uint32_t crt_crc32(uint32_t crc, const void *data, size_t bytes)
{
    (void)crc;
    __CPROVER_assert(__CPROVER_r_ok(data, bytes), "what is summed is there");
    return nondet_number();
}

/* Of a run that is not over: no matter here. */
void crt_stop(struct crt_graph *g)
{
    (void)g;
}

int main(void)
{
    static const struct crt_kept kept[] = {{NULL, AT, FIRST, 0},
                                           {NULL, AT + FIRST, SECOND, 0}};
    static const struct crt_state state = {crt_state_forget, kept, 2,
                                           4 + FIRST + SECOND, ID};
    static struct crt_model model;
    static struct crt_graph g;
    static uint8_t region[REGION];
    static uint8_t before[REGION];
    static void *base[1];
    static uint8_t saved[MOST];
    const uint32_t bytes = nondet_number();
    uint32_t i;
    int status;

    __CPROVER_assume(bytes <= MOST);
    __CPROVER_havoc_object(saved);
    __CPROVER_havoc_object(region);
    model.state = &state;
    model.region_count = 1;
    base[0] = region;
    g.model = &model;
    g.base = base;
    for (i = 0; i < REGION; i++) {
        before[i] = region[i];
    }
    /* nothing lies behind it */
    status = crt_state_restore(&g, saved + (MOST - bytes), bytes);
    for (i = 0; i < REGION; i++) {
        const int inside = i >= AT && i < AT + FIRST + SECOND;

        __CPROVER_assert((inside && status == 0) || region[i] == before[i],
                         "nothing else is written");
    }
    __CPROVER_assert(status == 0 || status == CRT_ERR_SIZE ||
                         status == CRT_ERR_STATE,
                     "it is taken whole, or refused");
    status = crt_state_save(&g, saved + (MOST - bytes), bytes);
    __CPROVER_assert((status == 0) == (bytes == state.bytes), "saved as long");
    return 0;
}
