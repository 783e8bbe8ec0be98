-- Weighted smooth rotation. The k-th turn of a peer is at (k + 1/2) / weight
-- on a common time line, and the earliest turn is taken: a heap, so a pick
-- costs at most twice its depth in comparisons whatever the weights are. The
-- comparison is exact (turns are odd numbers over twice the weight), so after
-- one turn of the whole wheel the shares are exactly the weights.
--
-- The order repeats with each turn of the wheel. So the first turn is written
-- down, and from then on a pick is one load, unless the wheel is very long.

local ffi = require "ffi"

local floor = math.floor
local setmetatable = setmetatable


local MAX_WHEEL = 1048576
local MAX_PEERS = 65535   -- what fits a mark of the wheel
local LIMIT = 2 ^ 36      -- times a weight this is still exact


local _M = {}
local mt = { __index = _M }


-- before orders peers by their next turn; equal turns go by the number.
local function before(turn, weight, a, b)
    local left, right = turn[a] * weight[b], turn[b] * weight[a]

    return left < right or (left == right and a < b)
end


-- sink moves the peer at a position down to its place. The loop ends after at
-- most log2(size) steps, since the position doubles.
local function sink(heap, turn, weight, at, size)
    local moved = heap[at]

    while true do
        local child = at + at
        if child > size then
            break
        end

        if child < size
            and before(turn, weight, heap[child + 1], heap[child])
        then
            child = child + 1
        end

        if not before(turn, weight, heap[child], moved) then
            break
        end

        heap[at] = heap[child]
        at = child
    end

    heap[at] = moved
end


-- rise moves it up. The position is halved each time.
local function rise(heap, turn, weight, at)
    local moved = heap[at]

    while at > 1 do
        local parent = floor(at / 2)
        if not before(turn, weight, moved, heap[parent]) then
            break
        end

        heap[at] = heap[parent]
        at = parent
    end

    heap[at] = moved
end


-- forget starts a new wheel: after a change of weights.
local function forget(self)
    local short = self.total > 0 and self.total <= MAX_WHEEL
                  and #self.peer <= MAX_PEERS
    self.wheel = short and ffi.new("uint16_t[?]", self.total) or nil
    self.marks = 0
    self.full = false
end


-- place gives a peer its first turn that is not before that of another one,
-- in the order of before().
local function place(self, n, weight, turn, of, other)
    local least = turn * weight
    local mine = 2 * floor(turn * weight / of / 2) - 1
    if mine < 1 then
        mine = 1
    end

    -- The estimate is less than two steps behind.
    for _ = 1, 4 do
        local here = mine * of
        if here > least or (here == least and n > other) then
            break
        end

        mine = mine + 2
    end

    self.weight[n] = weight
    self.turn[n] = mine
    self.total = self.total + weight
    self.size = self.size + 1
    self.heap[self.size] = n
end


-- new takes a list of peers whose weights are whole numbers from 0 to 65,535
-- (see resty.spinguard.check) and a start from 0 up to 1: where on the wheel
-- this worker begins.
function _M.new(peers, start)
    local self = { heap = {}, turn = {}, weight = {}, peer = {},
                   size = 0, total = 0 }
    start = floor((start or 0) * 65536)

    for n, peer in ipairs(peers) do
        self.peer[n] = peer
        self.weight[n] = 0

        if peer.weight > 0 then
            place(self, n, peer.weight, start, 32768, 0)
        end
    end

    for at = floor(self.size / 2), 1, -1 do
        sink(self.heap, self.turn, self.weight, at, self.size)
    end

    forget(self)

    return setmetatable(self, mt)
end


-- rebase moves the time line back by whole turns of the wheel, so that the
-- numbers stay small.
local function rebase(self)
    local first = self.heap[1]
    local wheels = floor(self.turn[first] / (2 * self.weight[first]))

    for at = 1, self.size do
        local n = self.heap[at]
        self.turn[n] = self.turn[n] - 2 * self.weight[n] * wheels
    end
end


local function take(self)
    local heap, turn = self.heap, self.turn
    local n = heap[1]

    turn[n] = turn[n] + 2
    sink(heap, turn, self.weight, 1, self.size)

    if turn[n] > LIMIT then
        rebase(self)
    end

    return n
end


local function mark(self, n)
    local marks = self.marks

    self.wheel[marks] = n
    marks = marks + 1

    if marks == self.total then
        marks = 0
        self.full = true
    end

    self.marks = marks
end


-- find returns the next peer, or nil if none has a weight.
function _M.find(self)
    if self.full then
        local marks = self.marks
        local n = self.wheel[marks]

        marks = marks + 1
        self.marks = marks < self.total and marks or 0

        return self.peer[n]
    end

    if self.size == 0 then
        return nil
    end

    local n = take(self)
    if self.wheel then
        mark(self, n)
    end

    return self.peer[n]
end


local function remove(self, n)
    local heap, size = self.heap, self.size

    for at = 1, size do
        if heap[at] == n then
            heap[at] = heap[size]
            heap[size] = nil
            self.size = size - 1

            if at < size then
                rise(heap, self.turn, self.weight, at)
                sink(heap, self.turn, self.weight, at, self.size)
            end

            break
        end
    end

    self.total = self.total - self.weight[n]
    self.weight[n] = 0
end


-- set changes the weight of the n-th peer, or adds one as the last. The wheel
-- goes on from where it is.
function _M.set(self, n, weight, peer)
    local first = self.heap[1]
    local turn, of = self.turn[first] or 0, self.weight[first] or 1

    if peer then
        self.peer[n] = peer

    elseif self.weight[n] > 0 then
        remove(self, n)
    end

    self.weight[n] = 0
    if weight > 0 then
        place(self, n, weight, turn, of, first or 0)
        rise(self.heap, self.turn, self.weight, self.size)
    end

    forget(self)
end


return _M
