local mode = ...
if mode == "off" then jit.off() end
local floor = math.floor
local function grind(n)
  local x = n
  while x > 0 do                      -- HOT
    x = floor(x) % 7 + 1              -- HOT
  end
end
print("ready") io.stdout:flush()
grind(5)                              -- CALL
