local function nothing() return 1 end
for i = 1, 1000 do nothing() end
