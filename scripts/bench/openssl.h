/* The few functions of OpenSSL that the benchmarks' C programs call, found when TLS is asked for: the library is wherever Python's
 * ssl is, its headers are not. The signatures are those of OpenSSL 1.1.1 and 3.
 */
#include <dlfcn.h>

#define OPENSSL_FUNCTIONS(F)                                           \
    F(const void *, TLS_client_method, (void))                         \
    F(const void *, TLS_server_method, (void))                         \
    F(void *, SSL_CTX_new, (const void *))                             \
    F(long, SSL_CTX_ctrl, (void *, int, long, void *))                 \
    F(int, SSL_CTX_set_num_tickets, (void *, size_t))                  \
    F(int, SSL_CTX_set_ciphersuites, (void *, const char *))           \
    F(int, SSL_CTX_use_certificate_chain_file, (void *, const char *)) \
    F(int, SSL_CTX_use_PrivateKey_file, (void *, const char *, int))   \
    F(void *, SSL_new, (void *))                                       \
    F(int, SSL_set_fd, (void *, int))                                  \
    F(void, SSL_set_connect_state, (void *))                           \
    F(void, SSL_set_accept_state, (void *))                            \
    F(int, SSL_read, (void *, void *, int))                            \
    F(int, SSL_write, (void *, const void *, int))                     \
    F(int, SSL_get_error, (const void *, int))                         \
    F(int, SSL_want, (const void *))                                   \
    F(int, SSL_shutdown, (void *))                                     \
    F(void, SSL_free, (void *))                                        \
    F(void, ERR_clear_error, (void))

#define DECLARE(result, name, arguments) static result(*name) arguments;
OPENSSL_FUNCTIONS(DECLARE)

enum { WANT_READ = 2, WANT_WRITE = 3, READING = 3, SET_READ_AHEAD = 41, SET_MIN_PROTO_VERSION = 123, TLS_1_3 = 0x0304, PEM = 1 };

static void must(int done, const char *what) {
    if (!done) {
        fprintf(stderr, "no TLS 1.3: %s\n", what);
        exit(2);
    }
}

/* The context of a client or, with a certificate and its key in PEM, of a server: TLS 1.3, with the cipher that all peers choose. */
static void *tls_context(const char *certificate, const char *key) {
    void *library = dlopen("libssl.so.3", RTLD_NOW);
    if (!library)
        library = dlopen("libssl.so.1.1", RTLD_NOW);
    must(library != NULL, "neither libssl.so.3 nor libssl.so.1.1 is here");
#define FIND(result, name, arguments) must((*(void **)&name = dlsym(library, #name)) != NULL, #name);
    OPENSSL_FUNCTIONS(FIND)
    void *context = SSL_CTX_new(certificate ? TLS_server_method() : TLS_client_method());
    must(context != NULL, "SSL_CTX_new");
    must(SSL_CTX_ctrl(context, SET_MIN_PROTO_VERSION, TLS_1_3, NULL), "SSL_CTX_set_min_proto_version");
    must(SSL_CTX_set_ciphersuites(context, "TLS_AES_256_GCM_SHA384"), "TLS_AES_256_GCM_SHA384");
    SSL_CTX_ctrl(context, SET_READ_AHEAD, 1, NULL); /* else each record takes two reads */
    if (certificate) {
        must(SSL_CTX_set_num_tickets(context, 0), "SSL_CTX_set_num_tickets");
        must(SSL_CTX_use_certificate_chain_file(context, certificate), certificate);
        must(SSL_CTX_use_PrivateKey_file(context, key, PEM), key);
    }
    return context;
}

/* As recv and send; the first makes the handshake. A fault of another connection, which OpenSSL keeps, is not taken for one of this. */
static ssize_t tls_moved(void *tls, int moved) {
    if (moved > 0)
        return moved;
    int why = SSL_get_error(tls, moved);
    errno = why == WANT_READ || why == WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

static ssize_t tls_get(void *tls, void *data, size_t size) {
    ERR_clear_error();
    return tls_moved(tls, SSL_read(tls, data, size));
}

static ssize_t tls_put(void *tls, const void *data, size_t size) {
    ERR_clear_error();
    return tls_moved(tls, SSL_write(tls, data, size));
}
