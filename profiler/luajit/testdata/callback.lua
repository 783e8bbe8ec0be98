local mode = ...
if mode == "off" then jit.off() end
local ffi = require "ffi"
ffi.cdef "void qsort(void *base, size_t n, size_t size, int (*compare)(const int *, const int *));"
local function compare(a, b)
  local n = 1
  while n > 0 do n = n % 10 + 1 end   -- HOT
  return 0
end
local function order()
  local list = ffi.new("int[3]", 3, 1, 2)
  ffi.C.qsort(list, 3, 4, compare)    -- CALL
end
print("ready") io.stdout:flush()
order()                               -- CALL
