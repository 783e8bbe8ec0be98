-- Prints its own traceback at the place where it then waits for ever.
local mode = ...
if mode == "off" then jit.off() end
local function here(a)
  print(debug.traceback("TRACE", 1)) print("ready") io.stdout:flush() while true do local x = a end
end
local object = {}
function object:method(a)
  here(a)
  return a
end
local function plain(...)
  object:method(...)
  return ...
end
local guarded = function(a)
  plain(a, 2)
  return 1
end
function global(a)
  local ok, e = pcall(guarded, a)
  return ok, e
end
local t = setmetatable({}, {__newindex = function(t, k, v)
  global(v)
  rawset(t, k, v)
end})
local function each(list)
  for k, v in pairs(list) do
    t[k] = v
  end
end
each({3})
