-- Weighted smooth rotation: who is due first has the turn. In one lap each
-- peer has as many turns as its weight, evenly spread over it, beginning
-- elsewhere for each number. The order repeats with each lap, so over a lap,
-- from any point, the shares are exactly the weights.
--
-- Time is counted in ticks, 2^30 to a lap. A peer's turns are a lap divided by
-- its weight apart, in whole ticks; what the division leaves is carried on, as
-- in drawing a line over a grid, so after a lap it is exactly a lap later.

local bit = require "bit"
local mix = require "resty.spinguard.mix"
local tournament = require "resty.spinguard.tournament"

local arshift = bit.arshift
local assert = assert
local band = bit.band
local bor = bit.bor
local ceil = math.ceil
local fields = tournament.fields
local floor = math.floor
local grow = tournament.grow
local loadstring = loadstring
local lshift = bit.lshift
local pass = tournament.pass
local play = tournament.play
local random = mix.generator(1)
local rshift = bit.rshift
local setmetatable = setmetatable
local tobit = bit.tobit


local FEW = tournament.FEW
local LAP = 2 ^ 30
local GOLDEN = 663608941  -- of a lap: phases that are spread for any count

local _M = {}
local mt = { __index = _M }


-- One number has its first turn that is not before a time; PHASE / w is when
-- its first turn of a lap is. Who has no weight divides by 1 and wins nothing.
local SEAT = [[
    w = rshift(key[room + N], 16)
    parts = bor(w, rshift(w - 1, 31))
    turn = ceil((time * w - PHASE) / LAP) * LAP + PHASE
    at = floor(turn / parts)
    key[N] = tobit(at)
    key[room + N] = bor(lshift(w, 16), turn - at * parts)
    win[leaf + N] = band(N, arshift(-w, 31))
]]


-- written makes a function of text, as in resty.spinguard.tournament.
local function written(text)
    return assert(loadstring([[
        local arshift, band, bor, ceil, floor, lshift, rshift, tobit = ...
        local LAP, GOLDEN = 2 ^ 30, ]] .. GOLDEN .. [[

        return function(win, leaf, key, room, size, time)
            local phase, w, parts, turn, at = 0
    ]] .. text .. " end"))(arshift, band, bor, ceil, floor, lshift, rshift,
                           tobit)
end


local enter_few, phase = "", 0

for n = 1, FEW - 1 do
    phase = (phase + GOLDEN) % LAP
    enter_few = enter_few .. "if size < " .. n .. " then return end "
                .. SEAT:gsub("N", n):gsub("PHASE", phase)
end

enter_few = written(enter_few)

local enter_many = written("for n = 1, size do "
                           .. "phase = band(phase + GOLDEN, LAP - 1) "
                           .. SEAT:gsub("N", "n"):gsub("PHASE", "phase")
                           .. " end")


-- blank returns a rotation of a list, with room for so many in it, that has
-- not begun. Which fields there are is said once: a table that grows costs more
-- than all of this. numbers and looks are for the owner of the list.
function _M.blank(list, size)
    local leaf, climb, win, room, key = fields(size)

    return {
        list = list,
        numbers = false,
        looks = 0,
        leaf = leaf,
        climb = climb,
        win = win,
        room = room,
        key = key,      -- behind the times: the weight and what is carried on
        now = false,
    }
end


-- seat gives a number its weight, a whole number from 0 to 65,535, before the
-- rotation begins.
function _M.seat(self, n, w)
    if n >= self.room then
        grow(self, n)
    end

    self.key[self.room + n] = lshift(w, 16)
end


-- begin takes a start from 0 up to 1: where in the lap this worker begins.
function _M.begin(self, start)
    local now, size = floor(start * LAP), #self.list
    local enter = self.leaf == FEW and enter_few or enter_many

    enter(self.win, self.leaf, self.key, self.room, size, now)
    self.now = now
    play(self, now)
end


-- new takes a list of peers whose weights have been checked (see
-- resty.spinguard.check), and a start. The list is kept.
function _M.new(peers, start)
    local self = setmetatable(_M.blank(peers, #peers), mt)

    for n = 1, #peers do
        _M.seat(self, n, peers[n].weight)
    end

    _M.begin(self, start or 0)

    return self
end


-- next returns the number of the next peer, or nil if none has a weight.
function _M.next(self)
    local key = self.key
    local n = self.win[1]
    if n == 0 then
        return nil
    end

    -- step is LAP / w rounded down: tobit rounds to the nearest, and the
    -- quarter keeps it off the middle between two.
    local room, now = self.room, key[n]
    local seat = key[room + n]
    local w = rshift(seat, 16)
    local step = tobit((LAP + 0.25) / w - 0.5)
    local left = tobit(band(seat, 65535) + (LAP - step * w) - w)
    local short = arshift(left, 31)  -- -1 if there is no tick to carry

    key[room + n] = bor(lshift(w, 16), left + band(w, short))
    self.now = now
    pass(self, n, now, tobit(now + step + 1 + short))

    return n
end


-- find returns the next of the list, or nil if none has a weight.
function _M.find(self)
    local n = _M.next(self)

    return n and self.list[n]
end


function _M.weight_of(self, n)
    return rshift(self.key[self.room + n], 16)
end


-- wait returns in how many ticks a peer has its next turn with a new weight:
-- the part of its way that was left is left. So however often weights change,
-- nobody loses what it has waited for. Whoever had no weight begins anywhere.
local function wait(self, n, old, w)
    local most = floor((LAP - 1) / w)
    if old == 0 then
        return 1 + floor(random() * (most - 1))
    end

    local left = tobit(self.key[n] - self.now)
    local new = floor(left * old / w)

    if new < 1 and left > 0 then
        return 1
    end

    return new < most and new or most
end


-- put gives a number its weight; it may be a new one, one behind the last.
function _M.put(self, n, w)
    if n >= self.room then
        grow(self, n)
    end

    local old = _M.weight_of(self, n)
    self.key[self.room + n] = lshift(w, 16)

    if not self.now then
        return
    elseif w > 0 then
        tournament.put(self, n, tobit(self.now + wait(self, n, old, w)))
    elseif old > 0 then
        tournament.drop(self, n)
    end
end


-- settle is for pickers that put changes off.
function _M.settle()
end


return _M
