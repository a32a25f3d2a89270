/* The least a TCP server can do: accept until EAGAIN, close, wait again. The yardstick of the benchmarks.
 *
 * Usage: accept_loop [processes]. Prints the port it got; every process has a SO_REUSEPORT listener of its own, as
 * Turnstile's shards have. Ends when its standard input does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

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

static void serve(int listener) {
    int poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        if (epoll_wait(poller, &event, 1, -1) < 0 && errno != EINTR)
            exit(1);
        for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
            close(fd);
    }
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 1;
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int first = listen_on(0);
    getsockname(first, (struct sockaddr *)&at, &size);
    for (int i = 0; i < processes; i++) {
        int listener = i ? listen_on(ntohs(at.sin_port)) : first;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve(listener);
        }
        close(listener);
    }
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (char c; read(0, &c, 1) > 0;)
        ;
    return 0;
}
