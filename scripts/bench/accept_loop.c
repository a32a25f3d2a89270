/* The least a TCP server can do: the yardstick of the benchmarks.
 *
 * Usage: accept_loop [processes [bytes [certificate key]]]. Prints the port it got; every process has a SO_REUSEPORT listener of its own, as
 * Turnstile's shards have. Ends when its standard input does.
 *
 * Without `bytes` it accepts until EAGAIN, closes, and waits again. With it, it makes the system calls that answering needs:
 * accept4, epoll_ctl, recv, send of an answer of so many bytes to whatever was read, recv of the end, close. With a
 * certificate and its key it does so by TLS 1.3.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "openssl.h"

#define MOST_FDS 65536
static void *context, *tls_of[MOST_FDS]; /* of TLS, by descriptor */

static ssize_t get(int fd, void *data, size_t size) {
    return context ? tls_get(tls_of[fd], data, size) : recv(fd, data, size, 0);
}

static ssize_t put(int fd, const void *data, size_t size) {
    return context ? tls_put(tls_of[fd], data, size) : send(fd, data, size, MSG_NOSIGNAL);
}

static void shut(int fd) {
    if (context)
        SSL_free(tls_of[fd]);
    close(fd);
}

static void begin_tls(int fd) {
    tls_of[fd] = SSL_new(context);
    SSL_set_fd(tls_of[fd], fd);
    SSL_set_accept_state(tls_of[fd]);
}

static int listen_on(int port) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) ||
        bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 4096)) {
        perror("accept_loop: listen");
        exit(1);
    }
    return fd;
}

/* One read and one answer, with the correlation id of the request; or the end. */
static void answer(int fd, int bytes) {
    static unsigned char request[65536], response[65536];
    ssize_t size = get(fd, request, sizeof request);
    if (size < 12) {
        if (size >= 0 || errno != EAGAIN)
            shut(fd);
        return;
    }
    uint32_t length = htonl(bytes - 4);
    memcpy(response, &length, 4);
    memcpy(response + 4, request + 8, 4);
    if (put(fd, response, bytes) != bytes)
        shut(fd);
}

static void serve(int listener, int bytes) {
    int poller = epoll_create1(0);
    struct epoll_event events[256], event = {.events = EPOLLIN, .data.fd = listener};
    struct sockaddr_in from;
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(poller, events, 256, -1);
        if (ready < 0 && errno != EINTR)
            exit(1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd != listener) {
                answer(events[i].data.fd, bytes);
                continue;
            }
            socklen_t size = sizeof from;
            for (int fd; (fd = accept4(listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
                if (!bytes || fd >= MOST_FDS) {
                    close(fd);
                    continue;
                }
                if (context)
                    begin_tls(fd);
                event = (struct epoll_event){.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.fd = fd};
                epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
            }
        }
    }
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 1, bytes = argc > 2 ? atoi(argv[2]) : 0;
    if (bytes > 65536 || (bytes && bytes < 8)) {
        fprintf(stderr, "accept_loop: an answer has 8 to 65536 bytes\n");
        return 2;
    }
    if (argc > 4) {
        context = tls_context(argv[3], argv[4]);
        signal(SIGPIPE, SIG_IGN);
    }
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int first = listen_on(0);
    getsockname(first, (struct sockaddr *)&at, &size);
    for (int i = 0; i < processes; i++) {
        int listener = i ? listen_on(ntohs(at.sin_port)) : first;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve(listener, bytes);
        }
        close(listener);
    }
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (char c; read(0, &c, 1) > 0;)
        ;
    return 0;
}
