local mode = ...
if mode == "off" then jit.off() end
local function finalise(object)
  local n = 1
  while n > 0 do n = n % 10 + 1 end   -- HOT
end
local proxy = newproxy(true)
getmetatable(proxy).__gc = finalise
proxy = nil
local function allocate()
  local keep
  for i = 1, 1e9 do                   -- CALL
    keep = {i}                        -- CALL
  end
  return keep
end
print("ready") io.stdout:flush()
allocate()                            -- CALL
