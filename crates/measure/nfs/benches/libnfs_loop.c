/*
 * Reference of the NFS bench: a closed loop of random reads or writes over libnfs's asynchronous
 * interface, one context (one connection), one thread, poll(2) as its documentation asks.
 *
 *   libnfs_loop URL FILE read|write SIZE_BYTES DEPTH MILLISECONDS pread|raw CPU SEED
 *
 * `pread` uses nfs_pread_async/nfs_pwrite_async (what a load generator built on libnfs calls), `raw`
 * rpc_nfs3_read_async/rpc_nfs3_write_async, which does less per call. Writes are FILE_SYNC with raw and
 * UNSTABLE with pread (libnfs chooses). Prints one line: operations, wall ns, CPU ns of this process,
 * and the latency's median and 99th percentile in ns.
 *
 * COMMIT_EVERY=N in the environment sends a COMMIT of the file after every N writes of `pread`, during
 * further writes, like a client that stores the data of unstable writes. By default, libnfs never commits.
 *
 *   cc -O2 -o libnfs_loop libnfs_loop.c -lnfs
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <time.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

/* Result of nfs_get_fh(): libnfs 4.0 documents the function, but its headers lack this type. */
struct nfs_fh { int len; char *val; };

#define SAMPLES_MAX (1 << 22)

struct slot { uint64_t start_ns; char *buffer; };

static struct nfs_context *nfs;
static struct rpc_context *rpc;
static struct nfsfh *file;
static struct nfs_fh3 handle;
static uint64_t blocks, seed, ops, deadline_ns, samples_n;
static uint32_t size_bytes, in_flight;
static uint64_t commit_every, uncommitted;
static int is_write, is_raw, stopping, failed, committing;
static uint32_t *samples;

