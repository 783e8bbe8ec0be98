-- The order of a rotation, written ahead of the one who reads it: a strip of
-- peer numbers, in a ring. It is written block by block, a block being some
-- slots of the lap: first the turns that fall into the block are thrown into
-- its slots (a list each), then the slots are emptied onto the strip. Both go
-- a few steps at a time, so no pick waits for a whole block but the first
-- after a start.

local ffi = require "ffi"
local lap = require "resty.spinguard.lap"

local ceil = math.ceil
local fill = ffi.fill
local offset_of = lap.offset
local slot_of = lap.slot_of


local STEPS = 5           -- that a pick goes on; it uses up about four
local AHEAD = 32          -- picks that are served at once, while a lap is kept
local LONG_AHEAD = 8      -- of one that is written for ever: less to wait for
local KEPT = 65536        -- a lap of no more turns is kept
local LEAST = 64          -- slots of a block; else one for each peer
local SMALL = 256         -- peers whose tools to write with are kept
local NEVER = 1e300
local FOREVER = 2 ^ 52

local doubles = ffi.typeof("double[?]")
local longs = ffi.typeof("uint32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")


local _M = {}


-- new returns the state of a rotation over a list of weights, total, the sum of
-- it, and a time from 0 up to 1 at which it begins. It is stale, to be begun
-- anew, and then has the lease 0. All fields are there from the first: the
-- compiler likes tables that look the same.
function _M.new(weight, total, time)
    return {
        peer = false, weight = weight, total = total, time = time, number = 0,
        stale = true, peeked = false, lease = 0, size = 0, slots = 0, most =
        0, length = 0, room = 0, wide = 0, turn = false, slot = false, offset
        = false, head = false, link = false, who = false, noted = 0, ahead =
        0, long = 0, many = 0, strip = false, places = false, base = 0,
        written = 0, ready = 0, read = 0, write = 0, full = false, from = 0,
        stop = 0, cursor = 0, entries = 0, drain = -1, entry = 0,
    }
end


-- place sets every peer before its first turn.
local function place(self)
    local turn, slot, offset = self.turn, self.slot, self.offset
    local weight, total = self.weight, self.total
    local time, number = self.time, self.number

    for n = 1, self.size do
        local w = weight[n]
        turn[n], slot[n] = 0, NEVER

        if w > 0 then
            offset[n] = offset_of(n, w, time, number)
            slot[n] = slot_of(0, offset[n], w, total)
        end
    end
end


local function begin_block(self, from, slots)
    local stop = from + slots
    local finish = self.base + self.total + 1

    if from >= finish then
        self.base = finish
        finish = finish + self.total + 1
    end

    self.from = from
    self.stop = stop < finish and stop or finish
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
        self.offset = doubles(n + 1)
        self.head = longs(slots)
        self.link = longs(slots + n + 1)
        self.who = shorts(slots + n + 1)
    end

    fill(self.head, 4 * self.wide)

    -- In a lap that is kept the place of a turn can be counted; noted are
    -- only those of a longer one.
    self.noted = self.total <= KEPT and 0 or 1
    self.ahead = self.total <= KEPT and AHEAD or LONG_AHEAD
    local places = self.noted * self.length + 1

    if not self.strip or self.long < self.length or self.many < places then
        self.long, self.many = self.length, places
        self.strip = shorts(self.length)
        self.places = longs(places)
    end
end


-- start begins a lap behind the time.
local function start(self)
    self.size = #self.weight
    allocate(self)

    self.base, self.written, self.ready = 0, 0, 0
    self.read, self.write = 0, 0
    self.full, self.stale = false, false
    place(self)
    -- The first block is a short one: there is a pick that waits for it.
    begin_block(self, 0, ceil(self.slots / 2))
end


-- throw puts turns into their slots, at most as many steps as are left, and
-- returns how many are then left. From the last peer to the first, so that
-- the lists come out in the order of numbers.
local function throw(self, left)
    local turn, slot, weight = self.turn, self.slot, self.weight
    local offset = self.offset
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
                t, before = 0, base + total + 1
            end

            turn[n] = t
            slot[n] = before + slot_of(t, offset[n], w, total)
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
    local strip, places, noted = self.strip, self.places, self.noted
    local at, entry = self.drain, self.entry
    local slots = self.stop - self.from
    local write, length, ready = self.write, self.length, self.ready
    local here = self.from - self.base

    while left > 0 do
        left = left - 1

        if entry > 0 then
            strip[write], places[write * noted] = who[entry], here + at
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
            self.slot, self.turn, self.offset = false, false, false
            self.head, self.link, self.who = false, false, false
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
function _M.renew(self)
    if self.stale then
        start(self)
    end

    -- At most some blocks: one that ends with the lap may be empty.
    for _ = 1, 8 + self.most do
        go_on(self, STEPS * self.ahead)

        if self.full then
            return FOREVER
        end

        if self.ready > 0 then
            break
        end
    end

    local lease = self.ready < self.ahead and self.ready or self.ahead
    self.ready = self.ready - lease

    return lease
end


return _M
