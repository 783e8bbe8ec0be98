-- Calls itself in ways chosen at random. At each point it writes down what
-- Lua's own traceback says of itself, then stays there for a while: the test
-- holds the stacks that were sampled there against it.
local ffi = require "ffi"
local traceback, random, format = debug.traceback, math.random, string.format
local running = coroutine._running or coroutine.running -- the one without underscore is nginx's own
local wrap = coroutine._wrap or coroutine.wrap
local M = {}
local file, points, sink
local length = 4e7 -- of a stay, in turns of a loop: some milliseconds
local waiting = {} -- coroutines that have resumed another one, innermost last

ffi.cdef [[ void qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *)); ]]

local function say(point)
  local texts = { traceback(format("POINT %d", point), 2) }
  for i = #waiting, 1, -1 do texts[#texts + 1] = traceback(waiting[i], "") end
  texts[#texts + 1] = ""
  file:write(table.concat(texts, "\n"))
  file:flush()
end

-- The point is one line, so that the traceback and the loop are both on it.
local function here(point) say(point) for i = 1, length do sink = (sink or 0) + i end end

local ways = {}

local function descend(depth)
  if depth == 0 then
    points = points + 1
    here(points)
    return 0
  end
  local way = ways[random(#ways)]
  way(depth - 1)
  return depth
end

local function way(f) ways[#ways + 1] = f end

-- Two functions are called from one place.
local function alpha(depth)
  local r = descend(depth)
  return r
end
local function beta(depth)
  local r = descend(depth)
  return r
end
way(function(depth)
  local chosen = random(2) == 1 and alpha or beta
  chosen(depth)
end)

local object = {}
function object:method(depth)
  descend(depth)
  return self
end
way(function(depth)
  object:method(depth)
  return 0
end)

local function many(...)
  descend((...))
  return ...
end
way(function(depth)
  many(depth, "a", nil, "b")
  return 0
end)

local function last(depth)
  descend(depth)
  return depth
end
way(function(depth) return last(depth) end) -- a tail call leaves no frame

way(function(depth)
  pcall(descend, depth)
  return 0
end)
way(function(depth)
  xpcall(function() error("on purpose") end, function()
    descend(depth)
    return 0
  end)
  return 0
end)

local meta = setmetatable({}, {
  __index = function(_, depth)
    descend(depth)
    return 0
  end,
  __add = function(_, depth)
    descend(depth)
    return 0
  end,
  __newindex = function(_, depth)
    descend(depth)
    return 0
  end,
  __call = function(_, depth)
    descend(depth)
    return 0
  end,
})
way(function(depth)
  local r = meta[depth]
  return r
end)
way(function(depth)
  local r = meta + depth
  return r
end)
way(function(depth)
  meta[depth] = 1
  return 0
end)
way(function(depth)
  meta(depth)
  return 0
end)

way(function(depth)
  local once = depth
  table.sort({ 2, 1 }, function(a, b)
    if once then
      once = nil
      descend(depth)
    end
    return a < b
  end)
  return 0
end)
way(function(depth)
  local text = ("x"):gsub("x", function()
    descend(depth)
    return ""
  end)
  return text
end)
way(function(depth)
  for _ in function(_, done)
    if done then return nil end
    descend(depth)
    return 1
  end do
    sink = 0
  end
  return 0
end)

-- One coroutine inside another.
way(function(depth)
  local thread = running()
  waiting[#waiting + 1] = thread
  local inner = wrap(function()
    descend(depth)
    return 0
  end)
  inner()
  waiting[#waiting] = nil
  return 0
end)

way(function(depth)
  local p = newproxy(true)
  getmetatable(p).__gc = function()
    descend(depth)
    return 0
  end
  p = nil
  collectgarbage()
  return 0
end)

-- C calls back.
local function back(depth)
  local once = depth
  local compare = ffi.cast("int (*)(const void *, const void *)", function()
    if once then
      once = nil
      descend(depth)
    end
    return 0
  end)
  ffi.C.qsort(ffi.new("int[2]", 2, 1), 2, 4, compare)
  compare:free()
  return 0
end
jit.off(back)
way(back)

-- Writes its points to a file, for ever. mode "off": without the compiler.
function M.visit(path, mode)
  if mode == "off" then
    jit.off()
    length = length / 20
  end
  file, points = assert(io.open(path, "w")), 0
  while true do
    descend(random(4)) -- a traceback leaves out the middle of more than 22 levels
  end
end

return M
