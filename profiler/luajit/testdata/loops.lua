local mode = ...
if mode == "off" then jit.off() end
local n = 0
local function scan(list)
  while n >= 0 do
    for i = 1, #list do
      n = (n + list[i]) % 7
    end
    for _, v in ipairs(list) do
      n = (n + v) % 5
    end
    repeat
      n = n + 1
    until n % 40 == 0
  end
end
print("ready") io.stdout:flush()
scan({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
