local mode = ...
if mode == "off" then jit.off() end
local function gcd(a, b)              -- HOT
  if b == 0 then                      -- HOT
    return a
  end
  return gcd(b, a % b)                -- HOT
end
local function spin(w, name)
  local flag = true
  local g = gcd(w, w)                 -- CALL
  return g, flag
end
print("ready") io.stdout:flush()
spin(0/0, "x")                        -- CALL
