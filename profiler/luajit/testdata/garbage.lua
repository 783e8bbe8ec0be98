local mode = ...
if mode == "off" then jit.off() end
local function litter(n)
  local keep = {}
  while true do                       -- HOT
    for i = 1, n do                   -- HOT
      keep[i] = {i, {n}}              -- HOT
    end
  end
end
print("ready") io.stdout:flush()
litter(5000)                          -- CALL
