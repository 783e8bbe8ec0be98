local mode = ...
if mode == "off" then jit.off() end
local function divisor(x, y)
  while y ~= 0 do x, y = y, x % y end -- HOT
  return x
end
local function schedule(peers)
  local step = 0
  for _, p in ipairs(peers) do
    step = divisor(step, p.weight)    -- CALL
  end
  return step
end
print("ready") io.stdout:flush()
schedule({{weight = 5}, {weight = "0"}}) -- CALL
