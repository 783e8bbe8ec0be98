/* A program whose stack is known at every instruction: main calls outer,
 * outer calls middle, and so on down to leaves of many shapes. */
#include <alloca.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, used))

volatile unsigned long sink;
volatile int rounds = 1 << 30;

KEEP static unsigned long leaf(unsigned long n) { return n * 3 + sink; }

KEEP static unsigned long saves(unsigned long n)
{
    unsigned long a = leaf(n), b = leaf(a), c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e);
    return leaf(a ^ b) + leaf(c ^ d) + leaf(e ^ f) + a + b + c + d + e + f;
}

KEEP static unsigned long grows(unsigned long n)
{
    char *p = alloca(16 + n % 512);
    memset(p, (int) n, 16 + n % 512);
    return leaf(p[n % 16]);
}

KEEP static int order(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

KEEP static unsigned long sorts(unsigned long n)
{
    int v[16];
    for (int i = 0; i < 16; i++)
        v[i] = (int) ((n * 7919 + i * 104729) % 97);
    qsort(v, 16, sizeof v[0], order);
    return v[3];
}

KEEP static unsigned long spread(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
    unsigned long e, unsigned long f, unsigned long g, unsigned long h)
{
    return leaf(a + b) + leaf(c + d) + leaf(e + f) + leaf(g + h);
}

KEEP static unsigned long middle(unsigned long n)
{
    unsigned long v = saves(n) + grows(n) + sorts(n) + spread(n, 1, 2, 3, 4, 5, 6, 7);
    return v + (unsigned long) (pow((double) (n % 10), 1.5) * 10);
}

KEEP static void outer(void)
{
    for (int i = 0; i < rounds; i++)
        sink += middle(sink + i);
}

KEEP static void handler(int sig)
{
    (void) sig;
    write(1, "ready\n", 6);
    for (;;)
        sink += leaf(sink);
}

KEEP static void tick(int sig) { sink += leaf(sig); }

KEEP static void clocks(void)
{
    struct timespec now;
    for (int i = 0; i < rounds; i++)
        sink += clock_gettime(CLOCK_MONOTONIC, &now);
}

KEEP static void interrupted(void)
{
    kill(getpid(), SIGUSR1);
    for (;;)
        sink += leaf(sink);
}

KEEP __attribute__((noreturn)) static void never(void)
{
    write(1, "ready\n", 6);
    for (;;)
        sink += leaf(sink);
}

KEEP static void calls_never(void)
{
    never(); /* the last instruction is the call: the return address is in the next function */
}

KEEP static void sleeps(void)
{
    write(1, "ready\n", 6);
    for (;;)
        pause();
}

static char alternate[1 << 16];

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "loop";
    struct sigaction act = { .sa_handler = handler };
    if (!strcmp(mode, "altstack")) {
        stack_t st = { .ss_sp = alternate, .ss_size = sizeof alternate };
        sigaltstack(&st, NULL);
        act.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGUSR1, &act, NULL);
    act.sa_handler = tick;
    sigaction(SIGUSR2, &act, NULL);
    if (!strcmp(mode, "signal") || !strcmp(mode, "altstack"))
        interrupted();
    if (!strcmp(mode, "noreturn"))
        calls_never();
    if (!strcmp(mode, "sleep"))
        sleeps();
    write(1, "ready\n", 6);
    if (!strcmp(mode, "clock"))
        clocks();
    outer();
    return 0;
}
