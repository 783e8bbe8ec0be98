local mode = ...
if mode == "off" then jit.off() end
local function hooked()
  local n = 1
  while n > 0 do n = n % 10 + 1 end   -- HOT
end
local function work()
  debug.sethook(hooked, "", 100)
  local x = 0
  for i = 1, 1e9 do x = x + i end     -- CALL
end
print("ready") io.stdout:flush()
work()                                -- CALL
