local mode = ...
if mode == "off" then jit.off() end
local function litter(n)
  local keep = {}
  for i = 1, n do keep[i] = false end
  print("ready") io.stdout:flush()    -- the table has its size
  while true do                       -- HOT
    for i = 1, n do                   -- HOT
      keep[i] = {i, {n}}              -- HOT
    end
  end
end
litter(5000)                          -- CALL
