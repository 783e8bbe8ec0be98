/* Matches a pattern that backtracks for ever, in code that PCRE compiled. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

void *pcre2_compile_8(const char *pattern, size_t length, uint32_t options, int *error, size_t *at, void *context);
int pcre2_jit_compile_8(void *code, uint32_t options);
void *pcre2_match_data_create_8(uint32_t pairs, void *context);
int pcre2_match_8(void *code, const char *subject, size_t length, size_t start, uint32_t options, void *data,
    void *context);

__attribute__((noinline, noclone)) static int matches(void *code, const char *subject, void *data)
{
    return pcre2_match_8(code, subject, strlen(subject), 0, 0, data, NULL) + 1;
}

int main(int argc, char **argv)
{
    const char *pattern = "^(a+)+$|((?:x|a)*)*b(?=c)";
    int error, sum = 0;
    size_t at;
    void *code = pcre2_compile_8(pattern, strlen(pattern), 0, &error, &at, NULL);
    if (code == NULL || (argc > 1 && pcre2_jit_compile_8(code, 1) != 0))
        return 1;
    void *data = pcre2_match_data_create_8(8, NULL);
    write(1, "ready\n", 6);
    for (;;)
        sum += matches(code, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaX", data);
    return sum;
}
