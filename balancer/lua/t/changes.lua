-- What changes do to a rotation and to the numbers of nodes. CASES is a global
-- of the runner.

local mix = require "resty.spinguard.mix"
local numbers = require "resty.spinguard.numbers"
local rotation = require "resty.spinguard.rotation"
local roundrobin = require "resty.spinguard.roundrobin"
local t = require "t.check"


local PUT = 20000  -- instructions of a change; the tree may have to grow
local random = mix.generator(20261202)


local function upto(n)
    return math.floor(random() * n) + 1
end


-- Changes as often as picks, also in step with the lap, cost nobody a turn:
-- whoever does not change has its weight's part to within one.
local function others_keep_their_share()
    local nodes, sum = {}, 0

    for i = 1, upto(10) + 1 do
        nodes["node" .. i] = upto(4)
        sum = sum + nodes["node" .. i]
    end

    local picker, got, every = roundrobin:new(nodes), {}, upto(3)

    for i = 1, 60 * sum do
        if i % every == 0 then
            picker:set("node1", nodes.node1 + i / every % 2)
        end

        local id = picker:find()
        got[id] = (got[id] or 0) + 1
    end

    local laps = (got.node2 or 0) / nodes.node2

    for id, weight in pairs(nodes) do
        local off = (got[id] or 0) - laps * weight

        if id ~= "node1" then
            t.ok(math.abs(off) <= 1 + weight / nodes.node2, id, ", weight ",
                 weight, ", had ", got[id] or 0, " turns in ", laps, " laps")
        end
    end

    local least = (laps - 1) * nodes.node1 - 1
    t.ok((got.node1 or 0) >= least, "who changes had ", got.node1 or 0,
         " turns, want at least ", least)
end


local function peers_of(weights)
    local peers = {}

    for n, weight in ipairs(weights) do
        peers[n] = { weight = weight }
    end

    return peers
end


-- After any changes the shares of the next lap are exactly the weights, and
-- the tree grows as far as it has to.
local function shares_stay_exact()
    local weights, sum = {}, 0

    for n = 1, upto(20) do
        weights[n] = upto(30) - 1
    end

    local picker = rotation.new(peers_of(weights), random())

    for _ = 1, upto(100) do
        local n = math.min(#weights + 1, upto(200))
        weights[n] = upto(4) == 1 and 0 or upto(60) - 1
        t.ok(t.steps(PUT, picker.put, picker, n, weights[n]), "put")

        for _ = 1, upto(4) - 1 do
            picker:next()
        end
    end

    local got = {}
    for n, weight in ipairs(weights) do
        sum, got[n] = sum + weight, 0
        t.equal(picker:weight_of(n), weight, "weight of ", n)
    end

    for _ = 1, sum do
        local n = picker:next()
        got[n] = got[n] + 1
    end

    for n, weight in ipairs(weights) do
        t.equal(got[n], weight, "share of ", n, " after changes")
    end
end


-- Weights as large as they may be, over some laps: times go round, and what the
-- division of a lap leaves is not lost.
local function times_go_round()
    local weights, got, sum = {}, {}, 0

    for n = 1, 20 do
        weights[n], got[n] = n == 1 and 1 or 65535 - 777 * (n - 2), 0
        sum = sum + weights[n]
    end

    local picker = rotation.new(peers_of(weights), random())

    for _ = 1, 3 * sum do
        local n = picker:next()
        got[n] = got[n] + 1
    end

    for n, weight in ipairs(weights) do
        t.equal(got[n], 3 * weight, "three laps of ", n)
    end
end


local function starts_differ()
    local peers, first, different = {}, {}, 0

    for i = 1, 50 do
        peers[i] = { weight = 1 + i % 3 }
    end

    for i = 0, 9 do
        local peer = rotation.new(peers, i * 0.6180339887498949 % 1):find()
        different = different + (first[peer] and 0 or 1)
        first[peer] = true
    end

    t.ok(different >= 8, different, " of 10 workers begin elsewhere")
end


-- numbers beside a plain table, over ids that come and go.
local function numbers_are_right()
    local ids, want, live = {}, {}, 0

    for i = 1, upto(40) - 1 do
        ids[i], want["id" .. i], live = "id" .. i, i, i
    end

    local all = numbers.new(ids, 0)

    for _ = 1, 300 do
        local id = "id" .. upto(60)

        t.equal(all:of(id), want[id], "number of ", id)

        if want[id] then
            all:drop(id)
            want[id], live = nil, live - 1
        else
            want[id], live = all:add(id), live + 1
            t.equal(all.ids[want[id]], id, "id of a number")
        end

        t.equal(all.live, live, "live")
    end

    for i = 1, 60 do
        t.equal(all:of("id" .. i), want["id" .. i], "number of id", i)
    end

    t.ok(#all.ids <= 60, #all.ids, " numbers for 60 ids")
end


for _ = 1, _G.CASES do
    others_keep_their_share()
    shares_stay_exact()
    numbers_are_right()
end

if jit.status() then
    times_go_round()
end

starts_differ()

return t
