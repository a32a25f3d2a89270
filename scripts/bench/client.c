/* The benchmarks' client: as little work per connection as a client can do, so that the server is what limits.
 *
 * Usage: client MODE PORT [name=value ...]; one JSON object on standard output at the end.
 *   connect   connect, ApiVersions, read the answer, close; over and over. With `frames`: the requests in the file, one after
 *             the other, in place of ApiVersions. A connection closed before any byte was answered counts as refused.
 *   requests  keep `concurrency` connections and send the requests in the file `frames`, one in flight each: the first
 *             connection its first `cycle` over and over, the next one the next `cycle`, and after the last the first again
 *   idle      open `count` connections, ApiVersions on each, print the JSON, keep them until standard input ends
 * Values: seconds=5 concurrency=64 sources=1000 (127.1.0.0 upward, one after the other) base=127.1.0.0 count=5000
 *         pause_us=0 (wait after a refusal before this slot connects again) rst=0 frames=FILE (requests with their length
 *         prefix, one behind the other; with `requests` each connection asks ApiVersions first) cycle=1
 *         tls=0 (1: each connection is a TLS 1.3 one with a full handshake, and ends with a close_notify)
 *
 * The client closes with a FIN, as real clients do, so the TIME_WAIT is its own; with a thousand source addresses no
 * port is used twice within a run. rst=1 closes with SO_LINGER 0 instead, which leaves no TIME_WAIT at all: for one
 * source address and many short connections. A refused connection was closed by the server first, either way.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "openssl.h"

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

/* ApiVersions v3, client id "bench", with its length prefix. */
static const unsigned char API_VERSIONS[] = {0, 0, 0, 27, 0, 18, 0, 3, 0, 0, 0, 1, 0, 5, 'b', 'e', 'n', 'c', 'h', 0,
                                             6, 'b', 'e', 'n', 'c', 'h', 4, '1', '.', '0', 0};
struct slot {
    int fd;
    void *tls; /* NULL: plain */
    uint32_t got, want; /* bytes of the answer so far; its whole size, 0 until the length is known */
    unsigned char head[4];
    int sent, asking; /* asking: the request under way is of the file */
    int next;         /* which of its `cycle` requests; of `connect`, which of the file's */
    int64_t started;
};

static int poller, port, sources = 1000, concurrency = 64, count = 5000, rst, pause_us, cycle = 1, with_tls, requests;
static double seconds = 5;
static uint32_t base;
static uint64_t next_source, answered, refused, failed, opened;
static uint32_t *took; /* microseconds per answered or refused connection, or per request */
static size_t took_count, took_room;
static unsigned char *frames; /* the file's requests; frame_at[i] is where the i-th begins, frame_at[frame_count] the end */
static size_t *frame_at, frame_count;
static struct slot *slots;
static void *context; /* of TLS */

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000ll + t.tv_nsec / 1000;
}

static void note(int64_t started) {
    if (took_count == took_room) {
        took_room = took_room ? took_room * 2 : 1 << 20;
        took = realloc(took, took_room * sizeof *took);
    }
    took[took_count++] = (uint32_t)(now_us() - started);
}

static void shut(struct slot *s) {
    if (s->tls) {
        SSL_shutdown(s->tls);
        SSL_free(s->tls);
        s->tls = NULL;
    }
    close(s->fd);
    s->fd = -1;
}

static ssize_t put(struct slot *s, const void *data, size_t size) {
    return s->tls ? tls_put(s->tls, data, size) : send(s->fd, data, size, MSG_NOSIGNAL);
}

static ssize_t get(struct slot *s, void *data, size_t size) {
    return s->tls ? tls_get(s->tls, data, size) : recv(s->fd, data, size, 0);
}

