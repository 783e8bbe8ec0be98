/* Prints where two of its symbols are, then waits to be looked at. */
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int hidden_function(int n) { return n * 3; }
int exported_function(int n) { return hidden_function(n) + 1; }
int exported_object = 7;

int main(void)
{
    printf("%p %p\n", (void *) exported_function, (void *) &exported_object);
    fflush(stdout);
    for (;;)
        pause();
    return exported_function(exported_object);
}
