/* runner.c: firmware that runs a model on every input set of a file and writes
 * what it gave to another: for crt run, check and bench.
 * Knows the model through the generated firmware_model.h. */
#include "board.h"

#include "crt/port.h"
#include "firmware_model.h"
#if defined(BOARD_SECOND) || defined(BOARD_CORES)
#include "second.h"
#endif

#define PAINT  0xC5C5C5C5u
#define MARGIN 64u     /* bytes below the stack pointer that are not painted */
#define FAR    0x8000u /* bytes of stack that are painted at most */

enum { NO_MORE = -1, BAD_FILE = 90, STACK_OVERFLOW = 91 };

extern uint32_t board_stack_low[];

static MODEL_STRUCT model;
static int32_t given;
static int32_t results;
#ifdef MODEL_OPEN_PARAMS
static struct crt_params params;
#endif
#ifdef MODEL_BUFFERS
/* of lazy inputs and outputs, and of those on a device; else 0 */
static uint8_t *const buffers[] = MODEL_BUFFERS;
#endif
#if defined(BOARD_SECOND) || defined(BOARD_CORES)
extern uint32_t board_second_stack_low[], board_second_stack_top[];
#endif
#ifdef BOARD_CORES
static struct crt_cores board_cores;
/* where simulators look, see count.py */
typedef char cores_lie_so[offsetof(struct crt_cores, call) == 8u &&
                                  offsetof(struct crt_cores, ready) == 32u
                              ? 1
                              : -1];
#endif
#ifdef MODEL_DEVICES
#ifdef BOARD_SECOND
static void *second_pointers[MODEL_POINTERS];
static const struct crt_device devices[MODEL_DEVICES] = {
    {0, 0}, {&board_second, 0}}; /* the CPU does the work of any others */
#else
static const struct crt_device devices[MODEL_DEVICES] = {{0, 0}};
#endif
#endif

/* The end of what is painted: that of the stack, or far below `here`. */
static uint32_t *low(const uint32_t *here)
{
    const uintptr_t end = (uintptr_t)board_stack_low;
    const uintptr_t far = (uintptr_t)here - FAR;

    return (uint32_t *)((uintptr_t)here - end < FAR ? end : far);
}

/* The stack from its end up to near the present frame. */
static void paint(const uint32_t *here)
{
    uint32_t *p;

    for (p = low(here); p < here - MARGIN / 4u; p++)
        *p = PAINT;
}

/* Bytes of stack below `here` that are no longer painted. */
static uint32_t used(const uint32_t *here)
{
    const uint32_t *p = low(here);

    while (p < here && *p == PAINT)
        p++;
    return (uint32_t)((const uint8_t *)here - (const uint8_t *)p);
}

#ifdef RECORD
/* Writes step, first row and the rows of it: pybuild puts tensors together. */
static int record(void *context, uint32_t step, uint32_t first_row,
                  uint32_t count, const void *rows)
{
    const uint32_t bytes = count * model_row_bytes[step];
    const uint32_t head[3] = {step, first_row, bytes};

    (void)context;
    return board_write(results, head, sizeof head) != (int32_t)sizeof head ||
           board_write(results, rows, bytes) != (int32_t)bytes;
}
#endif

/* Memory of the runner's own for input or, after those, output i; 0: the model
 * has some. */
static uint8_t *buffer_of(int i)
{
#ifdef MODEL_BUFFERS
    return buffers[i];
#else
    (void)i;
    return 0;
#endif
}

/* Binds an input without memory to where it was read, so that its conversion is
 * a part of the run; or copies one to its device. */
static int hand_over(uint32_t i, const struct crt_tensor *info,
                     const uint8_t *data)
{
    if ((info->flags & (CRT_TENSOR_LAZY | CRT_TENSOR_CONVERTED)) != 0)
        return crt_graph_bind_input(&model.graph, i, data, info->bytes);
    return crt_graph_set_input(&model.graph, i, data, info->bytes);
}

#ifdef MODEL_PUSH_ROWS
static uint32_t at; /* bytes of `given` that were taken */
#endif