/* Sends the slot's request; when the handshake is still under way, waits until it can go on first. 0: neither is possible. */
static int ask(struct slot *s, int op) {
    const unsigned char *frame = API_VERSIONS;
    ssize_t size = sizeof API_VERSIONS;
    if (s->asking) {
        size_t which = requests ? ((s - slots) * cycle + s->next) % frame_count : (size_t)s->next;
        frame = frames + frame_at[which];
        size = frame_at[which + 1] - frame_at[which];
    }
    s->got = s->want = 0;
    ssize_t n = put(s, frame, size);
    s->sent = n == size;
    int waits = s->sent || (n < 0 && errno == EAGAIN);
    if (op) {
        int reads = s->sent || (s->tls && SSL_want(s->tls) == READING);
        struct epoll_event event = {.events = reads ? EPOLLIN : EPOLLIN | EPOLLOUT, .data.ptr = s};
        epoll_ctl(poller, op, s->fd, &event);
    }
    return waits;
}

static int start(struct slot *s) {
    int one = 1;
    struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons(port)};
    from.sin_addr.s_addr = htonl(base + next_source++ % sources);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->started = now_us();
    s->asking = frames && !requests;
    s->next = 0;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return -1;
    setsockopt(s->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (rst) {
        struct linger now = {.l_onoff = 1, .l_linger = 0};
        setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    if (bind(s->fd, (struct sockaddr *)&from, sizeof from) ||
        (connect(s->fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS)) {
        shut(s);
        return -1;
    }
    if (context) {
        s->tls = SSL_new(context);
        SSL_set_fd(s->tls, s->fd);
        SSL_set_connect_state(s->tls);
    }
    opened++;
    ask(s, EPOLL_CTL_ADD);
    return 0;
}

/* Reads what is there. 1: the answer is whole, 0: not yet, -1: closed before any answer came, -2: closed later. What TLS holds
 * of it makes no socket readable, so it is read until there is no more. */
static int take(struct slot *s) {
    static unsigned char chunk[1 << 18];
    do {
        ssize_t n = get(s, chunk, sizeof chunk);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0)
            return s->got || (s->next && !requests) ? -2 : -1;
        for (ssize_t i = 0; i < n && s->got + i < 4; i++)
            s->head[s->got + i] = chunk[i];
        s->got += n;
        if (!s->want && s->got >= 4)
            s->want = 4 + (s->head[0] << 24 | s->head[1] << 16 | s->head[2] << 8 | s->head[3]);
    } while (s->tls && (!s->want || s->got < s->want));
    return s->want && s->got >= s->want;
}

/* What an event of the slot's socket brings, as `take` says it. */
static int moved(struct slot *s, uint32_t events) {
    if (!s->sent && (s->tls || events & EPOLLOUT) && ask(s, EPOLL_CTL_MOD) && s->tls)
        return 0;
    return take(s);
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(double elapsed) {
    qsort(took, took_count, sizeof *took, by_value);
    double p50 = took_count ? took[took_count / 2] : 0, p99 = took_count ? took[(size_t)(took_count * 0.99)] : 0;
    printf("{\"seconds\": %.4f, \"opened\": %lu, \"answered\": %lu, \"refused\": %lu, \"failed\": %lu, "
           "\"per_s\": %.1f, \"p50_us\": %.0f, \"p99_us\": %.0f}\n",
           elapsed, opened, answered, refused, failed, (answered + refused) / elapsed, p50, p99);
    fflush(stdout);
}

static void pump(int64_t until) {
    struct epoll_event events[256];
    int open_now = 0;
    for (int i = 0; i < concurrency; i++)
        open_now += slots[i].fd >= 0;
    while (open_now && now_us() < until) {
        int n = epoll_wait(poller, events, 256, 100);
        for (int i = 0; i < n; i++) {
            struct slot *s = events[i].data.ptr;
            int state = moved(s, events[i].events);
            if (state == 0)
                continue;
            if (state > 0 && !requests && frames && ++s->next < (int)frame_count) {
                ask(s, 0);
                continue;
            }
            if (state > 0) {
                note(s->started);
                answered++;
                if (requests) {
                    s->next = s->asking ? (s->next + 1) % cycle : 0;
                    s->asking = 1;
                    s->started = now_us();
                    ask(s, 0);
                    continue;
                }
            } else if (state == -1) {
                note(s->started);
                refused++;
            } else {
                failed++;
            }
            shut(s);
            if (state < 0 && pause_us)
                usleep(pause_us);
            if (requests || start(s))
                open_now--;
        }
    }
}

static void read_frames(const char *path) {
    FILE *file = fopen(path, "rb");
    size_t size = 0, room = 0, got;
    do {
        if (size == room)
            frames = realloc(frames, room = room ? room * 2 : 1 << 16);
        got = file ? fread(frames + size, 1, room - size, file) : 0;
        size += got;
    } while (got);
    frame_at = malloc((size / 4 + 2) * sizeof *frame_at);
    for (size_t at = 0; at + 4 <= size; frame_count++) {
        frame_at[frame_count] = at;
        at += 4 + (frames[at] << 24 | frames[at + 1] << 16 | frames[at + 2] << 8 | frames[at + 3]);
        frame_at[frame_count + 1] = at;
    }
    if (!frame_count || frame_at[frame_count] != size) {
        fprintf(stderr, "client: no whole requests in %s\n", path);
        exit(2);
    }
}

static void option(const char *word) {
    const char *value = strchr(word, '=');
    size_t size = value ? (size_t)(value - word) : 0;
#define IS(name) (size == strlen(name) && !strncmp(word, name, size))
    if (IS("seconds")) seconds = atof(value + 1);
    else if (IS("concurrency")) concurrency = atoi(value + 1);
    else if (IS("sources")) sources = atoi(value + 1);
    else if (IS("base")) base = ntohl(inet_addr(value + 1));
    else if (IS("count")) count = atoi(value + 1);
    else if (IS("pause_us")) pause_us = atoi(value + 1);
    else if (IS("rst")) rst = atoi(value + 1);
    else if (IS("cycle")) cycle = atoi(value + 1);
    else if (IS("tls")) with_tls = atoi(value + 1);
    else if (IS("frames")) read_frames(value + 1);
    else {
        fprintf(stderr, "client: no such option: %s\n", word);
        exit(2);
    }
}

/* Opens `count` connections, `concurrency` at a time, and keeps each that was answered. */
static void idle(void) {
    struct slot *all = calloc(count, sizeof *all);
    int64_t began = now_us();
    for (int done = 0; done < count; done += concurrency) {
        int some = count - done < concurrency ? count - done : concurrency;
        for (int i = 0; i < some; i++)
            if (start(&all[done + i]))
                failed++;
        for (int left = some; left > 0;) {
            struct epoll_event events[256];
            int n = epoll_wait(poller, events, 256, 5000);
            if (n <= 0)
                break;
            for (int i = 0; i < n; i++) {
                struct slot *s = events[i].data.ptr;
                int state = moved(s, events[i].events);
                if (state == 0)
                    continue;
                state > 0 ? answered++ : refused++;
                if (state > 0)
                    epoll_ctl(poller, EPOLL_CTL_DEL, s->fd, NULL);
                else
                    shut(s);
                left--;
            }
        }
    }
    report((now_us() - began) / 1e6);
    for (char c; read(0, &c, 1) > 0;)
        ;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: client connect|requests|idle PORT [name=value ...]\n");
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    base = 127u << 24 | 1u << 16;
    port = atoi(argv[2]);
    for (int i = 3; i < argc; i++)
        option(argv[i]);
    if (with_tls) {
        context = tls_context(NULL, NULL);
        signal(SIGPIPE, SIG_IGN);
    }
    poller = epoll_create1(0);
    if (!strcmp(argv[1], "idle")) {
        idle();
        return 0;
    }
    requests = !strcmp(argv[1], "requests");
    if (requests && !frames) {
        fprintf(stderr, "client: requests needs frames=FILE\n");
        return 2;
    }
    slots = calloc(concurrency, sizeof *slots);
    int64_t began = now_us();
    for (int i = 0; i < concurrency; i++)
        if (start(&slots[i])) {
            slots[i].fd = -1;
            failed++;
        }
    pump(began + (int64_t)(seconds * 1e6));
    report((now_us() - began) / 1e6);
    return 0;
}
