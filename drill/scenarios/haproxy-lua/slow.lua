-- luacheck: read globals core
-- The pattern backtracks inside one function of C, which HAProxy can't
-- interrupt. It is matched again until 1.4 s of CPU are used up, in too few
-- steps of Lua for HAProxy to take the thread away in between.
local clock = os.clock
local rep = string.rep

local text = rep("a", 300)
local pattern = ".-.-.-b"

local function match()
    local stop = clock() + 1.4
    local found
    repeat
        found = text:find(pattern) -- HOT
    until found or clock() > stop
    return found
end

core.register_action("slow", { "http-res" }, function()
    match()
end)
