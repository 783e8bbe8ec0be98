local mode = ...
if mode == "off" then jit.off() end
local function last(first, ...)
  local n = select("#", ...)
  while n > 0 do n = n % 3 + 1 end    -- HOT
  return first
end
local function pass(...)
  local v = last("one", ...)          -- CALL
  return v
end
print("ready") io.stdout:flush()
pass(1, nil, 3)                       -- CALL
