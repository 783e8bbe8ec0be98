-- Nanoseconds of CPU per pick, rounds interleaved, median of the rounds; the
-- pickers of lua-resty-balancer beside ours where they can be loaded. One
-- line a number: name, peers, unit, value.

local ffi = require "ffi"
local chash = require "resty.spinguard.chash"
local crumb = require "resty.spinguard.crumb"
local hash = require "resty.spinguard.hash"
local least = require "resty.spinguard.least"
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


local CPU = 2  -- CLOCK_PROCESS_CPUTIME_ID
local SINGLES = 20000
local time = ffi.new("struct spinguard_bench_time")


local function now()
    ffi.C.spinguard_clock(CPU, time)

    return tonumber(time.s) * 1e9 + tonumber(time.ns)
end


local WEIGHTS = {
    w10 = function(random) return math.floor(random() * 10) + 1 end,
    skew = function(_, i) return i == 1 and 1000 or 1 end,
}


local function nodes_of(size, weights)
    local random, nodes, peers = mix.generator(7), {}, {}

    for i = 1, size do
        local id = "10." .. math.floor(i / 60000) .. "."
                   .. math.floor(i / 250) % 250 .. "." .. i % 250 .. ":80"
        nodes[id] = WEIGHTS[weights](random, i)
        peers[i] = { address = id, weight = nodes[id] }
    end

    return nodes, peers
end


local keys = {}
for i = 1, 4096 do
    keys[i] = "key" .. i
end


local function run(picker, n)
    local before = now()

    for i = 1, n do
        picker:find(keys[i % 4096 + 1])
    end

    return (now() - before) / n
end


-- quantile of single calls, with the cost of the clock in them.
local function single(picker, q)
    local times = {}

    for i = 1, SINGLES do
        local before = now()
        picker:find(keys[i % 4096 + 1])
        times[i] = now() - before
    end

    table.sort(times)

    return times[math.ceil(SINGLES * q)]
end


local function say(name, size, unit, value)
    io.stderr:write(string.format("bench %-28s %6d %-10s %.1f\n", name, size,
                                  unit, value))
end


local function median(list)
    table.sort(list)

    return list[math.ceil(#list / 2)]
end


local function build(make)
    collectgarbage()
    local memory, before = collectgarbage("count"), now()
    local picker = make()
    local ns = now() - before
    collectgarbage()

    return picker, ns, collectgarbage("count") - memory
end


local function contenders(nodes, peers)
    local list = {
        { "spinguard rotation", function()
            return rotation.new(peers, 0.3)
        end },
        { "spinguard rotation turn 1", function()
            -- A wheel so long that the rounds do not turn it once.
            local long = {}
            for i, peer in ipairs(peers) do
                long[i] = { address = peer.address,
                            weight = peer.weight * 6500 }
            end

            return rotation.new(long, 0.3)
        end },
        { "spinguard roundrobin", function()
            return roundrobin:new(nodes)
        end },
        { "spinguard chash", function() return chash:new(nodes) end },
        { "spinguard hash", function() return hash.new(peers) end },
        { "spinguard least", function() return least.new(peers, 0.3) end },
    }

    for _, name in ipairs({ "roundrobin", "swrr", "chash" }) do
        local ok, module = pcall(require, "resty." .. name)
        if ok then
            list[#list + 1] = { "lua-resty-balancer " .. name, function()
                return module:new(nodes)
            end }
        end
    end

    return list
end


local function compare(size, weights, rounds)
    local nodes, peers = nodes_of(size, weights)
    local list = contenders(nodes, peers)
    local n = size >= 1000 and 20000 or 100000

    for _, c in ipairs(list) do
        local ns, memory
        c.picker, ns, memory = build(c[2])
        c.times = {}
        c.name = c[1] .. " " .. weights
        say(c.name, size, "build-us", ns / 1000)
        say(c.name, size, "KB", memory)
        run(c.picker, size * 12)
    end

    for _ = 1, rounds do
        for _, c in ipairs(list) do
            c.times[#c.times + 1] = run(c.picker, n)
        end
    end

    for _, c in ipairs(list) do
        say(c.name, size, "ns/pick", median(c.times))
        say(c.name, size, "p99.9-ns", single(c.picker, 0.999))
    end
end


local function loop(name, n, f)
    local times = {}

    f(n)
    for _ = 1, 7 do
        local before = now()
        f(n)
        times[#times + 1] = (now() - before) / n
    end

    say(name, 10, "ns/pick", median(times))
end


for _, size in ipairs({ 10, 100, 1000, 10000 }) do
    compare(size, "w10", 5)
    compare(size, "skew", 5)
end

spinguard.init({ dict = "spinguard", dir = ngx.config.prefix() .. "/run" })
local _, ten = nodes_of(10, "w10")
assert(spinguard.update("bench", ten))

local plan = upstream.current("bench").plan

loop("crumb", 1e6, function(n)
    for _ = 1, n do
        crumb.pick(plan)
        crumb.leave()
    end
end)

loop("look for changes", 1e6, function(n)
    for _ = 1, n do
        upstream.current("bench")
    end
end)

loop("pick, all of it", 1e6, function(n)
    for _ = 1, n do
        spinguard.pick("bench")
    end
end)


return { checks = 1, failures = 0 }
