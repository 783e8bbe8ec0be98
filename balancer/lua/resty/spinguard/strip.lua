-- The order of a rotation, written ahead of the one who reads it: a strip of
-- peer numbers, in a ring. It is written block by block, a block being some
-- slots of the lap: first the turns that fall into the block are thrown into
-- its slots (a list each), then the slots are emptied onto the strip. Both go
-- a few steps at a time, so no pick waits for a whole block but the first
-- after a start.
--
-- A rotation has peer and weight, lists, total, the sum of the weights, time
-- and number, behind which it begins, is stale, to be begun anew, and then has
-- the lease 0.

local ffi = require "ffi"

local ceil = math.ceil
local fill = ffi.fill
local floor = math.floor


local STEPS = 5           -- that a pick goes on; it uses up about four
local AHEAD = 32          -- picks that are served at once
local KEPT = 65536        -- a lap of no more turns is kept
local LEAST = 16          -- slots of a block; else one for each peer
local SMALL = 256         -- peers whose tools to write with are kept
local GOLDEN = 0.6180339887498949
local NEVER = 1e300
local FOREVER = 2 ^ 52
local ROUNDING = 1e-6     -- of turns, at most

local doubles = ffi.typeof("double[?]")
local longs = ffi.typeof("uint32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")


local _M = {}


-- phase is where in its share of the lap a peer has its turns, from 0 to 1:
-- spread, so that peers of equal weight do not come in a row.
local function phase(n)
    local x = n * GOLDEN

    return x - floor(x)
end


-- slot_of returns in which slot of a lap a turn of a peer is.
local function slot_of(turn, offset, weight, total)
    return floor((turn + offset) / weight * total)
end


-- first returns the first turn of a peer that is behind a number in a slot.
-- The estimate is less than two turns behind it. No loop: in the loop over
-- the peers it would cost more than the rest.
local function first(n, weight, total, cut, number)
    local offset = phase(n)
    local turn = ceil(cut / total * weight - offset - ROUNDING)
    turn = turn > 0 and turn or 0

    local slot = slot_of(turn, offset, weight, total)
    if slot < cut or (slot == cut and n <= number) then
        turn = turn + 1
        slot = slot_of(turn, offset, weight, total)
    end

    if slot == cut and n <= number then
        turn = turn + 1
        slot = slot_of(turn, offset, weight, total)
    end

    if turn >= weight then
        return 0, total + slot_of(0, offset, weight, total)
    end

    return turn, slot
end


-- place sets every peer before its first turn behind the cut.
local function place(self, cut)
    local turn, slot = self.turn, self.slot
    local weight, total, number = self.weight, self.total, self.number

    for n = 1, self.size do
        local w = weight[n]
        turn[n], slot[n] = 0, NEVER

        if w > 0 then
            turn[n], slot[n] = first(n, w, total, cut, number)
        end
    end
end


local function begin_block(self, from, slots)
    local stop = from + slots
    local lap = self.base + self.total

    if from >= lap then
        self.base = lap
        lap = lap + self.total
    end

    self.from = from
    self.stop = stop < lap and stop or lap
    self.cursor = self.size
    self.entries = 0
    self.drain, self.entry = -1, 0
end


-- allocate makes room for the turns of a block: each peer has at most one
-- more in it than its weight's part.
local function allocate(self)
    local n = self.size
    local slots = n > LEAST and n or LEAST
    if slots > self.total then
        slots = self.total
    end

    self.slots = slots
    self.most = slots + n
    self.length = self.total <= KEPT and self.total or 2 * self.most

    if not self.slot or self.room < n or self.wide < slots then
        self.room, self.wide = n, slots
        self.turn = doubles(n + 1)
        self.slot = doubles(n + 1)
        self.head = longs(slots)
        self.link = longs(slots + n + 1)
        self.who = shorts(slots + n + 1)
    end

    fill(self.head, 4 * self.wide)

    if not self.strip or self.long < self.length then
        self.long = self.length
        self.strip = shorts(self.length)
        self.places = longs(self.length)
    end
end


-- start begins behind a number in the slot of a time, from 0 up to 1 of a
-- lap.
local function start(self)
    self.size = #self.peer
    allocate(self)

    local cut = floor(self.time * self.total)

    self.base, self.written, self.ready = 0, 0, 0
    self.read, self.write = 0, 0
    self.full, self.stale = false, false
    place(self, cut)
    -- The first block is a short one: there is a pick that waits for it.
    begin_block(self, cut, ceil(self.slots / 2))
