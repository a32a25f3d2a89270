/* The least a server can do that stores what it is sent: the floor of the benchmarks of produce.
 *
 * Usage: store_loop FILE BYTES COUNT. A child sends COUNT batches of BYTES over loopback TCP, five in flight as a producer does;
 * the parent receives each, appends it to FILE and answers with 64 bytes. Prints the parent's CPU time per batch (us).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER = 64, IN_FLIGHT = 5 };

static void failed(const char *what) {
    perror(what);
    exit(1);
}

static void receive(int fd, char *into, size_t bytes) {
    for (size_t had = 0; had < bytes;) {
        ssize_t size = recv(fd, into + had, bytes - had, 0);
        if (size <= 0)
            failed("store_loop: recv");
        had += size;
    }
}

static void transmit(int fd, const char *from, size_t bytes) {
    for (size_t sent = 0; sent < bytes;) {
        ssize_t size = send(fd, from + sent, bytes - sent, MSG_NOSIGNAL);
        if (size <= 0)
            failed("store_loop: send");
        sent += size;
    }
}

static void produce(struct sockaddr_in *at, char *batch, size_t bytes, long count) {
    char answer[ANSWER];
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)at, sizeof *at) || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
        failed("store_loop: connect");
    for (long sent = 0, answered = 0; answered < count; answered++) {
        for (; sent < count && sent < answered + IN_FLIGHT; sent++)
            transmit(fd, batch, bytes);
        receive(fd, answer, ANSWER);
    }
}

static void store(int fd, int file, char *batch, size_t bytes, long count) {
    char answer[ANSWER] = {0};
    for (long stored = 0; stored < count; stored++) {
        receive(fd, batch, bytes);
        if (pwrite(file, batch, bytes, stored * bytes) != (ssize_t)bytes)
            failed("store_loop: pwrite");
        transmit(fd, answer, ANSWER);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: store_loop FILE BYTES COUNT\n");
        return 2;
    }
    size_t bytes = atol(argv[2]);
    long count = atol(argv[3]);
    char *batch = calloc(1, bytes);
    int file = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    if (file < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &size))
        failed("store_loop");
    if (fork() == 0) {
        produce(&at, batch, bytes, count);
        return 0;
    }
    struct rusage used;
    int one = 1, fd = accept(listener, NULL, NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    store(fd, file, batch, bytes, count);
    getrusage(RUSAGE_SELF, &used);
    wait(NULL);
    double seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec, more_us = used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    printf("%.3f\n", (seconds * 1e6 + more_us) / count);
    return 0;
}
