-- Loops that never end, one for each way in which Lua and C call each other.
-- The tests know the marked lines.
local ffi = require "ffi"
local M = {}

local function gcd(a, b) if b == 0 then return a end return gcd(b, a % b) end -- GCD

function M.gcd()
  return (gcd(5, 0 / 0))
end

local x = 0
function M.loop()
  while true do x = x + 1 end -- LOOP
end

function M.pattern()
  local text = string.rep("a", 3000)
  while true do text:find(".-.-.-;drop") end -- PATTERN
end

local function less(a, b)
  return a < b -- LESS
end

function M.sort()
  local t = {}
  for i = 1, 1000 do t[i] = math.random() end
  while true do table.sort(t, less) end -- SORT
end

function M.regex(options)
  local text = string.rep("a", 28) .. "!"
  while true do ngx.re.find(text, "(a+)+$", options) end -- REGEX
end

-- Deeper on the machine stack than any window.
function M.deep()
  local text = string.rep("ab", 300) .. "!"
  while true do ngx.re.find(text, "(a|b|ab)*$") end -- DEEP
end

function M.cjson()
  local cjson = require "cjson"
  local t = {}
  for i = 1, 200 do t[i] = { id = i, name = "item " .. i, tags = { "a", "b", "c" } } end
  while true do cjson.decode(cjson.encode(t)) end -- JSON
end

function M.coroutines()
  local inner = coroutine._wrap or coroutine.wrap
  local f = inner(function()
    local g = inner(function()
      M.loop() -- INNER
    end)
    g() -- OUTER
  end)
  f() -- START
end

function M.pcall()
  pcall(function()
    M.loop() -- PROTECTED
  end)
end

function M.xpcall()
  xpcall(function() error("x") end, function()
    M.loop() -- HANDLER
  end)
end

function M.finaliser()
  local p = newproxy(true)
  getmetatable(p).__gc = function()
    M.loop() -- FINALISER
  end
  p = nil
  collectgarbage() -- COLLECT
end

function M.callback()
  ffi.cdef [[ void qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *)); ]]
  local a = ffi.new("int[2]", 2, 1)
  local function compare()
    M.loop() -- CALLBACK
    return 0
  end
  ffi.C.qsort(a, 2, 4, compare) -- QSORT
end

function M.hook()
  jit.off()
  debug.sethook(function()
    debug.sethook()
    M.loop() -- HOOK
  end, "", 1)
end

function M.garbage()
  local keep = {}
  for i = 1, 200000 do keep[i] = { i } end
  while true do keep[math.random(#keep)] = { {}, {}, {} } end -- GARBAGE
end

-- Traces come and go.
function M.flush()
  while true do jit.flush() for _ = 1, 200000 do x = x + 1 end end -- FLUSH
end

-- Thousands of traces.
function M.traces()
  jit.opt.start("maxtrace=8000", "maxmcode=16384")
  local f = {}
  for i = 1, 5000 do
    f[i] = loadstring("local x = 0; for i = 1, 100 do x = x + i * " .. i .. " end return x", "=made" .. i)
  end
  while true do for i = 1, #f do f[i]() end end -- TRACES
end

-- Some milliseconds of honest work.
local function work(n)
  local y = 0.5
  for i = 1, n do y = y + math.sin(y + i) end -- WORK
  return y
end

function M.render(n)
  return work(n)
end

local function check(premature, n, rounds)
  if premature then return end
  work(n)
  if rounds > 1 then ngx.timer.at(0.3, check, n, rounds - 1) end
end

-- count timers that all fall due together.
function M.timers(count, n, rounds)
  for _ = 1, count do assert(ngx.timer.at(0.1, check, n, rounds)) end
end

-- A recursion that grows and shrinks for ever.
local function down(depth)
  if depth > 0 then down(depth - 1) end -- DOWN
  return depth
end

function M.breathe()
  while true do down(math.random(60)) end -- BREATHE
end

return M
