local mode = ...
if mode == "off" then jit.off() end
local vector = setmetatable({}, {
  __index = function(t, key)
    local n = 1
    while n > 0 do n = n % 10 + 1 end -- HOT
    return key
  end,
  __add = function(a, b)
    return a.length + b.length        -- CALL
  end,
})
local function total(v)
  local sum = v + v                   -- CALL
  return sum
end
print("ready") io.stdout:flush()
total(vector)                         -- CALL
