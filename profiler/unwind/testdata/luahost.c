/* Runs a Lua script from the command line in a nest of C frames. */
#include <stdio.h>

typedef struct lua_State lua_State;
lua_State *luaL_newstate(void);
void luaL_openlibs(lua_State *L);
int luaL_loadstring(lua_State *L, const char *s);
int lua_pcall(lua_State *L, int args, int results, int handler);
const char *lua_tolstring(lua_State *L, int index, unsigned long *size);

__attribute__((noinline, noclone)) static int runs(lua_State *L)
{
    return lua_pcall(L, 0, 0, 0) + 1;
}

int main(int argc, char **argv)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (argc < 2 || luaL_loadstring(L, argv[1]) || runs(L) != 1)
        fprintf(stderr, "%s\n", lua_tolstring(L, -1, NULL));
    return 1;
}
