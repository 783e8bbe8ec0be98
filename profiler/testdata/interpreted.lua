-- The same loops with LuaJIT's compiler off.
jit.off(true, true)
local M = {}

local function gcd(a, b) if b == 0 then return a end return gcd(b, a % b) end -- GCD

function M.gcd()
  return (gcd(5, 0 / 0))
end

function M.floor()
  local x = 0.5
  while true do x = math.floor(x * 1.7) % 7 + 0.3 end -- FLOOR
end

return M
