local mode = ...
if mode == "off" then jit.off() end
local function sink(depth)
  if depth == 0 then
    local n = 1
    while n > 0 do n = n % 10 + 1 end -- HOT
  end
  return 1 + sink(depth - 1)          -- CALL
end
print("ready") io.stdout:flush()
sink(100)                             -- CALL
