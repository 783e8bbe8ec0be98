-- What one number gains or loses, beside the ring: points in a ring of their
-- own, made sooner than they are moved. A pick looks at both rings.

local band = require("bit").band
local points = require "resty.spinguard.points"
local ring = require "resty.spinguard.ring"

local at_of = ring.at
local ceil = math.ceil
local owner = ring.owner


local CIRCLE = 2 ^ 30
local MANY = 512        -- points
local MOST = 2048
local SKIPPED = 4096    -- points of a peer that are no longer few
local TRIES = 8


local _M = {}


-- new returns what a number of a hash, which may be a new one, gains or loses
-- with another weight. nil: there are too many points, or many lay aside since
-- points were moved, so they had better be moved too: whoever comes back, as
-- after a delete, has not been moved, and whoever changes on has few to change.
-- before is what lay aside before, which is made anew, or false: a weight that
-- is changed again and again leaves no garbage.
function _M.new(hash, n, weight, before)
    local old, new = hash.count[n] or 0, ceil(weight * hash.unit)
    local from, stop = old < new and old or new, old < new and new or old
    local sum = hash.weights - (hash.weight[n] or 0) + weight
    local size, ids = stop - from, hash.ids

    if hash.ring.size == 0 or size == 0 or size > MOST or stop > SKIPPED
        or (size > MANY and hash.lent) or not hash:same_unit(sum)
    then
        return nil
    end

    local list = points.begin(size)
    points.write(list, 0, ids[n], n, from, stop)
    hash.lent = hash.lent or size > MANY

    if not before or not ring.again(before.ring, list, size, ids) then
        return { ring = ring.new(list, size, ids), n = n, gains = new > old,
                 looks = 0 }
    end

    before.n, before.gains = n, new > old

    return before
end


-- gained returns the number of a point of the circle on a ring that has gained
-- what lies aside.
local function gained(hash, aside, want)
    local on, plus, ids = hash.ring, aside.ring, hash.ids
    local at = at_of(on, want)
    local far = band(on.point[at] - want, CIRCLE - 1)
    local near = band(plus.point[at_of(plus, want)] - want, CIRCLE - 1)
    local who, n = owner(on, at), aside.n

    if near < far or (near == far and ids[n] < ids[who]) then
        return n
    end

    return who
end


-- goes says whether a point is one of those that lie aside.
local function goes(aside, point)
    local minus = aside.ring

    return minus.point[at_of(minus, point)] == point
end


-- behind goes on from a place whose point is lost.
local function behind(hash, aside, at)
    local on = hash.ring

    for _ = 1, TRIES do
        local its = on.point[at]
        at = ring.after(on, at)

        local who, point = owner(on, at), on.point[at]
        if who ~= aside.n then
            return who
        elseif point == its then
            return nil
        elseif not goes(aside, point) then
            return who
        end
    end
end


-- lost returns the number of a point of the circle on a ring that has lost
-- what lies aside. nil: the next points are all lost, or one that is lost lies
-- where another of its owner may stay. What is rare and has a loop is in a
-- function of its own: the compiler would begin a trace at it.
local function lost(hash, aside, want)
    local on = hash.ring
    local at = at_of(on, want)
    local who = owner(on, at)

    if who ~= aside.n or not goes(aside, on.point[at]) then
        return who
    end

    return behind(hash, aside, at)
end


-- ahead returns the number of a point of the circle on a ring that was changed
-- by what lies aside, or nil if that does not tell.
function _M.ahead(hash, aside, want)
    if aside.gains then
        return gained(hash, aside, want)
    end

    return lost(hash, aside, want)
end


return _M
