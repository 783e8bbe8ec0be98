-- Consistent hash with bounded loads. A ring of sorted points, some for each
-- unit of weight; a key goes to the next point behind its hash. If that peer
-- already carries more than its share by a quarter, the key goes on along the
-- ring, at most over TRIES points.
--
-- The points of a peer depend on its address and weight only: a change moves
-- no key but those that the changed peers gain or lose. Only where the total
-- weight doubles past a limit the number of points for a unit is halved.

local points = require "resty.spinguard.points"
local ring = require "resty.spinguard.ring"

local ceil = math.ceil
local ipairs = ipairs
local of_key = points.of_key
local owner = ring.owner
local setmetatable = setmetatable


local POINTS = 160         -- for a unit of weight, while they are few
local MAX_POINTS = 65536   -- halve until no more than this, and one a peer
local SPREAD = 1.25        -- bounded load: this much over the fair share
local TRIES = 64
local FEW = 4              -- one part of the points may change in place


local _M = {}
local mt = { __index = _M }


-- unit_for returns the points for a unit of weight.
local function unit_for(weights)
    local unit = POINTS

    for _ = 1, 32 do
        if weights * unit <= MAX_POINTS then
            break
        end

        unit = unit / 2
    end

    return unit
end


-- same_unit says whether other weights in all leave every peer the points that
-- it has for a unit.
function _M.same_unit(self, weights)
    local size = weights * self.unit

    return size <= MAX_POINTS
           and (self.unit == POINTS or 2 * size > MAX_POINTS)
end


-- build makes the ring from all weights.
local function build(self)
    local ids, count, size, at = self.ids, self.count, 0, 0

    for n = 1, #ids do
        count[n] = ceil(self.weight[n] * self.unit)
        size = size + count[n]
    end

    local list = points.begin(size)
    for n = 1, #ids do
        at = points.write(list, at, ids[n], n, 0, count[n])
    end

    self.ring = ring.new(list, size, ids)
end


-- over takes lists of ids and of checked weights, which then belong to the
-- picker. Such a picker is asked for numbers, by next.
function _M.over(ids, weights)
    local self = { ids = ids, weight = weights, weights = 0, count = {},
                   lent = false }

    for n = 1, #weights do
        self.weights = self.weights + weights[n]
    end

    self.unit = unit_for(self.weights)
    build(self)

    return setmetatable(self, mt)
end


-- new takes peers as resty.spinguard.check returns them. load(peer) tells how
-- many requests the peer carries; without it loads are not bounded.
function _M.new(peers, _, load)
    local ids, weights = {}, {}

    for n, peer in ipairs(peers) do
        ids[n], weights[n] = peer.address, peer.weight
    end

    local self = _M.over(ids, weights)
    self.peer, self.load = peers, load

    return self
end


-- difference returns how many points some numbers gain or lose with new
-- weights, and how many more there are then.
local function difference(self, numbers, weights)
    local size, more = 0, 0

    for _, n in ipairs(numbers) do
        local by = ceil(weights[n] * self.unit) - (self.count[n] or 0)
        size = size + (by > 0 and by or -by)
        more = more + by
    end

    return size, more
end


-- move takes over the weight of a number, and says whether there was room.
local function move(self, n, weight)
    local old, new = self.count[n] or 0, ceil(weight * self.unit)
    local from, stop = old < new and old or new, old < new and new or old
    local list, fits = points.begin(stop - from), true
    local point, on = list.point, self.ring

    points.write(list, 0, self.ids[n], n, from, stop)

    for i = 0, stop - from - 1 do
        if new > old then
            fits = fits and ring.put(on, point[i], n)
        else
            ring.take(on, point[i], n)
        end
    end

    self.count[n], self.weight[n] = new, weight

    return fits
end


-- change takes over the new weights of some numbers, which may be new ones at
-- the end. Only the points are touched that come and go. It returns false
-- where a new ring is due: every peer's number of points changes, or so many
-- that a new ring is cheaper, or the ring gets too full or too thin.
function _M.change(self, numbers, weights)
    local sum = self.weights

    for _, n in ipairs(numbers) do
        sum = sum + weights[n] - (self.weight[n] or 0)
    end

    local size, more = difference(self, numbers, weights)
    local total = self.ring.size

    if not self:same_unit(sum) or size * FEW > total
        or not ring.suits(self.ring, total + more)
    then
        return false
    end

    self.weights, self.lent = sum, false

    for _, n in ipairs(numbers) do
        if not move(self, n, weights[n]) then
            return false
        end
    end

    return true
end


local function over(self, peer, carried)
    local share = (carried + 1) * peer.weight / self.weights

    return self.load(peer) + 1 > ceil(share * SPREAD)
end


-- next returns the number whose point the key is at, or nil if none has a
-- weight.
function _M.next(self, key)
    local on = self.ring
    if on.size == 0 then
        return nil
    end

    return owner(on, ring.at(on, of_key(key or "")))
end


-- find returns the peer of a key. carried is how many requests all peers
-- carry together.
function _M.find(self, key, carried)
    local on = self.ring
    if on.size == 0 then
        return nil
    end

    local at = ring.at(on, of_key(key or ""))
    local peer = self.peer[owner(on, at)]

    if not self.load or not carried then
        return peer
    end

    for _ = 1, TRIES do
        local next_peer = self.peer[owner(on, at)]
        if not over(self, next_peer, carried) then
            return next_peer
        end

        at = ring.after(on, at)
    end

    return peer
end


return _M
