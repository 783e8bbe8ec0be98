-- Weighted smooth rotation. Each peer has a next turn at (picks + 1/2) /
-- weight on a common time line, and the earliest turn is taken: a heap, so a
-- pick costs at most twice its depth in comparisons whatever the weights are,
-- and after one turn of the whole wheel the shares are exactly the weights.

local floor = math.floor
local setmetatable = setmetatable


local _M = {}
local mt = { __index = _M }


local function before(turn, a, b)
    local left, right = turn[a], turn[b]

    return left < right or (left == right and a < b)
end


-- sink moves the peer at the top to its place. The loop ends after at most
-- log2(size) steps, since the position doubles.
local function sink(heap, turn, at, size)
    local moved = heap[at]

    while true do
        local child = at + at
        if child > size then
            break
        end

        if child < size and before(turn, heap[child + 1], heap[child]) then
            child = child + 1
        end

        if not before(turn, heap[child], moved) then
            break
        end

        heap[at] = heap[child]
        at = child
    end

    heap[at] = moved
end


-- new takes a list of peers whose weights are whole numbers from 0 to 65,535
-- (see resty.spinguard.check) and a start from 0 up to 1: where on the wheel
-- this worker begins.
function _M.new(peers, start)
    local self = { heap = {}, turn = {}, picks = {}, weight = {},
                   peer = {}, size = 0 }
    start = start or 0

    for _, peer in ipairs(peers) do
        if peer.weight > 0 then
            local n = self.size + 1
            local picks = floor(start * peer.weight + 0.5)

            self.size = n
            self.heap[n] = n
            self.peer[n] = peer
            self.weight[n] = peer.weight
            self.picks[n] = picks
            self.turn[n] = (picks + 0.5) / peer.weight
        end
    end

    for at = floor(self.size / 2), 1, -1 do
        sink(self.heap, self.turn, at, self.size)
    end

    return setmetatable(self, mt)
end


-- find returns the next peer, or nil if none has a weight.
function _M.find(self)
    local size = self.size
    if size == 0 then
        return nil
    end

    local heap = self.heap
    local n = heap[1]
    local picks = self.picks[n] + 1

    self.picks[n] = picks
    self.turn[n] = (picks + 0.5) / self.weight[n]
    sink(heap, self.turn, 1, size)

    return self.peer[n]
end


return _M
