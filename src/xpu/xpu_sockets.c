/* The wire that is always there: a TCP connection between each two processes,
 * the later one having called the earlier.  One thread reads all of them, so
 * that whoever sends never waits for one who sends to it.  Who calls shows the
 * other's own token, which only the job's store knows.
 *
 * A process that ends, however it does, has its connections closed by its
 * system; a machine that is gone is found out by what the system sends where
 * nothing else goes (keep-alive). */
#include "xpu_far.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TOKEN = 16,
    LINE = 128, /* of an offer */
    HELLO_S = 5, /* who calls says who it is */
    STALL_MS = 1000, /* of a cancelled run's message */
    IDLE_S = 5,
    PROBES = 4, /* of keep-alive: 25 s in all */
    READS = 64, /* from one connection before the others have a turn */
    AT_ONCE = 1024, /* parts that the system takes at once */
};

typedef struct {
    uint32_t magic, from, to;
    uint8_t token[TOKEN];
} hello;

typedef struct { /* with one other process */
    int fd; /* -1: none */
    pthread_mutex_t lock; /* of sending */
    bool broken; /* within a message: none may follow */
    xpu_far_inlet in;
} line;

struct xpu_wire {
    xpu_far *far;
    int me, n;
    int listener, stop; /* -1: none */
    uint8_t token[TOKEN];
    bool reads;
    pthread_t reader;
    struct pollfd *wait; /* [n] of the reader */
    line at[];
};

/* ---- opening ---- */

static sd_status listen_at(xpu_wire *w, const char *address, uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;

    if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
        return sd_error(SD_INVALID,
                        "SUNDOG_ADDRESS=%s: an IPv4 address of this machine "
                        "is wanted, such as 127.0.0.1",
                        address);
    w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    w->stop = eventfd(0, EFD_CLOEXEC);
    if (getrandom(w->token, TOKEN, 0) != TOKEN || w->stop < 0 ||
        w->listener < 0 || bind(w->listener, (void *)&a, sizeof a) ||
        listen(w->listener, w->n) || getsockname(w->listener, (void *)&a, &len))
        return sd_error(SD_UNAVAILABLE, "listening at SUNDOG_ADDRESS=%s: %s",
                        address, strerror(errno));
    *port = ntohs(a.sin_port);
    return NULL;
}

static void wire_close(xpu_wire *w);

static sd_status wire_open(xpu_far *f, int me, int n, const char *address,
                           sd_buf *offer, xpu_wire **out)
{
    xpu_wire *w = calloc(1, sizeof *w + (size_t)n * sizeof(line));
    uint16_t port = 0;
    sd_status st;

    if (!w || !(w->wait = calloc((size_t)n, sizeof *w->wait))) {
        free(w);
        return sd_no_memory(sizeof *w);
    }
    w->far = f;
    w->me = me;
    w->n = n;
    w->listener = w->stop = -1;
    for (int i = 0; i < n; i++) {
        w->at[i].fd = -1;
        pthread_mutex_init(&w->at[i].lock, NULL);
    }
    if ((st = listen_at(w, address, &port))) {
        wire_close(w);
        return st;
    }
    sd_buf_fmt(offer, "tcp %s %u ", address, port);
    for (int i = 0; i < TOKEN; i++)
        sd_buf_fmt(offer, "%02x", w->token[i]);
    *out = w;
    return NULL;
}

/* ---- joining ---- */

static int set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value);
}

static bool give_time(int fd, int seconds)
{
    struct timeval t = {.tv_sec = seconds};

    return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) &&
           !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

/* From here on it is read and written as there is room. */
static bool settle(int fd)
{
    return !set(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
           !set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
           !set(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S) &&
           !set(fd, IPPROTO_TCP, TCP_KEEPINTVL, IDLE_S) &&
           !set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES) &&
           !set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
                (PROBES + 1) * IDLE_S * 1000) &&
           !fcntl(fd, F_SETFL, O_NONBLOCK);
}

