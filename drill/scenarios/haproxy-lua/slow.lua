-- luacheck: read globals core
-- The pattern backtracks inside one function of C, some 50 ms, which HAProxy
-- can't interrupt, again until 1.4 s of CPU are used up: below 2 s on a slow
-- machine too, in too few steps of Lua for HAProxy to take the thread away.
local clock = os.clock
local rep = string.rep

local text = rep("a", 120)
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
