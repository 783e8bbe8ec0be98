local mode = ...
if mode == "off" then jit.off() end
local function build(n)
  local parts = {}
  for i = 1, n do parts[i] = i .. "," end
  print("ready") io.stdout:flush()
  while true do                       -- HOT
    local s = table.concat(parts)     -- HOT
    if #s == 0 then return end        -- HOT
  end
end
build(4000)                           -- CALL
