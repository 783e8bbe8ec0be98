-- Work that throws away what a profiler has learned. No function is without a
-- name, and each ends with an "end" in the first column: the test reads them.
local M = {}
local x = 0

local function step(n)
  for i = 1, n do x = (x + i * 3) % 1000003 end
end

function M.flush()
  for _ = 1, 20 do
    jit.flush()
    step(2000)
  end
end

local function node(depth)
  if depth == 0 then return {} end
  return { node(depth - 1), node(depth - 1), tostring(depth) }
end

function M.churn()
  for _ = 1, 4 do node(9) end
  collectgarbage("step", 200)
end

local function make(count)
  jit.opt.start("maxtrace=8000", "maxmcode=16384")
  local made = {}
  for i = 1, count do
    made[i] = loadstring("local x = 0; for i = 1, 100 do x = x + i * " .. i .. " end return x", "=made" .. i)
  end
  return made
end

local made

function M.traces()
  made = made or make(5000)
  for i = 1, #made do made[i]() end
end

local function less(a, b)
  return a < b
end

function M.sort()
  local t = {}
  for i = 1, 400 do t[i] = math.random() end
  table.sort(t, less)
end

return M
