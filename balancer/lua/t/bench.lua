-- The pickers, and beside them those of lua-resty-balancer where they can be
-- loaded. Rounds are interleaved: in each, every picker has its turn. Times
-- are CPU time of the process, but those of single calls: for them the clock
-- must be cheap, so it is the wall's, with 30 ns of its own in them. What else
-- runs on the machine can only add to a time, so of the 99.9th percentiles of
-- the rounds the least is printed; of all other numbers the median. One line
-- a picker. What is short is done many times between two looks at the clock,
-- which costs a microsecond itself. All garbage is collected before a turn.

local ffi = require "ffi"
local chash = require "resty.spinguard.chash"
local crumb = require "resty.spinguard.crumb"
local hash = require "resty.spinguard.hash"
local least = require "resty.spinguard.least"
local ledger = require "resty.spinguard.ledger"
local loops = require "t.loops"
local mix = require "resty.spinguard.mix"
local rotation = require "resty.spinguard.rotation"
local roundrobin = require "resty.spinguard.roundrobin"
local spinguard = require "resty.spinguard"
local upstream = require "resty.spinguard.upstream"


ffi.cdef[[
struct spinguard_bench_time { long s; long ns; };
int spinguard_clock(int clock, struct spinguard_bench_time *t)
    __asm__("clock_gettime");
]]


-- All loops together have more code than is kept by default; without room all
-- of it is thrown away now and then.
require("jit.opt").start("maxtrace=10000", "maxmcode=65536")


local WALL, CPU = 1, 2  -- CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID
local SINGLES = 20000
local SLOW = 20000      -- microseconds to build
local WARM = 60         -- what a picker does once is hot after ten of them
local CHANGES = 3       -- in a round: the compiler tries some loops four times
local FRESH = 20        -- pickers whose first change is measured at once
local SPAN = 200        -- microseconds between two looks at the clock
local MOST = 500        -- builds or changes between them
local BUDGET = 4e6      -- nanoseconds for the picks of one round, about
local time = ffi.new("struct spinguard_bench_time")


local function now(clock)
    ffi.C.spinguard_clock(clock, time)

    return tonumber(time.s) * 1e9 + tonumber(time.ns)
end


local WEIGHTS = {
    { "1", function() return 1 end },
    { "1..10", function(random) return math.floor(random() * 10) + 1 end },
    { "one 1000", function(_, i) return i == 1 and 1000 or 1 end },
    { "1..65535", function(random)
        return math.floor(random() * 65535) + 1
    end },
}


local function nodes_of(size, weight)
    local random, nodes, peers = mix.generator(7), {}, {}

    for i = 1, size do
        local id = "10." .. math.floor(i / 60000) .. "."
                   .. math.floor(i / 250) % 250 .. "." .. i % 250 .. ":80"
        nodes[id] = weight(random, i)
        peers[i] = { address = id, weight = nodes[id] }
    end

    return nodes, peers
end


local keys = {}
for i = 1, 4096 do
    keys[i] = "key" .. i
end


