/* qemu_count.c: counts instructions by step in QEMU, as a TCG plugin.
 * Source: QEMU's plugin API, versions 0 to 7; declared here, so that no header
 * of QEMU is needed. Up to 6 what is used of it is the same. */
#include "count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void on_exec(unsigned int cpu, void *user);
typedef void on_read(unsigned int cpu, uint32_t info, uint64_t at, void *user);
enum { NO_REGISTERS = 0, READS_AND_WRITES = 3 };

#ifndef QEMU_API
#error "QEMU_API: the version of the plugin API of the QEMU that loads it"
#endif
#if QEMU_API < 7
typedef void on_block(plugin_id id, struct qemu_plugin_tb *block);
typedef void on_end(plugin_id id, void *user);
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, on_block *f);
#else
typedef void on_block(struct qemu_plugin_tb *block, void *user);
typedef void on_end(void *user);
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, on_block *f,
                                                  void *user);
#endif
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
                                                 on_exec *f, int flags,
                                                 void *user);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                             on_read *f, int flags, int kind,
                                             void *user);
extern _Bool qemu_plugin_mem_is_store(uint32_t info);
extern void qemu_plugin_register_atexit_cb(plugin_id id, on_end *f, void *u);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
extern struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);

extern int qemu_plugin_version;
int qemu_plugin_version = QEMU_API;
int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc,
                        char **argv);

static struct count count;
static struct costs costs;
static const char *out_file = "crt.counts";
static const char *costs_file = "crt.costs"; /* missing: nothing is known */

static void executed(unsigned int cpu, void *user)
{
    const struct block *block = (const struct block *)user;

    if (cpu < CORES)
        count_block(&count, cpu, block);
}

static void has_read(unsigned int cpu, uint32_t info, uint64_t at, void *user)
{
    (void)user;
    if (cpu >= CORES)
        return;
    count_meets(&count, cpu, at, qemu_plugin_mem_is_store(info));
    count_read(&count, cpu, at);
}

/* Told by the last instruction's address: the sizes that QEMU gives are wrong
 * where a page ends. */
static uint64_t bytes_of(const struct qemu_plugin_tb *tb,
                         const struct block *block)
{
    const uint64_t last = qemu_plugin_insn_vaddr(
        qemu_plugin_tb_get_insn(tb, (size_t)block->instructions - 1u));
    const uint64_t at = last - costs.at;
    const int wide = at < costs.bytes && (costs.of[at / 2u] & COST_WIDE) != 0;

    return last - block->address + (wide ? 4u : 2u);
}

static void watch(struct qemu_plugin_tb *tb)
{
    struct block *block = malloc(sizeof *block); /* as long as QEMU lives */
    size_t i;

    if (block == NULL)
        abort();
    block->address = qemu_plugin_tb_vaddr(tb);
    block->instructions = qemu_plugin_tb_n_insns(tb);
    block->bytes = bytes_of(tb, block);
    count_cycles(&costs, block);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, block);
    if ((block->address < count.runtime ||
         block->address >= count.runtime_end) &&
        (block->address < count.others || block->address >= count.others_end))
        return;
    for (i = 0; i < block->instructions; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i),
                                         has_read, NO_REGISTERS,
                                         READS_AND_WRITES, NULL);
}

static void write_counts(void)
{
    FILE *out = fopen(out_file, "w");
    uint64_t i;
    uint64_t k;

    if (out == NULL)
        return;
    fprintf(out, "%llu\n", (unsigned long long)count.core[0].time);
    for (k = 0; k < CORES; k++) {
        const struct core *core = &count.core[k];

        fprintf(out, "%llu\n", (unsigned long long)core->of_runtime);
        for (i = 0; i < count.step_count; i++)
            fprintf(out, "%llu\n", (unsigned long long)core->of_step[i]);
        fprintf(out, "%llu\n", (unsigned long long)core->cycles_of_runtime);
        for (i = 0; i < count.step_count; i++)
            fprintf(out, "%llu\n", (unsigned long long)core->cycles_of_step[i]);
    }
    fclose(out);
}

#if QEMU_API < 7
static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    watch(tb);
}

static void finished(plugin_id id, void *user)
{
    (void)id;
    (void)user;
    write_counts();
}
#else
static void translated(struct qemu_plugin_tb *tb, void *user)
{
    (void)user;
    watch(tb);
}

static void finished(void *user)
{
    (void)user;
    write_counts();
}
#endif

static void begin(plugin_id id)
{
#if QEMU_API < 7
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
#else
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated, NULL);
#endif
    qemu_plugin_register_atexit_cb(id, finished, NULL);
}

static void read_costs(void)
{
    FILE *in = fopen(costs_file, "rb");
    uint8_t *of = malloc((size_t)(costs.bytes / 2u) + 1u);

    if (in == NULL || of == NULL ||
        fread(of, 1, (size_t)(costs.bytes / 2u), in) != costs.bytes / 2u)
        costs.bytes = 0;
    costs.of = of;
    if (in != NULL)
        fclose(in);
}

/* Arguments: NAME=NUMBER for the first sixteen fields of struct count, and for
 * the last three of struct costs. None: whether it can be loaded is asked, and
 * QEMU ends. */
int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc,
                        char **argv)
{
    static const char *const names[] = {
        "begin",      "last",       "end",         "runtime",    "runtime_end",
        "table",      "step_bytes", "step_count",  "waiting",    "waiting_end",
        "ring",       "call",       "ready",       "ready_end",  "others",
        "others_end", "costs_at",   "costs_bytes", "costs_taken"};
    uint64_t *const fields[] = {
        &count.begin,       &count.last,        &count.end,
        &count.runtime,     &count.runtime_end, &count.table,
        &count.step_bytes,  &count.step_count,  &count.waiting,
        &count.waiting_end, &count.ring,        &count.call,
        &count.ready,       &count.ready_end,   &count.others,
        &count.others_end,  &costs.at,          &costs.bytes,
        &costs.taken};
    size_t f;
    int i;

    (void)info;
    if (argc == 0) {
        puts("counts");
        fflush(stdout);
        _Exit(0);
    }
    for (i = 0; i < argc; i++) {
        for (f = 0; f < sizeof names / sizeof names[0]; f++) {
            const size_t n = strlen(names[f]);

            if (strncmp(argv[i], names[f], n) == 0 && argv[i][n] == '=')
                *fields[f] = strtoull(argv[i] + n + 1, NULL, 0);
        }
    }
    if (count.step_bytes == 0 || count.step_count > MOST_STEPS)
        return -1;
    if (costs.bytes > 0)
        read_costs();
    begin(id);
    return 0;
}
