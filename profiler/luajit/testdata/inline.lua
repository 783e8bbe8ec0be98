local mode = ...
if mode == "off" then jit.off() end
local function step(list, i)
  local at = i % #list + 1            -- HOT
  return list[at]                     -- HOT
end
local function twice(list, i)
  local a = step(list, i)             -- HOT
  local b = step(list, a)             -- HOT
  return b                            -- HOT
end
local function turn(list)
  local i = 1
  while i ~= 0 do                     -- HOT
    i = twice(list, i)                -- HOT
  end
end
print("ready") io.stdout:flush()
turn({1, 2, 3, 4, 5})                 -- CALL
