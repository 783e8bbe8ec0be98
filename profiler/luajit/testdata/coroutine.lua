local mode = ...
if mode == "off" then jit.off() end
local function inner(tag)
  local n = 1
  while n > 0 do n = n % 10 + 1 end   -- HOT
  return tag
end
local function outer()
  local co = coroutine.create(function(tag)
    return inner(tag) .. ""           -- CALL
  end)
  local ok = coroutine.resume(co, "deep") -- CALL
  return ok
end
local wrapped = coroutine.wrap(function()
  local v = outer()                   -- CALL
  return v
end)
print("ready") io.stdout:flush()
wrapped()                             -- CALL
