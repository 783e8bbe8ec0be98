local mode = ...
if mode == "off" then jit.off() end
local ffi = require "ffi"
ffi.cdef "int usleep(unsigned int us);"
local C = ffi.C
local function poll(us)
  local n = 0
  while n == 0 do                     -- HOT
    n = C.usleep(us)                  -- HOT
  end
end
print("ready") io.stdout:flush()
poll(2000)                            -- CALL
