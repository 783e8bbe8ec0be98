/* Runs Lua scripts in a LuaJIT shared library, without its headers:
 * host LIBRARY SCRIPT [ARGUMENT], or host LIBRARY SCRIPT IDLE_SCRIPT two
 * for a second virtual machine that has run IDLE_SCRIPT before. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *lib;

static void *need(const char *name) {
  void *p = dlsym(lib, name);
  if (!p) fprintf(stderr, "%s: not in the library\n", name);
  return p;
}

static int run(const char *script, const char *arg) {
  void *(*newstate)(void) = need("luaL_newstate");
  void (*openlibs)(void *) = need("luaL_openlibs");
  int (*loadfile)(void *, const char *) = need("luaL_loadfile");
  void (*pushstring)(void *, const char *) = need("lua_pushstring");
  int (*pcall)(void *, int, int, int) = need("lua_pcall");
  const char *(*tolstring)(void *, int, size_t *) = need("lua_tolstring");
  void *L = newstate();
  openlibs(L);
  if (loadfile(L, script) == 0) {
    pushstring(L, arg);
    if (pcall(L, 1, 0, 0) == 0) return 0;
  }
  fprintf(stderr, "%s\n", tolstring(L, -1, NULL));
  return 1;
}

int main(int argc, char **argv) {
  const char *arg = argc > 3 ? argv[3] : "";
  if (argc < 3 || !(lib = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))) {
    fprintf(stderr, "host: %s\n", argc < 3 ? "library and script wanted" : dlerror());
    return 2;
  }
  if (argc > 4 && strcmp(argv[4], "two") == 0 && run(argv[3], "") != 0) return 1;
  return run(argv[2], arg);
}