/* Reads inputs to where the model wants them; those that come in rows are left
 * out.
 *
 * Errors  NO_MORE at the end of the file; BAD_FILE: cannot be given */
static int take_inputs(void)
{
    int i;

    for (i = 0; i < crt_graph_input_count(&model.graph); i++) {
        const struct crt_tensor *info =
            crt_graph_input_info(&model.graph, (uint32_t)i);
        uint8_t *own = buffer_of(i);
        void *data =
            own != 0 ? own : crt_graph_input(&model.graph, (uint32_t)i);

#ifdef MODEL_PUSH_ROWS
        if (model_rows[i] != 0) {
            board_seek(given, at += info->bytes);
            continue;
        }
        at += info->bytes;
#endif
        if (board_read(given, data, info->bytes) != (int32_t)info->bytes)
            return NO_MORE;
        if (own != 0 && hand_over((uint32_t)i, info, own) != CRT_OK)
            return BAD_FILE;
    }
    return 0;
}

static int give_outputs(void)
{
    const int first = crt_graph_input_count(&model.graph);
    int i;

    for (i = 0; i < crt_graph_output_count(&model.graph); i++) {
        const struct crt_tensor *info =
            crt_graph_output_info(&model.graph, (uint32_t)i);
        uint8_t *own = buffer_of(first + i);
        const void *data = crt_graph_output(&model.graph, (uint32_t)i);

        if (data == 0) { /* it is on a device */
            if (crt_graph_get_output(&model.graph, (uint32_t)i, own,
                                     info->bytes) != CRT_OK)
                return BAD_FILE;
            data = own;
        }
        if (board_write(results, data, info->bytes) != (int32_t)info->bytes)
            return BAD_FILE;
    }
    return 0;
}

/* Lazy outputs go to memory of the runner's. */
static int bind_outputs(void)
{
    const int first = crt_graph_input_count(&model.graph);
    int error = CRT_OK;
    int i;

    for (i = 0; error == CRT_OK && i < crt_graph_output_count(&model.graph);
         i++) {
        const struct crt_tensor *info =
            crt_graph_output_info(&model.graph, (uint32_t)i);

        if ((info->flags & CRT_TENSOR_LAZY) != 0)
            error = crt_graph_bind_output(&model.graph, (uint32_t)i,
                                          buffer_of(first + i), info->bytes);
    }
    return error;
}

#if defined(BOARD_SECOND) || defined(BOARD_CORES)
static void paint_second(void)
{
    uint32_t *p;

    for (p = board_second_stack_low; p < board_second_stack_top; p++)
        *p = PAINT;
}
#endif

#ifdef BOARD_CORES
/* What a core does while it waits for the other; a fault of that one ends the
 * run. */
BOARD_WAITING static int board_second_look(void *context, uint32_t core)
{
    (void)context;
    (void)core;
#ifdef BOARD_HARTS
    board_second_rest((int)core);
#endif
    return board_second_faulted != 0;
}

void board_second_work(void)
{
    for (;;)
        (void)MODEL_WORK(&model, &board_cores, 1);
}

static int run_on_cores(MODEL_STRUCT *m)
{
    return MODEL_RUN_CORES(m, &board_cores);
}
#undef MODEL_RUN
#define MODEL_RUN run_on_cores
#endif

/* Bytes that the second core's stack has held. */
static uint32_t used_by_second(void)
{
#if defined(BOARD_SECOND) || defined(BOARD_CORES)
    const uint32_t *p = board_second_stack_low;

    while (p < board_second_stack_top && *p == PAINT)
        p++;
    return (uint32_t)((const uint8_t *)board_second_stack_top -
                      (const uint8_t *)p);
#else
    return 0;
#endif
}

