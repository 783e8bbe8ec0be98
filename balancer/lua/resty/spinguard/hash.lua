-- Consistent hash with bounded loads. A ring of points, some for each unit of
-- weight, sorted once by counting; a key goes to the next point behind its
-- hash. If that peer already carries more than its share by a quarter, the
-- key goes on along the ring, at most over TRIES points.
--
-- The points of a peer depend on its address and weight only: a change moves
-- no key but those that the changed peers gain or lose. Only where the total
-- weight doubles past a limit the number of points for a unit is halved.

local ffi = require "ffi"
local mix = require "resty.spinguard.mix"

local ceil = math.ceil
local crc32 = ngx.crc32_short  -- keys are short; the value is the same
local floor = math.floor
local hash = mix.hash
local ipairs = ipairs
local setmetatable = setmetatable


local POINTS = 160         -- for a unit of weight, while they are few
local MAX_POINTS = 65536   -- halve until no more than this
local SPREAD = 1.25        -- bounded load: this much over the fair share
local TRIES = 64
local TWO_32 = 4294967296
local GOLDEN = 0x9e3779b9
local FACTOR = 1540483     -- odd, under 2^21


local _M = {}
local mt = { __index = _M }


local function points_of(weight, unit)
    return weight > 0 and ceil(weight * unit) or 0
end


local function count(peers, unit)
    local n = 0

    for _, peer in ipairs(peers) do
        n = n + points_of(peer.weight, unit)
    end

    return n
end


-- unit_for halves the points for a unit of weight until they are few enough;
-- one point for each peer is always left.
local function unit_for(peers)
    local unit = POINTS

    for _ = 1, 32 do
        if count(peers, unit) <= MAX_POINTS then
            break
        end

        unit = unit / 2
    end

    return unit
end


local function each_point(peers, unit, visit)
    for n, peer in ipairs(peers) do
        local seed = crc32(peer.address)

        for i = 1, points_of(peer.weight, unit) do
            visit(hash(seed + i * GOLDEN), n)
        end
    end
end


-- insert keeps a bucket sorted; equal points go by the peer's number, which
-- is the order of addresses.
local function insert(self, from, used, point, n)
    local at = from + used
    local points, owner = self.points, self.owner

    while at > from and (points[at - 1] > point
        or (points[at - 1] == point and owner[at - 1] > n))
    do
        points[at], owner[at] = points[at - 1], owner[at - 1]
        at = at - 1
    end

    points[at], owner[at] = point, n
end


local function fill(self, peers, unit)
    local first, scale = self.first, self.scale
    local used = ffi.new("uint32_t[?]", self.buckets + 1)

    each_point(peers, unit, function(point)
        local b = floor(point * scale)
        first[b + 1] = first[b + 1] + 1
    end)

    for b = 1, self.buckets do
        first[b] = first[b] + first[b - 1]
    end

    each_point(peers, unit, function(point, n)
        local b = floor(point * scale)
        insert(self, first[b], used[b], point, n)
        used[b] = used[b] + 1
    end)
end


-- new takes peers sorted by address, as resty.spinguard.check returns them.
-- load(peer) tells how many requests the peer carries; without it loads are
-- not bounded.
function _M.new(peers, _, load)
    local unit = unit_for(peers)
    local total = count(peers, unit)
    local buckets = total > 0 and total or 1
    local weights = 0

    for _, peer in ipairs(peers) do
        weights = weights + peer.weight
    end

    local self = {
        peer = peers,
        load = load,
        weights = weights,
        total = total,
        buckets = buckets,
        scale = buckets / TWO_32,
        first = ffi.new("uint32_t[?]", buckets + 1),
        points = ffi.new("uint32_t[?]", total + 1),
        owner = ffi.new("uint16_t[?]", total + 1),
    }

    fill(self, peers, unit)

    return setmetatable(self, mt)
end


-- locate returns the position of the first point that is not before the
-- hash. It looks through one bucket: one point on average.
local function locate(self, point)
    local b = floor(point * self.scale)
    local at, stop = self.first[b], self.first[b + 1]
    local points = self.points

    while at < stop and points[at] < point do
        at = at + 1
    end

    return at < self.total and at or 0
end


-- point_of returns the point of a key. A CRC is spread well already, the
-- points of the peers are hashed; one product, exact in a double, takes the
-- structure out that the CRCs of similar keys share.
local function point_of(key)
    return crc32(key) * FACTOR % TWO_32
end


local function over(self, peer, carried)
    local share = (carried + 1) * peer.weight / self.weights

    return self.load(peer) + 1 > ceil(share * SPREAD)
end


-- find returns the peer of a key. carried is how many requests all peers
-- carry together.
function _M.find(self, key, carried)
    if self.total == 0 then
        return nil
    end

    local at = locate(self, point_of(key or ""))
    local peer = self.peer[self.owner[at]]

    if not self.load or not carried then
        return peer
    end

    for _ = 1, TRIES do
        local next_peer = self.peer[self.owner[at]]
        if not over(self, next_peer, carried) then
            return next_peer
        end

        at = at + 1 < self.total and at + 1 or 0
    end

    return peer
end


return _M
