local mode = ...
if mode == "off" then jit.off() end
local function build(n)
  local parts = {}
  for i = 1, n do parts[i] = i .. "," end
  while true do                       -- HOT
    local s = table.concat(parts)     -- HOT
    if #s == 0 then return end        -- HOT
  end
end
print("ready") io.stdout:flush()
build(20000)                          -- CALL
