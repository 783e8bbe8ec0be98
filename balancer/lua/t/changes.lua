-- What changes do to a rotation, to a ring, and to the numbers of nodes. CASES
-- is a global of the runner.

local mix = require "resty.spinguard.mix"
local numbers = require "resty.spinguard.numbers"
local points = require "resty.spinguard.points"
local ring = require "resty.spinguard.ring"
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


-- After any changes the shares of the next lap are exactly the weights, and
-- the tree grows as far as it has to.
local function shares_stay_exact()
    local weights, sum = {}, 0

    for n = 1, upto(20) do
        weights[n] = upto(30) - 1
    end

    local picker = rotation.over(nil, weights, random())

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

    local picker = rotation.over(nil, weights, random())

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

    local all = numbers.new(ids)

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


-- ordered says whether a ring has these points, owner by owner, in order.
local function ordered(on, want)
    table.sort(want, function(a, b)
        return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
    end)

    local at = on.size > 0 and ring.at(on, 1)

    for i, p in ipairs(want) do
        t.equal(on.point[at], p[1], "point ", i, " of ", #want)
        t.equal(ring.owner(on, at), p[2], "its owner")
        at = ring.after(on, at)
    end

    t.equal(on.size, #want, "points")
end


-- laid_out says whether the array of a ring is what sorted points make: each
-- where it belongs or behind the one before, and gaps like what is behind them.
local function laid_out(on, want)
    local at = 1

    for i, p in ipairs(want) do
        local place = math.max(at, math.floor(p[1] * on.scale) + 1)

        for gap = at, place - 1 do
            t.ok(on.point[gap] == p[1] and on.owner[gap] == p[2] + 32768,
                 "gap ", gap, " before point ", i, " of ", #want)
        end

        t.ok(on.point[place] == p[1] and on.owner[place] == p[2],
             "place ", place, " of point ", i, " of ", #want)
        at = place + 1
    end

    for gap = at, on.stop - 1 do
        t.ok(on.point[gap] == 2 ^ 31 - 1 and on.owner[gap] == 32768,
             "gap ", gap, " behind ", #want, " points")
    end
end


-- owned says whether a key belongs to the first point that is not before it.
local function owned(on, want, key)
    local first = want[1]

    for i = #want, 1, -1 do
        first = want[i][1] >= key and want[i] or first
    end

    t.equal(ring.owner(on, ring.at(on, key)), first[2], "owner of key ", key)
end


local CIRCLE = 2 ^ 30


-- Points that come and go lie in order, also where many are in one place or at
-- the end of the circle, until there is no room for one more.
local function ring_is_in_order()
    local ids, want, list = { "a", "b", "c" }, {}, points.begin(100)
    local width = ({ CIRCLE, 1000, 3 })[upto(3)]

    local function point()
        return upto(2) == 1 and upto(width) or CIRCLE + 1 - upto(width)
    end

    for i = 1, upto(60) do
        want[i] = { point(), upto(3) }
        list.point[i - 1], list.owner[i - 1] = want[i][1], want[i][2]
    end

    local on = ring.new(points.sort(#want, ids), #want, ids)

    for _ = 1, upto(80) do
        if upto(2) == 1 and #want > 1 then
            local p = table.remove(want, upto(#want))
            ring.take(on, p[1], p[2])
        else
            local p = { point(), upto(3) }
            if not ring.put(on, p[1], p[2]) then
                t.ok(#want > 16, "no room behind ", #want, " points")
                return
            end

            want[#want + 1] = p
        end
    end

    ordered(on, want)
    laid_out(on, want)
    owned(on, want, point())

    local p = want[upto(#want)][1]
    for key = math.max(1, p - 1), math.min(CIRCLE, p + 1) do
        owned(on, want, key)
    end
end


for _ = 1, _G.CASES do
    ring_is_in_order()
    others_keep_their_share()
    shares_stay_exact()
    numbers_are_right()
end

if jit.status() then
    times_go_round()
end

starts_differ()

return t
