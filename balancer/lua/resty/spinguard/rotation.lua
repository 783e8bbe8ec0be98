-- Weighted smooth rotation. In one lap each peer has as many turns as its
-- weight, spread evenly over the lap. A lap is divided into slots (see
-- resty.spinguard.lap) and the turns are taken slot by slot; in a slot by the
-- peers' numbers. So the order repeats with each lap, and over a lap, from any
-- point, the shares are exactly the weights.
--
-- The order is written block by block ahead of the picks, a few steps with
-- each (see resty.spinguard.strip). A lap that is short enough is written
-- once, from then on a pick is one load.

local lap = require "resty.spinguard.lap"
local mix = require "resty.spinguard.mix"
local strip = require "resty.spinguard.strip"

local floor = math.floor
local ipairs = ipairs
local offset_of = lap.offset
local random = mix.generator(1)
local renew = strip.renew
local setmetatable = setmetatable
local slot_of = lap.slot_of
local turn_in = lap.turn_in


local AGAIN = 1 / 4   -- of the changes: a slot is gone through again
local NEVER = 1e300


local _M = {}
local mt = { __index = _M }


-- peek takes the first turn after a change, and writes nothing: where changes
-- come as often as picks, a lap would be begun in vain.
local function peek(self)
    local weight, time, number = self.weight, self.time, self.number
    local wait, who = NEVER, 0

    for n = 1, #weight do
        local w = weight[n]

        if w > 0 then
            local its = offset_of(n, w, time, number) / w
            if its < wait then
                wait, who = its, n
            end
        end
    end

    time = time + wait
    self.time, self.number = time < 1 and time or time - 1, who
    self.peeked = true

    return who
end


-- take returns the number of the next peer. There is one, since total > 0.
local function take(self)
    local lease = self.lease

    if lease == 0 then
        if self.stale and not self.peeked then
            return peek(self)
        end

        lease = renew(self)
    end

    self.lease = lease - 1

    local at = self.read
    self.read = at + 1 < self.length and at + 1 or 0

    return self.strip[at]
end


-- last returns the time of the turn that was taken last from the strip, behind
-- the begin of the lap, and its number. In a slot turns go by number, so one
-- that is late in it may come before one that is early, which is then left
-- out; and the turns of a peer whose weight changes are elsewhere. So by
-- chance some of the time is gone through again, or changes in step with the
-- lap could leave out the same peer for ever.
local function last(self)
    local order, total = self.strip, self.total
    local at = self.read > 0 and self.read - 1 or self.length - 1
    local n = order[at]
    local weight = self.weight[n]
    local offset, turn = offset_of(n, weight, self.time, self.number), 0

    if self.noted == 1 then
        turn = turn_in(self.places[at], offset, weight, total)
    else
        for i = 0, at - 1 do
            if order[i] == n then
                turn = turn + 1
            end
        end
    end

    if random() < AGAIN then
        local slot = slot_of(turn, offset, weight, total)
        return slot / total, slot == 0 and self.number or 0
    end

    return (turn + offset) / weight, n
end


-- mark notes the time that it is, before the weights change, which ends the
-- lap.
local function mark(self)
    local time, number = 0, self.number

    if not self.stale and self.written > self.ready + self.lease then
        time, number = last(self)
    elseif self.peeked and random() < AGAIN then
        time, number = -random() / self.total, 0
    end

    time = self.time + time
    self.time, self.number = time - floor(time), number
    self.stale, self.peeked, self.lease = true, false, 0
end


-- over takes a list of weights, whole numbers from 0 to 65,535, which then
-- belongs to the picker, and a start from 0 up to 1: where in the lap this
-- worker begins. Such a picker is asked for numbers, by next.
function _M.over(_, weights, start)
    local total = 0

    for n = 1, #weights do
        total = total + weights[n]
    end

    return setmetatable(strip.new(weights, total, start or 0), mt)
end


-- new takes a list of peers whose weights have been checked (see
-- resty.spinguard.check). The list is kept.
function _M.new(peers, start)
    local weights = {}

    for n, peer in ipairs(peers) do
        weights[n] = peer.weight
    end

    local self = _M.over(peers, weights, start)
    self.peer = peers

    return self
end


-- next returns the number of the next peer, or nil if none has a weight. The
-- first two calls after a change take a few steps for each peer, all others a
-- few steps.
function _M.next(self)
    if self.total == 0 then
        return nil
    end

    return take(self)
end


-- find returns the next peer, or nil if none has a weight.
function _M.find(self)
    if self.total == 0 then
        return nil
    end

    return self.peer[take(self)]
end


-- change takes over the new weights of some numbers, which may be new ones at
-- the end. The lap goes on from where it is, give or take a turn.
function _M.change(self, numbers, weights)
    mark(self)

    for _, n in ipairs(numbers) do
        local weight = weights[n]
        self.total = self.total + weight - (self.weight[n] or 0)
        self.weight[n] = weight
    end

    return true
end


return _M
