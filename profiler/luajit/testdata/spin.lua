-- Loops for the workers of nginx.
local M = {}

local function gcd(a, b)
  if b == 0 then                      -- HOT
    return a
  end
  return gcd(b, a % b)                -- HOT
end

local function grind(tag)
  local n = 1
  while n > 0 do n = n % 10 + 1 end   -- HOT
  return tag
end

function M.gcd(w)
  local function spin(weight)
    local g = gcd(weight, weight)     -- CALL
    return g
  end
  local r = spin(w)                   -- CALL
  return r
end

function M.timer(premature, tag)
  local v = grind(tag)                -- CALL
  return v, premature
end

function M.loop(tag)
  local v = grind(tag)                -- CALL
  return v
end

function M.nested()
  local co = coroutine.create(function()
    local function inner()
      local v = grind("nested")       -- CALL
      return v
    end
    local v = inner()                 -- CALL
    return v
  end)
  local ok = coroutine.resume(co)     -- CALL
  return ok
end

function M.regex()
  local s = ("a"):rep(28) .. "!"
  while true do                       -- HOT
    ngx.re.find(s, "(a+)+$", "")      -- HOT
  end
end

return M