static bool read_offer(sd_bytes offer, struct sockaddr_in *a, hello *h)
{
    char text[LINE], address[LINE], token[LINE];
    unsigned port;

    if (offer.len >= sizeof text)
        return false;
    memcpy(text, offer.at, offer.len);
    text[offer.len] = 0;
    if (sscanf(text, "tcp %127s %u %127s", address, &port, token) != 3 ||
        port > UINT16_MAX || inet_pton(AF_INET, address, &a->sin_addr) != 1 ||
        strlen(token) != 2 * TOKEN)
        return false;
    for (int i = 0; i < TOKEN; i++)
        if (sscanf(token + 2 * i, "%2hhx", &h->token[i]) != 1)
            return false;
    a->sin_family = AF_INET;
    a->sin_port = htons((uint16_t)port);
    return true;
}

static sd_status call(xpu_wire *w, int to, sd_bytes offer, int seconds)
{
    hello h = {
        .magic = XPU_FAR_MAGIC, .from = (uint32_t)w->me, .to = (uint32_t)to};
    struct sockaddr_in a = {0};
    int fd;

    if (!read_offer(offer, &a, &h))
        return sd_error(SD_INVALID,
                        "process %d of %d is to be reached at '%.*s', which is "
                        "no address, port and token",
                        to, w->n, (int)SD_MIN(offer.len, (size_t)LINE),
                        (const char *)offer.at);
    fd = w->at[to].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !give_time(fd, seconds) ||
        connect(fd, (void *)&a, sizeof a) ||
        send(fd, &h, sizeof h, MSG_NOSIGNAL) != sizeof h || !settle(fd))
        return sd_error(SD_UNAVAILABLE, "connecting to process %d of %d: %s",
                        to, w->n, strerror(errno));
    return NULL;
}

/* A stranger, or somebody who calls twice, is left alone. */
static bool take_call(xpu_wire *w, int fd)
{
    hello h;

    if (!give_time(fd, HELLO_S) ||
        recv(fd, &h, sizeof h, MSG_WAITALL) != sizeof h ||
        h.magic != XPU_FAR_MAGIC || h.to != (uint32_t)w->me ||
        h.from <= (uint32_t)w->me || h.from >= (uint32_t)w->n ||
        memcmp(h.token, w->token, TOKEN) || w->at[h.from].fd >= 0 ||
        !settle(fd))
        return false;
    w->at[h.from].fd = fd;
    return true;
}

static int missing(const xpu_wire *w)
{
    for (int i = w->me + 1; i < w->n; i++)
        if (w->at[i].fd < 0)
            return i;
    return -1;
}

