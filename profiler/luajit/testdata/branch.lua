local mode = ...
if mode == "off" then jit.off() end
local function pick(peers, current)
  local index = 0
  while true do                       -- HOT
    index = index % #peers + 1        -- HOT
    if index == 1 then                -- HOT
      current = current - 0           -- HOT
    elseif index == 2 then            -- HOT
      current = current + 0           -- HOT
    end
    if peers[index].weight > current then -- HOT
      return peers[index]
    end
  end
end
print("ready") io.stdout:flush()
pick({{weight = 1}, {weight = 2}, {weight = 3}}, 10) -- CALL
