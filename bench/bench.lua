-- What the measured workers do.
local M = {}

local function gcd(a, b) if b == 0 then return a end return gcd(b, a % b) end

-- Never ends: NaN is not 0.
function M.stuck()
  return (gcd(5, 0 / 0))
end

local function work(n)
  local y = 0.5
  for i = 1, n do y = y + math.sin(y + i) end
  return y
end

-- About a millisecond of honest work.
function M.render()
  return work(20000)
end

-- The same functions, never compiled.
function M.interpreted()
  jit.off(gcd)
  jit.off(work)
  jit.off(M.stuck)
  jit.off(M.render)
  return M
end

return M
