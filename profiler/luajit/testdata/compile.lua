local mode = ...
if mode == "off" then jit.off() end
local function add(t, n)
  for i = 1, n do t[i] = (t[i] or 0) + i end -- HOT
  return t                            -- HOT
end
local function churn(t)
  local round = 0
  while true do                       -- HOT
    jit.flush()                       -- HOT
    for i = 1, 70 do add(t, i) end    -- HOT
    round = round + 1                 -- HOT
  end
end
print("ready") io.stdout:flush()
churn({})                             -- CALL