local function median(list)
    table.sort(list)

    return list[math.ceil(#list / 2)] or 0 / 0
end


-- contenders are name, what makes one, and whether it has set().
local function contenders(nodes, peers, weights)
    local list = {
        { "rotation", function() return rotation.new(peers, 0.3) end },
        { "hash", function() return hash.new(peers) end },
        { "least", function() return least.new(peers, 0.3) end },
        { "spinguard.roundrobin", function()
            return roundrobin:new(nodes)
        end, true },
        { "spinguard.chash", function() return chash:new(nodes) end, true },
    }

    for _, name in ipairs({ "roundrobin", "swrr", "chash" }) do
        local ok, module = pcall(require, "resty." .. name)

        -- Their ring would have ten million points for each peer.
        if ok and not (name == "chash" and weights == "1..65535") then
            list[#list + 1] = { "resty." .. name, function()
                return module:new(nodes)
            end, true }
        end
    end

    return list
end


-- times is how often what takes so many microseconds is done at once.
local function times(us)
    return math.max(1, math.min(MOST, math.floor(SPAN / us)))
end


local function build(c, n)
    local us, picker = c.builds(c[2], n or 1)
    c.picker = picker
    c.built[#c.built + 1] = us
    c.least = math.min(c.least or us, us)

    return us
end


-- fresh returns pickers that have not been changed: the one that there is, and
-- some more if they are small.
local function fresh(c)
    local list = { c.picker }

    for i = 2, math.min(FRESH, times(c.least)) do
        list[i] = c[2]()
        list[i]:find("key")
    end

    return list
end


-- The first change of a picker may have more to do than all others.
local function change(c, id)
    if not c[3] then
        return
    end

    c.begun[#c.begun + 1] = c.begins(fresh(c), id, c.other)

    for _ = 1, CHANGES do
        local n = times(c.sets(c.picker, id, 1))
        c.set[#c.set + 1] = c.sets(c.picker, id, n)
        c.more[#c.more + 1] = c.used(c.picker, id, n)
    end
end


-- warm builds, changes and uses a picker until the compiler has seen all of
-- it.
local function warm(c, id)
    c.cold = build(c)

    for _ = 1, WARM do
        if c.cold < SLOW then
            c.picks(c.picker, 500)
            change(c, id)
            build(c, times(c.least))
        end
    end

    c.n = math.min(SINGLES, math.max(1000, BUDGET / c.picks(c.picker, 500)))
    c.built, c.set, c.more, c.begun = {}, {}, {}, {}
end


-- memory is what a picker holds once it has been used for a while. It is the
-- least of some, since what the compiler makes meanwhile would be in it.
local function memory(c)
    for _ = 1, c.cold < SLOW and 3 or 1 do
        c.picker = nil
        collectgarbage()
        collectgarbage()
        local before = collectgarbage("count")

        build(c)
        c.first[1] = c.picks(c.picker, c.n)
        collectgarbage()
        collectgarbage()

        local held = collectgarbage("count") - before
        c.memory = math.min(c.memory or held, held)
    end

    c.built = {}
end


local function round_of(c, id, round)
    -- Nobody pays for what others have left behind.
    collectgarbage()

    -- What takes a second is measured less often.
    if round <= 2 or median(c.built) < SLOW then
        build(c, times(c.least))
        c.first[#c.first + 1] = c.picks(c.picker, c.n / 4)
    end

    change(c, id)
    c.picks(c.picker, c.n)
    c.later[#c.later + 1] = c.picks(c.picker, c.n)

    local high = c.p999(c.picker, c.n)
    c.high = c.high and c.high < high and c.high or high
end


local function say(...)
    io.stderr:write("bench ", string.format(...), "\n")
end


local function compare(size, weights, weight, rounds)
    local nodes, peers = nodes_of(size, weight)
    local list = contenders(nodes, peers, weights)
    local id = next(nodes)

    for _, c in ipairs(list) do
        c.built, c.first, c.later = {}, {}, {}
        c.set, c.more, c.begun = {}, {}, {}
        c.other = nodes[id] % 2 + 1
        c.picks, c.p999, c.builds, c.begins, c.sets, c.used =
            loadstring(loops)(now, keys, WALL, CPU)
        warm(c, id)
        memory(c)
    end

    for round = 1, rounds do
        for _, c in ipairs(list) do
            round_of(c, id, round)
        end
    end

    for _, c in ipairs(list) do
        say("%-21s %6d %-9s %9.1f %9.1f %9.0f %11.1f %11.2f %9.2f %9.2f "
            .. "%9.2f %9.0f", c[1], size, weights, median(c.first),
            median(c.later), c.high, c.cold, median(c.built), median(c.begun),
            median(c.set), median(c.more), c.memory)
    end
end


local function loop(name, n, f)
    local all = {}

    f(n)
    for i = 1, 15 do
        local before = now(CPU)
        f(n)
        all[i] = (now(CPU) - before) / n
    end

    local middle = median(all)
    say("%-34s %6.1f ns (%.1f to %.1f)", name, middle, all[1], all[#all])
end


say("%-21s %6s %-9s %9s %9s %9s %11s %11s %9s %9s %9s %9s", "picker", "peers",
    "weights", "first ns", "later ns", "p99.9 ns", "1st new us", "new us",
    "1st set us", "set us", "+100 us", "KB")

for _, size in ipairs({ 10, 100, 1000, 10000 }) do
    for _, w in ipairs(WEIGHTS) do
        compare(size, w[1], w[2], size < 1000 and 15 or 5)
    end
end

spinguard.init({ dict = "spinguard", dir = ngx.config.prefix() .. "/run" })
local _, ten = nodes_of(10, WEIGHTS[2][2])
assert(spinguard.update("bench", ten))

local plan = upstream.current("bench").plan

loop("crumb", 1e6, function(n)
    for _ = 1, n do
        crumb.pick(plan)
        crumb.leave()
    end
end)

-- A look at the ledger is a system call: once in a turn of nginx's clock, or
-- in 256 picks.
loop("one look at the ledger", 1e5, function(n)
    for _ = 1, n do
        ledger.poll()
    end
end)

loop("look for changes, a pick", 1e6, function(n)
    for _ = 1, n do
        upstream.current("bench")
    end
end)

loop("crumb and look for changes, a pick", 1e6, function(n)
    for _ = 1, n do
        upstream.current("bench")
        crumb.pick(plan)
        crumb.leave()
    end
end)

loop("pick, all of it", 1e6, function(n)
    for _ = 1, n do
        spinguard.pick("bench")
    end
end)


return { checks = 1, failures = 0 }
