/* Prints where two of its symbols are, then waits to be looked at. With an argument, one page of its code has a mapping
 * of its own. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) static int hidden_function(int n) { return n * 3; }
__attribute__((aligned(4096))) int exported_function(int n) { return hidden_function(n) + 1; }
int exported_object = 7;

int main(int argc, char **argv)
{
    (void) argv;
    if (argc > 1)
        mprotect((void *) (uintptr_t) exported_function, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    printf("%p %p\n", (void *) exported_function, (void *) &exported_object);
    fflush(stdout);
    for (;;)
        pause();
    return exported_function(exported_object);
}