/* The instance with its devices, parameters and memory. */
static int set_up(void)
{
    const MODEL_MEMORY_STRUCT memory = MODEL_ARRAYS;
    int error = MODEL_INIT(&model, &memory);

#ifdef MODEL_DEVICES
#ifdef BOARD_SECOND
    paint_second();
    board_second_start(second_pointers);
#endif
    if (error == CRT_OK)
        error = MODEL_SET_DEVICES(&model, devices);
#endif
#ifdef BOARD_CORES
    paint_second();
    board_cores.wait = board_second_look;
    if (error == CRT_OK)
        board_second_begin();
#endif
#ifdef MODEL_OPEN_PARAMS
    if (error == CRT_OK)
        error = MODEL_OPEN_PARAMS(&params);
    if (error == CRT_OK)
        error = MODEL_LOAD_PARAMS(&model, &params);
#endif
    return error == CRT_OK ? bind_outputs() : error;
}

/* A call of the model with its stack measured; *stack: the most of an
 * inference.
 *
 * Errors  exit codes: 0, that of crt made positive, or STACK_OVERFLOW */
static int measured(board_function *function, void *argument, uint32_t *stack)
{
    uint32_t here;
    uint32_t most;
    int error;

    paint(&here);
    error = board_call(function, argument);
    most = used(&here);
    if (*stack < most)
        *stack = most;
    if (error == CRT_OK && *low(&here) != PAINT)
        error = -STACK_OVERFLOW;
    return -error;
}

#ifdef MODEL_PUSH_ROWS
static uint8_t row[MODEL_ROW_BYTES];

static int push_row(const uint32_t *input)
{
    return MODEL_PUSH_ROWS(&model, *input, row, 1);
}

/* Reads inputs row by row, in the order in which they are wanted: they are
 * never here as a whole.
 *
 * begin  where this set of inputs begins in the file */
static int push_rows(uint32_t begin, uint32_t *stack)
{
    const uint32_t count = (uint32_t)crt_graph_input_count(&model.graph);
    uint32_t missing = MODEL_ROWS;
    uint32_t from = begin;
    uint32_t i = 0;
    int error = 0;

    while (error == 0 && missing > 0) {
        const uint32_t all = crt_graph_input_info(&model.graph, i)->bytes;

        if (crt_graph_rows_wanted(&model.graph, i) > 0) {
            const int left = crt_graph_rows_left(&model.graph, i);
            const uint32_t size = all / model_rows[i];

            board_seek(given, from + all - (uint32_t)left * size);
            if (board_read(given, row, size) != (int32_t)size)
                return NO_MORE;
            error = measured((board_function *)push_row, &i, stack);
            if (error == 0) {
                missing--;
                continue;
            }
            if (error == -CRT_ERR_ROWS) /* before the first row of all */
                error = 0;
        }
        from = i + 1u < count ? from + all : begin;
        i = i + 1u < count ? i + 1u : 0;
    }
    board_seek(given, at);
    return error;
}
#endif

/* One inference; takes its inputs first, or while they come.
 *
 * Errors  as measured; NO_MORE, BAD_FILE */
static int infer(uint32_t *stack)
{
#ifdef MODEL_PUSH_ROWS
    const uint32_t begin = at;
#endif
    int error = take_inputs();
    uint32_t most = 0;

#ifdef MODEL_PUSH_ROWS
    if (error == 0)
        error = push_rows(begin, &most);
#endif
    if (error == 0)
        error = measured((board_function *)MODEL_RUN, &model, &most);
    if (error != NO_MORE)
        *stack = most;
    return error;
}

int main(void)
{
    int error = -set_up();
    uint32_t stacks[2] = {0, 0};
    int32_t file;

    given = board_open("crt.in", 0);
    results = board_open("crt.out", 1);
    if (given < 0 || results < 0)
        error = BAD_FILE;
#ifdef RECORD
    if (error == 0)
        error = -crt_graph_set_hook(&model.graph, record, 0);
#endif
    while (error == 0) {
        error = infer(&stacks[0]);
        if (error == 0)
            error = give_outputs();
    }
    if (error == NO_MORE)
        error = 0;
    board_close(results);
    stacks[1] = used_by_second();
    file = board_open("crt.stack", 1);
    if (board_write(file, stacks, sizeof stacks) != (int32_t)sizeof stacks)
        error = BAD_FILE;
    board_close(file);
    return error;
}
