local mode = ...
if mode == "off" then jit.off() end
local function less(a, b)
  local n = 0
  repeat n = (n + 1) % 100 until n == -1 -- HOT
  return a < b
end
local function order(list)
  table.sort(list, less)              -- CALL
end
print("ready") io.stdout:flush()
order({3, 1, 2})                      -- CALL
