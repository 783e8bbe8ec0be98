-- The ring of the consistent hash: its order under changes, what a look beside
-- it tells, and how keys are spread. CASES is a global of the runner.

local aside_of = require "resty.spinguard.aside"
local hash = require "resty.spinguard.hash"
local mix = require "resty.spinguard.mix"
local points = require "resty.spinguard.points"
local ring = require "resty.spinguard.ring"
local t = require "t.check"


local random = mix.generator(20261204)


local function upto(n)
    return math.floor(random() * n) + 1
end


-- Similar keys are spread over equal peers: 1,600 points of each peer leave
-- its share about 2.5 % off.
local SHAPES = { "key%d", "/img/%06d.jpg", "user-%x", "%d", "10.0.%d.1" }


local function keys_are_spread()
    local peers, keys = {}, 20000
    for i = 1, 10 do
        peers[i] = { address = "10.0.0." .. i .. ":80", weight = 10 }
    end

    local picker = hash.new(peers)

    for _, shape in ipairs(SHAPES) do
        local got = {}

        for i = 1, keys do
            local peer = picker:find(shape:format(i))
            got[peer] = (got[peer] or 0) + 1
        end

        for _, peer in ipairs(peers) do
            local share = (got[peer] or 0) / keys
            t.ok(math.abs(share - 0.1) < 0.013, "keys like ", shape,
                 ": share of ", peer.address, " is ", share)
        end
    end
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


-- home is where a point belongs, half a place rounded to the even one.
local function home(x)
    local low = math.floor(x)

    return x > low and low + 2 or low % 2 == 0 and low + 2 or low + 1
end


-- laid_out says whether the array of a ring is what sorted points make: each
-- where it belongs or behind the one before, and gaps like what is behind them.
local function laid_out(on, want)
    local at = 2

    for i, p in ipairs(want) do
        local place = math.max(at, home(p[1] * on.scale))

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


-- A look beside a ring tells whom a key belongs to on the ring that the change
-- makes, or nothing. Half of those that lie aside are made of the last one.
local last

local function beside_is_ahead()
    local ids, weights = {}, {}

    for n = 1, upto(5) do
        ids[n], weights[n] = "10.0.0." .. upto(250) .. ":" .. n, upto(3) - 1
    end

    weights[1] = weights[1] + 1

    local on, n = hash.over(ids, { unpack(weights) }), upto(#ids + 1)
    local weight = upto(4) - 1

    ids[n] = ids[n] or "10.0.0.251:80"
    local aside = aside_of.new(on, n, weight, upto(2) == 1 and last)
    if not aside then
        return
    end

    last = aside

    weights[n] = weight
    local after, told = hash.over(ids, weights), 0

    for i = 1, 100 do
        local key = "key" .. upto(1e6)
        local who = aside_of.ahead(on, aside, points.of_key(key))

        t.ok(who == nil or who == after:next(key), "key", i, " of ",
             tostring(who), ", will be of ", tostring(after:next(key)))
        told = told + (who and 1 or 0)
    end

    t.ok(told > 90 or #ids == 1 or after.weights < 3, told,
         " of 100 keys are told")
end


-- Equal points: the lower id has them. Who loses one of two that are equal may
-- still have the other, which a look aside does not tell.
local function equal_points_aside()
    local ids = { "a", "b", "c" }

    local function ring_of(all)
        local list = points.begin(#all)

        for i, p in ipairs(all) do
            list.point[i - 1], list.owner[i - 1] = p[1], p[2]
        end

        return ring.new(list, #all, ids)
    end

    local self = { ids = ids, ring = ring_of({
        { 1000, 1 }, { 1000, 2 }, { 2000, 2 }, { 2000, 2 }, { 3000, 3 },
    }) }

    local function ahead(want, at, n, gains, all)
        local aside = { n = n, gains = gains, ring = ring_of(all) }

        t.equal(aside_of.ahead(self, aside, at), want, ids[n], ", point ", at)
    end

    ahead(2, 900, 1, false, { { 1000, 1 } })
    ahead(1, 900, 2, false, { { 1000, 2 } })
    ahead(nil, 1500, 2, false, { { 2000, 2 } })
    ahead(nil, 2000, 2, false, { { 2000, 2 } })
    ahead(3, 2001, 2, false, { { 2000, 2 } })
    ahead(1, 3001, 3, false, { { 3000, 3 } })
    ahead(1, 2500, 3, false, { { 3000, 3 } })
    ahead(1, 900, 3, true, { { 1000, 3 } })
    ahead(3, 900, 3, true, { { 950, 3 } })
    ahead(3, 950, 3, true, { { 950, 3 } })
    ahead(1, 951, 3, true, { { 950, 3 } })
    ahead(1, 2500, 1, true, { { 3000, 1 } })
    ahead(3, 2500, 3, true, { { 3001, 3 } })
    ahead(2, 3500, 2, true, { { 500, 2 } })
end


local CIRCLE = 2 ^ 30


-- used returns a ring of some points that was used for others before, if it has
-- room for these.
local function used(size, ids)
    local list, before = points.begin(100), size + upto(20)

    for i = 0, before - 1 do
        list.point[i], list.owner[i] = upto(CIRCLE), upto(3)
    end

    local on = ring.new(list, before, ids)

    return function()
        return ring.again(on, list, size, ids) and on
    end
end


-- Points that come and go lie in order, also where many are in one place or at
-- the end of the circle, until there is no room for one more.
local function ring_is_in_order()
    local ids, want, list = { "a", "b", "c" }, {}, points.begin(100)
    local width = ({ CIRCLE, 1000, 3 })[upto(3)]

    local function point()
        return upto(2) == 1 and upto(width) or CIRCLE + 1 - upto(width)
    end

    local size = upto(60)
    local again = upto(2) == 1 and used(size, ids)

    for i = 1, size do
        want[i] = { point(), upto(3) }
        list.point[i - 1], list.owner[i - 1] = want[i][1], want[i][2]
    end

    local on = again and again() or ring.new(list, size, ids)

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
    beside_is_ahead()
end

equal_points_aside()
keys_are_spread()

return t