end


-- throw puts turns into their slots, at most as many steps as are left, and
-- returns how many are then left. From the last peer to the first, so that
-- the lists come out in the order of numbers.
local function throw(self, left)
    local turn, slot, weight = self.turn, self.slot, self.weight
    local head, link, who = self.head, self.link, self.who
    local n, entries = self.cursor, self.entries
    local from, stop = self.from, self.stop
    local base, total = self.base, self.total

    while n > 0 and left > 0 do
        local at = slot[n]
        left = left - 1

        if at < stop then
            entries = entries + 1
            who[entries], link[entries] = n, head[at - from]
            head[at - from] = entries

            local t, w, before = turn[n] + 1, weight[n], base
            if t >= w then
                t, before = 0, base + total
            end

            turn[n] = t
            slot[n] = before + slot_of(t, phase(n), w, total)
        else
            n = n - 1
        end
    end

    self.cursor, self.entries = n, entries

    return left
end


-- empty writes the turns of the slots on the strip.
local function empty(self, left)
    local head, link, who = self.head, self.link, self.who
    local strip, places = self.strip, self.places
    local at, entry = self.drain, self.entry
    local slots = self.stop - self.from
    local write, length, ready = self.write, self.length, self.ready
    local here = self.from - self.base

    while left > 0 do
        left = left - 1

        if entry > 0 then
            strip[write], places[write] = who[entry], here + at
            entry = link[entry]
            ready = ready + 1
            write = write + 1 < length and write + 1 or 0
        else
            at = at + 1
            if at >= slots then
                break
            end

            entry = head[at]
            head[at] = 0
        end
    end

    self.written = self.written + ready - self.ready
    self.drain, self.entry = at, entry
    self.write, self.ready = write, ready

    return left
end


-- finish ends a block; the next one begins where there is room for what it
-- may bring.
local function finish(self)
    if self.total > KEPT then
        if self.ready <= self.length - self.most then
            begin_block(self, self.stop, self.slots)
        end

    elseif self.written < self.total then
        begin_block(self, self.stop, self.slots)

    else
        self.full = true
        if self.room > SMALL then
            self.slot, self.turn, self.head = nil, nil, nil
            self.link, self.who = nil, nil
        end
    end
end


local function go_on(self, left)
    if self.cursor > 0 then
        left = throw(self, left)
        if self.cursor > 0 then
            return
        end

        self.drain, self.entry = -1, 0
    end

    if self.drain < self.stop - self.from then
        empty(self, left)
    else
        finish(self)
    end
end


-- renew writes ahead, and returns how many turns can be read until the next
-- look: some at a time, so that a pick is mostly one load, without a loop.
local function renew(self)
    if self.stale then
        start(self)
    end

    -- At most two blocks: one that ends with the lap may be empty.
    for _ = 1, 8 + self.most do
        go_on(self, STEPS * AHEAD)

        if self.full then
            return FOREVER
        end

        if self.ready > 0 then
            break
        end
    end

    local lease = self.ready < AHEAD and self.ready or AHEAD
    self.ready = self.ready - lease

    return lease
end


-- take returns the number of the next peer. There is one, since total > 0.
function _M.take(self)
    local lease = self.lease
    if lease == 0 then
        lease = renew(self)
    end

    self.lease = lease - 1

    local at = self.read
    self.read = at + 1 < self.length and at + 1 or 0

    return self.strip[at]
end


-- mark notes the time of the turn that was taken last, before the weights
-- change. Time does not go back in a slot: so also a change before each pick
-- lets everybody have a turn.
function _M.mark(self)
    if self.stale or self.written == self.ready + self.lease then
        return  -- none was
    end

    local at = self.read > 0 and self.read - 1 or self.length - 1
    local n, slot = self.strip[at], self.places[at]
    local weight, total = self.weight[n], self.total
    local turn = floor(slot / total * weight - phase(n)) - 1

    for k = turn < 0 and 0 or turn, turn + 3 do
        local time = (k + phase(n)) / weight

        if floor(time * total) == slot then
            if floor(self.time * total) ~= slot or time > self.time then
                self.time = time
            end

            break
        end
    end

    self.number = n
end


return _M