static sd_status take_calls(xpu_wire *w, int seconds)
{
    uint64_t end = sd_now_ns() + (uint64_t)seconds * 1000000000;

    while (missing(w) >= 0) {
        struct pollfd p = {.fd = w->listener, .events = POLLIN};
        uint64_t now = sd_now_ns();
        int fd;

        if (now >= end)
            return sd_error(SD_DEADLINE,
                            "process %d of %d has not called process %d "
                            "within %d s",
                            missing(w), w->n, w->me, seconds);
        if (poll(&p, 1, (int)((end - now) / 1000000) + 1) <= 0)
            continue;
        if ((fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
            continue;
        if (!take_call(w, fd)) {
            sd_log(SD_LOG_WARN, "process %d: a call of a stranger", w->me);
            close(fd);
        }
    }
    return NULL;
}

/* ---- reading ---- */

static void lose(xpu_wire *w, int who, const char *why)
{
    line *l = &w->at[who];

    xpu_far_lose(w->far, who, why);
    shutdown(l->fd, SHUT_RDWR); /* whoever sends there is told */
    xpu_far_inlet_finish(&l->in);
}

/* NULL: there is no more now; else why there never will be. */
static const char *read_line(xpu_wire *w, int who)
{
    line *l = &w->at[who];
    const char *why = NULL;

    for (int i = 0; i < READS && !why; i++) {
        size_t room;
        uint8_t *to = xpu_far_inlet_room(&l->in, &room);
        ssize_t n = recv(l->fd, to, room, 0);
        bool ended = !n || (n < 0 && errno == ECONNRESET); /* words unread */

        if (ended)
            return l->in.got || l->in.m ? "it ended within a message"
                                        : "it has ended";
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
        why = xpu_far_inlet_take(&l->in, w->far, who, (size_t)n);
    }
    return why;
}

static void *read_lines(void *arg)
{
    xpu_wire *w = arg;
    struct pollfd *p = w->wait;

    for (int i = 0; i < w->n; i++) /* its own place is for stopping */
        p[i] = (struct pollfd){.fd = i == w->me ? w->stop : w->at[i].fd,
                               .events = POLLIN};
    for (;;) {
        if (poll(p, (nfds_t)w->n, -1) < 0)
            continue;
        if (p[w->me].revents)
            return NULL;
        for (int i = 0; i < w->n; i++) {
            const char *why = p[i].revents ? read_line(w, i) : NULL;

            if (why) {
                lose(w, i, why);
                p[i].fd = -1;
            }
        }
    }
}

static sd_status wire_join(xpu_wire *w, const sd_bytes *offer, int seconds)
{
    sd_status st = NULL;

    for (int i = 0; i < w->me && !st; i++)
        st = call(w, i, offer[i], seconds);
    if (st || (st = take_calls(w, seconds)))
        return st;
    close(w->listener);
    w->listener = -1;
    st = xpu_far_hear(&w->reader, read_lines, w);
    w->reads = !st;
    return st;
}

/* ---- sending ---- */

static bool give_up(const _Atomic bool *cancel)
{
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

/* What is left of the parts from the first byte that was not sent. */
static void step_over(struct msghdr *m, size_t sent)
{
    while (m->msg_iovlen && sent >= m->msg_iov->iov_len) {
        sent -= m->msg_iov->iov_len;
        m->msg_iov++;
        m->msg_iovlen--;
    }
    if (m->msg_iovlen) {
        m->msg_iov->iov_base = (uint8_t *)m->msg_iov->iov_base + sent;
        m->msg_iov->iov_len -= sent;
    }
}

/* 0, or an error number. */
static int send_all(int fd, struct msghdr *m, const _Atomic bool *cancel)
{
    step_over(m, 0);
    while (m->msg_iovlen) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        struct msghdr some = *m;
        ssize_t n;

        some.msg_iovlen = SD_MIN(m->msg_iovlen, (size_t)AT_ONCE);
        n = sendmsg(fd, &some, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return errno;
        if (n >= 0)
            step_over(m, (size_t)n);
        else if (!poll(&p, 1, STALL_MS) && give_up(cancel))
            return ECANCELED;
    }
    return 0;
}

static sd_status wire_send(xpu_wire *w, int to, const xpu_far_head *h,
                           const struct iovec *part, int npart,
                           const _Atomic bool *cancel)
{
    size_t bytes = ((size_t)npart + 1) * sizeof(struct iovec);
    struct iovec *list = malloc(bytes);
    struct msghdr m = {.msg_iov = list, .msg_iovlen = (size_t)npart + 1};
    xpu_far_head head = *h;
    line *l = &w->at[to];
    int error;

    if (!list)
        return sd_no_memory(bytes);
    list[0] = (struct iovec){&head, sizeof head};
    if (npart)
        memcpy(list + 1, part, (size_t)npart * sizeof *part);
    head.bytes = 0;
    for (int i = 0; i < npart; i++)
        head.bytes += part[i].iov_len;
    pthread_mutex_lock(&l->lock);
    error = l->broken ? EPIPE : send_all(l->fd, &m, cancel);
    l->broken |= error != 0;
    if (error)
        shutdown(l->fd, SHUT_RDWR);
    pthread_mutex_unlock(&l->lock);
    free(list);
    if (error)
        return sd_error(SD_UNAVAILABLE, "process %d of %d is gone: %s", to,
                        w->n, strerror(error));
    return NULL;
}

/* ---- closing ---- */

static void wire_close(xpu_wire *w)
{
    uint64_t one = 1;

    if (w->reads && write(w->stop, &one, sizeof one) == sizeof one)
        pthread_join(w->reader, NULL);
    for (int i = 0; i < w->n; i++) {
        if (w->at[i].fd >= 0)
            close(w->at[i].fd);
        xpu_far_inlet_finish(&w->at[i].in);
        pthread_mutex_destroy(&w->at[i].lock);
    }
    if (w->listener >= 0)
        close(w->listener);
    if (w->stop >= 0)
        close(w->stop);
    free(w->wait);
    free(w);
}

const xpu_wire_ops xpu_wire_sockets = {
    .name = "sockets",
    .open = wire_open,
    .join = wire_join,
    .send = wire_send,
    .close = wire_close,
};
