-- The loops that bench.lua measures with. They are text: each picker has loops
-- of its own, since in a shared one the compiler would favour the picker that
-- it met first.

return [[
local now, keys, WALL, CPU = ...

local function picks(picker, n)
    local before = now(CPU)

    for i = 1, n do
        picker:find(keys[i % 4096 + 1])
    end

    return (now(CPU) - before) / n
end

-- p999 is the 99.9th percentile of n single calls. The list is kept, so that
-- none of them pays for a longer one.
local times = {}

local function p999(picker, n)
    for i = 1, n do
        local before = now(WALL)
        picker:find(keys[i % 4096 + 1])
        times[i] = now(WALL) - before
    end

    times[n + 1] = nil
    table.sort(times)

    return times[math.ceil(n * 0.999)]
end

-- builds is the time to make a picker and to ask it once.
local function builds(make, n)
    local picker
    local before = now(CPU)

    for _ = 1, n do
        picker = make()
        picker:find("key")
    end

    return (now(CPU) - before) / n / 1000, picker
end

-- begun is the time to change a weight of fresh pickers and to ask each once.
local function begun(pickers, id, weight)
    local before = now(CPU)

    for i = 1, #pickers do
        pickers[i]:set(id, weight)
        pickers[i]:find("key")
    end

    return (now(CPU) - before) / #pickers / 1000
end

-- sets is the time to change a weight and to ask once, used the time to change
-- it and to ask a hundred times.
local turn = 0
local function sets(picker, id, n)
    local before = now(CPU)

    for _ = 1, n do
        turn = turn % 2 + 1
        picker:set(id, turn)
        picker:find("key")
    end

    return (now(CPU) - before) / n / 1000
end

local function used(picker, id, n)
    local before = now(CPU)

    for _ = 1, n do
        turn = turn % 2 + 1
        picker:set(id, turn)
        for j = 1, 100 do
            picker:find(keys[j])
        end
    end

    return (now(CPU) - before) / n / 1000
end

return picks, p999, builds, begun, sets, used
]]
