local mode = ...
if mode == "off" then jit.off() end
local source = "local n = ...\nwhile n > 0 do n = n % 10 + 1 end"
print("ready") io.stdout:flush()
loadstring(source)(1)                 -- CALL
