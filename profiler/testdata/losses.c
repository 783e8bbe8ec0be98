/* Two threads whose stacks can't be walked to their ends: one deeper than what is copied of a stack, and ever
 * changing; one in code made at run time, whose frame nobody knows. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

volatile long sink;

__attribute__((noinline)) static long deep(int n)
{
    volatile char pad[2000];
    pad[0] = (char) n;
    if (n == 0) {
        for (int i = 0; i < 100; i++)
            sink += i;
        return 1;
    }
    return deep(n - 1) + pad[0];
}

static void *dives(void *arg)
{
    for (;;)
        deep(100 + (sink & 3));
    return arg;
}

static void *makes_code(void *arg)
{
    static const unsigned char code[] = {
        0x55, 0x48, 0x81, 0xec, 0, 0x20, 0, 0, /* push %rbp; sub $8192, %rsp */
        0x31, 0xed, 0xb9, 0, 0, 0x10, 0,       /* xor %ebp, %ebp; mov $1048576, %ecx */
        0xff, 0xc9, 0x75, 0xfc,                /* dec %ecx; jne */
        0x48, 0x81, 0xc4, 0, 0x20, 0, 0, 0x5d, 0xc3,
    };
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, code, sizeof code);
    for (;;)
        ((void (*)(void)) p)();
    return arg;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, dives, NULL);
    pthread_create(&b, NULL, makes_code, NULL);
    pthread_join(a, NULL);
    return 0;
}
