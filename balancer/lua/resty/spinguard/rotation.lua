-- Weighted smooth rotation. In one lap each peer has as many turns as its
-- weight, spread evenly over the lap. A lap is divided into as many slots as
-- it has turns, and the turns are taken slot by slot; in a slot by the peers'
-- numbers. So the order repeats with each lap, and over a lap, from any
-- point, the shares are exactly the weights.
--
-- The order is written block by block ahead of the picks, a few steps with
-- each (see resty.spinguard.strip). A lap that is short enough is written
-- once, from then on a pick is one load.

local strip = require "resty.spinguard.strip"

local ipairs = ipairs
local mark = strip.mark
local setmetatable = setmetatable
local take = strip.take


local _M = {}
local mt = { __index = _M }


-- new takes a list of peers whose weights are whole numbers from 0 to 65,535
-- (see resty.spinguard.check) and a start from 0 up to 1: where in the lap
-- this worker begins. The list is kept.
function _M.new(peers, start)
    local self = { peer = peers, weight = {}, total = 0, time = start or 0,
                   number = 0, stale = true, lease = 0 }

    for n, peer in ipairs(peers) do
        self.weight[n] = peer.weight
        self.total = self.total + peer.weight
    end

    return setmetatable(self, mt)
end


-- find returns the next peer, or nil if none has a weight. The first call
-- after a change takes a few steps for each peer, all others a few steps.
function _M.find(self)
    if self.total == 0 then
        return nil
    end

    return self.peer[take(self)]
end


-- change takes over the new weights of some peers, a list of numbers, which
-- may be new ones at the end. The lap goes on from where it is.
function _M.change(self, numbers)
    mark(self)

    for _, n in ipairs(numbers) do
        local weight = self.peer[n].weight
        self.total = self.total + weight - (self.weight[n] or 0)
        self.weight[n] = weight
    end

    self.stale, self.lease = true, 0

    return true
end


return _M