static uint64_t clock_ns(clockid_t id)
{
        struct timespec t;
        clock_gettime(id, &t);
        return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t now_ns(void)
{
        return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t next_offset(void) /* xorshift64: cheap on both sides of the comparison */
{
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return (seed % blocks) * size_bytes;
}

static void submit(struct slot *slot);

static void done(struct slot *slot)
{
        uint64_t now = now_ns();
        if (samples_n < SAMPLES_MAX)
                samples[samples_n++] = (uint32_t)(now - slot->start_ns);
        ops++;
        in_flight--;
        if (now >= deadline_ns)
                stopping = 1;
        if (!stopping && !failed)
                submit(slot);
}

static void on_commit(int err, struct nfs_context *ctx, void *data, void *priv)
{
        (void)ctx, (void)data, (void)priv;
        committing = 0;
        if (err < 0)
                failed = 1;
}

static void on_pio(int err, struct nfs_context *ctx, void *data, void *priv)
{
        struct slot *slot = priv;
        (void)ctx;
        if (err != (int)size_bytes) {
                fprintf(stderr, "libnfs: result %d\n", err);
                failed = 1;
        } else if (!is_write) {
                memcpy(slot->buffer, data, size_bytes);
        }
        if (is_write && commit_every && ++uncommitted >= commit_every && !committing) {
                uncommitted = 0;
                committing = 1;
                if (nfs_fsync_async(nfs, file, on_commit, NULL) != 0)
                        failed = 1;
        }
        done(slot);
}

static void on_raw(struct rpc_context *ctx, int status, void *data, void *priv)
{
        struct slot *slot = priv;
        (void)ctx;
        if (status != RPC_STATUS_SUCCESS) {
                failed = 1;
        } else if (is_write) {
                struct WRITE3res *res = data;
                if (res->status != NFS3_OK || res->WRITE3res_u.resok.count != size_bytes)
                        failed = 1;
        } else {
                struct READ3res *res = data;
                if (res->status != NFS3_OK || res->READ3res_u.resok.data.data_len != size_bytes)
                        failed = 1;
                else
                        memcpy(slot->buffer, res->READ3res_u.resok.data.data_val, size_bytes);
        }
        done(slot);
}

static void submit(struct slot *slot)
{
        uint64_t offset = next_offset();
        int rc;
        slot->start_ns = now_ns();
        if (is_raw && is_write) {
                struct WRITE3args args = { .file = handle, .offset = offset, .count = size_bytes, .stable = FILE_SYNC };
                args.data.data_len = size_bytes;
                args.data.data_val = slot->buffer;
                rc = rpc_nfs3_write_async(rpc, on_raw, &args, slot);
        } else if (is_raw) {
                struct READ3args args = { .file = handle, .offset = offset, .count = size_bytes };
                rc = rpc_nfs3_read_async(rpc, on_raw, &args, slot);
        } else if (is_write) {
                rc = nfs_pwrite_async(nfs, file, offset, size_bytes, slot->buffer, on_pio, slot);
        } else {
                rc = nfs_pread_async(nfs, file, offset, size_bytes, on_pio, slot);
        }
        if (rc != 0)
                failed = 1;
        else
                in_flight++;
}

static int ascending(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
        if (argc != 10) {
                fprintf(stderr, "usage: libnfs_loop URL FILE read|write SIZE DEPTH MS pread|raw CPU SEED\n");
                return 2;
        }
        is_write = !strcmp(argv[3], "write");
        if (getenv("COMMIT_EVERY"))
                commit_every = strtoull(getenv("COMMIT_EVERY"), NULL, 10);
        size_bytes = atoi(argv[4]);
        uint32_t depth = atoi(argv[5]);
        uint64_t run_ns = strtoull(argv[6], NULL, 10) * 1000000ull;
        is_raw = !strcmp(argv[7], "raw");
        int cpu = atoi(argv[8]);
        seed = strtoull(argv[9], NULL, 10) * 2654435761u + 88172645463325252ull;
        if (cpu >= 0) {
                cpu_set_t set;
                CPU_ZERO(&set);
                CPU_SET(cpu, &set);
                sched_setaffinity(0, sizeof(set), &set);
        }
        samples = malloc(sizeof(*samples) * SAMPLES_MAX);
        nfs = nfs_init_context();
        struct nfs_url *url = nfs_parse_url_dir(nfs, argv[1]);
        if (!url || nfs_mount(nfs, url->server, url->path)) {
                fprintf(stderr, "libnfs: mount: %s\n", nfs_get_error(nfs));
                return 1;
        }
        if (nfs_open(nfs, argv[2], O_RDWR, &file)) {
                fprintf(stderr, "libnfs: open: %s\n", nfs_get_error(nfs));
                return 1;
        }
        struct nfs_stat_64 st;
        if (nfs_fstat64(nfs, file, &st)) {
                fprintf(stderr, "libnfs: stat: %s\n", nfs_get_error(nfs));
                return 1;
        }
        blocks = st.nfs_size / size_bytes;
        rpc = nfs_get_rpc_context(nfs);
        handle.data.data_len = nfs_get_fh(file)->len;
        handle.data.data_val = nfs_get_fh(file)->val;
        struct slot *slots = calloc(depth, sizeof(*slots));
        for (uint32_t i = 0; i < depth; i++) {
                slots[i].buffer = aligned_alloc(4096, size_bytes);
                for (uint32_t b = 0; b < size_bytes; b++)
                        slots[i].buffer[b] = (char)(b * 131 + i);
        }
        uint64_t cpu_before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        uint64_t start = now_ns();
        deadline_ns = start + run_ns;
        for (uint32_t i = 0; i < depth; i++)
                submit(&slots[i]);
        while (in_flight > 0 && !failed) {
                struct pollfd p = { .fd = nfs_get_fd(nfs), .events = nfs_which_events(nfs) };
                if (poll(&p, 1, 1000) < 0 || nfs_service(nfs, p.revents) < 0) {
                        fprintf(stderr, "libnfs: service: %s\n", nfs_get_error(nfs));
                        return 1;
                }
        }
        uint64_t wall = now_ns() - start;
        uint64_t cpu_used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
        if (failed)
                return 1;
        qsort(samples, samples_n, sizeof(*samples), ascending);
        printf("%lu %lu %lu %u %u\n", ops, wall, cpu_used, samples[samples_n / 2],
               samples[samples_n * 99 / 100]);
        return 0;
}
