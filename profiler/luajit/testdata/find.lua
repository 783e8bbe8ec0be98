local mode = ...
if mode == "off" then jit.off() end
local text = ("a"):rep(40)
local function match(s)
  local a = string.find(s, ("a?"):rep(40) .. ("a*"):rep(12) .. "b") -- HOT
  return a
end
print("ready") io.stdout:flush()
match(text)                           -- CALL
