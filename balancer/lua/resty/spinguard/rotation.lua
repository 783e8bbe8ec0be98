-- Weighted smooth rotation: who is due first has the turn. In one lap each
-- peer has as many turns as its weight, evenly spread over it, beginning
-- elsewhere for each number. The order repeats with each lap, so over a lap,
-- from any point, the shares are exactly the weights.
--
-- Time is counted in ticks, 2^30 to a lap. A peer's turns are a lap divided by
-- its weight apart, in whole ticks; what the division leaves is carried on, as
-- in drawing a line over a grid, so after a lap it is exactly a lap later.

local bit = require "bit"
local ffi = require "ffi"
local mix = require "resty.spinguard.mix"
local tournament = require "resty.spinguard.tournament"

local arshift = bit.arshift
local band = bit.band
local ceil = math.ceil
local copy = ffi.copy
local floor = math.floor
local pass = tournament.pass
local random = mix.generator(1)
local setmetatable = setmetatable
local tobit = bit.tobit


local LAP = 2 ^ 30
local GOLDEN = 663608941  -- of a lap: phases that are spread for any count

local shorts = ffi.typeof("uint16_t[?]")


local _M = {}
local mt = { __index = _M }


-- enter gives every peer its first turn that is not before a time. phase / w
-- is when its first turn of a lap is.
local function enter(self, weights, time)
    local tree, weight, rest = self.tree, self.weight, self.rest
    local seed, phase = tournament.seed, 0

    for n = 1, #weights do
        local w = weights[n]
        phase = band(phase + GOLDEN, LAP - 1)

        if w > 0 then
            local turn = ceil((time * w - phase) / LAP) * LAP + phase
            local at = floor(turn / w)
            weight[n], rest[n] = w, turn - at * w
            seed(tree, n, tobit(at))
        end
    end

    tournament.play(tree)
end


-- over takes a list of weights, whole numbers from 0 to 65,535, and a start
-- from 0 up to 1: where in the lap this worker begins. Such a picker is asked
-- for numbers, by next.
function _M.over(_, weights, start)
    local size, now = #weights, floor((start or 0) * LAP)
    local self = {
        tree = tournament.new(size, now),
        weight = shorts(size + 1),
        rest = shorts(size + 1),
        now = now,
        peer = false,
    }

    enter(self, weights, now)

    return setmetatable(self, mt)
end


-- new takes a list of peers whose weights have been checked (see
-- resty.spinguard.check). The list is kept.
function _M.new(peers, start)
    local weights = {}

    for n = 1, #peers do
        weights[n] = peers[n].weight
    end

    local self = _M.over(peers, weights, start)
    self.peer = peers

    return self
end


-- next returns the number of the next peer, or nil if none has a weight.
function _M.next(self)
    local tree, rest = self.tree, self.rest
    local n = tree.win[1]
    if n == 0 then
        return nil
    end

    -- step is LAP / w rounded down: tobit rounds to the nearest, and the
    -- quarter keeps it off the middle between two.
    local w, now = self.weight[n], tree.key[n]
    local step = tobit((LAP + 0.25) / w - 0.5)
    local left = tobit(rest[n] + (LAP - step * w) - w)
    local short = arshift(left, 31)  -- -1 if there is no tick to carry

    rest[n] = left + band(w, short)
    self.now = now
    pass(tree, n, now, tobit(now + step + 1 + short))

    return n
end


-- find returns the next peer, or nil if none has a weight.
function _M.find(self)
    local n = self:next()

    return n and self.peer[n]
end


function _M.weight_of(self, n)
    return self.weight[n]
end


local function grow(self, n)
    local old, size = self.tree.room, 2 * n

    self.tree = tournament.grown(self.tree, size)

    for _, name in ipairs({ "weight", "rest" }) do
        local list = shorts(size + 1)
        copy(list, self[name], 2 * (old + 1))
        self[name] = list
    end
end


-- wait returns in how many ticks a peer has its next turn with a new weight:
-- the part of its way that was left is left. So however often weights change,
-- nobody loses what it has waited for. Whoever had no weight begins anywhere.
local function wait(self, n, w)
    local old, most = self.weight[n], floor((LAP - 1) / w)
    if old == 0 then
        return 1 + floor(random() * (most - 1))
    end

    local left = tobit(self.tree.key[n] - self.now)
    local new = floor(left * old / w)

    if new < 1 and left > 0 then
        return 1
    end

    return new < most and new or most
end


-- put gives a number its weight; it may be a new one, one behind the last.
function _M.put(self, n, w)
    if n > self.tree.room then
        grow(self, n)
    end

    if w > 0 then
        local time = tobit(self.now + wait(self, n, w))
        self.weight[n], self.rest[n] = w, 0
        tournament.put(self.tree, n, time)
    elseif self.weight[n] > 0 then
        self.weight[n] = 0
        tournament.drop(self.tree, n)
    end
end


-- settle is for pickers that put changes off.
function _M.settle()
end


return _M
