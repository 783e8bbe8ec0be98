local mode = ...
if mode == "off" then jit.off() end
local function handler(message)
  local n = 1
  while n > 0 do n = n % 10 + 1 end   -- HOT
  return message
end
local function broken(t)
  local v = 1
  return t.field.missing + v          -- CALL
end
local function guard()
  local ok = xpcall(broken, handler, {}) -- CALL
  return ok
end
print("ready") io.stdout:flush()
pcall(guard)                          -- CALL
