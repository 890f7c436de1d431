/* qemu_host.c: what a plugin sees of QEMU, with the plugin API of one version,
 * API, where plugins of LEAST and newer are taken. It "runs" one inference of
 * two steps. The types of callbacks are those of qemu-plugin.h of each version.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t id_type;
struct qemu_plugin_insn {
    uint64_t address;
    void (*touches)(unsigned int, uint32_t, uint64_t, void *);
    void *user;
};
struct qemu_plugin_tb {
    uint64_t address;
    size_t count;
    struct qemu_plugin_insn of[8];
    void (*runs)(unsigned int, void *);
    void *user;
};
static void *of_end;
static const id_type own_id = 0x1234567890ABCDEFu;

#if API < 7
typedef void on_block(id_type id, struct qemu_plugin_tb *block);
typedef void on_end(id_type id, void *user);
static on_block *block_made;
static on_end *ended;
extern void qemu_plugin_register_vcpu_tb_trans_cb(id_type id, on_block *f);
void qemu_plugin_register_vcpu_tb_trans_cb(id_type id, on_block *f)
{
    (void)id;
    block_made = f;
}
#else
static void *of_block;
typedef void on_block(struct qemu_plugin_tb *block, void *user);
typedef void on_end(void *user);
static on_block *block_made;
static on_end *ended;
extern void qemu_plugin_register_vcpu_tb_trans_cb(id_type id, on_block *f,
                                                  void *user);
void qemu_plugin_register_vcpu_tb_trans_cb(id_type id, on_block *f, void *user)
{
    (void)id;
    block_made = f;
    of_block = user;
}
#endif

extern void qemu_plugin_register_atexit_cb(id_type id, on_end *f, void *user);
void qemu_plugin_register_atexit_cb(id_type id, on_end *f, void *user)
{
    (void)id;
    ended = f;
    of_end = user;
}

extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
                                                 void (*f)(unsigned int,
                                                           void *),
                                                 int flags, void *user);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
                                          void (*f)(unsigned int, void *),
                                          int flags, void *user)
{
    (void)flags;
    tb->runs = f;
    tb->user = user;
}

extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                             void (*f)(unsigned int, uint32_t,
                                                       uint64_t, void *),
                                             int flags, int kind, void *user);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*f)(unsigned int, uint32_t,
                                                uint64_t, void *),
                                      int flags, int kind, void *user)
{
    (void)flags;
    if (kind == 3)
        insn->touches = f;
    insn->user = user;
}

extern _Bool qemu_plugin_mem_is_store(uint32_t info);
_Bool qemu_plugin_mem_is_store(uint32_t info)
{
    (void)info;
    return 0;
}

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
    return tb->count;
}

extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
    return tb->address;
}

extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
    return insn->address;
}

extern struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index)
{
    return (struct qemu_plugin_insn *)&tb->of[index];
}

/* A block of `count` instructions of two bytes. */
static void run_block(uint64_t address, size_t count, uint64_t reads)
{
    struct qemu_plugin_tb tb = {address, count, {{0, NULL, NULL}}, NULL, NULL};
    size_t i;

    for (i = 0; i < count; i++)
        tb.of[i].address = address + 2u * i;
#if API < 7
    block_made(own_id, &tb);
#else
    block_made(&tb, of_block);
#endif
    tb.runs(0, tb.user);
    if (reads != 0 && tb.of[count - 1].touches != NULL)
        tb.of[count - 1].touches(0, 0, reads, tb.of[count - 1].user);
}

static void infer(void)
{
    run_block(0x1000, 3, 0);      /* start-up: not counted */
    run_block(0x2000, 2, 0);      /* the call of the model */
    run_block(0x3000, 4, 0x5000); /* crt, which reads the first step */
    run_block(0x2100, 5, 0);      /* its kernel */
    run_block(0x3000, 4, 0x5010);
    run_block(0x2200, 7, 0);
    run_block(0x2200, 7, 0);
    run_block(0x2300, 1, 0); /* back */
    run_block(0x1000, 3, 0);
}

static int refuse(const char *path, int version, const char *what, int bound)
{
    fprintf(stderr,
            "qemu: Could not load plugin %s: plugin requires API version %d, "
            "but this QEMU supports only %s %d\n",
            path, version, what, bound);
    return 1;
}

int main(int argc, char **argv)
{
    char *words[32];
    int count = 0;
    char *library = argc > 1 ? strtok(argv[argc - 1], ",") : NULL;
    void *plugin = library == NULL ? NULL : dlopen(library, RTLD_NOW);
    const int *version;
    int (*install)(id_type, const void *, int, char **);

    if (plugin == NULL)
        return 2;
    while (count < 32 && (words[count] = strtok(NULL, ",")) != NULL)
        count++;
    version = (const int *)dlsym(plugin, "qemu_plugin_version");
    if (*version < LEAST)
        return refuse(library, *version, "a minimum version of", LEAST);
    if (*version > API)
        return refuse(library, *version, "up to version", API);
    *(void **)&install = dlsym(plugin, "qemu_plugin_install");
    if (install(own_id, "", count, words) != 0)
        return 3;
    infer();
#if API < 7
    ended(own_id, of_end);
#else
    ended(of_end);
#endif
    return 0;
}
