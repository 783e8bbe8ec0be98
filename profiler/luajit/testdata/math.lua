local mode = ...
if mode == "off" then jit.off() end
local exp, log = math.exp, math.log
local function grow(x, p)
  local y = x
  while y > 0 do                      -- HOT
    y = exp(log(y)) ^ p               -- HOT
    if y < 1 then y = 5 end           -- HOT
  end
end
local function outer(x)
  local v = tostring(x)
  grow(x, 0.999)                      -- CALL
  return v
end
print("ready") io.stdout:flush()
outer(5)                              -- CALL
