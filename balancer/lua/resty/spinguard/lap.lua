-- Where in a lap the turns of a peer are: as many as its weight, spread evenly
-- over it. Times are from 0 up to 1 of a lap. A lap that begins at some time
-- is divided into as many slots as all peers have turns, and one more for what
-- is at that time again.

local floor = math.floor


local GOLDEN = 0.6180339887498949
-- What sums of times are off by, at most: of a turn, and of a slot in parts of
-- the lap.
local TURN = 1e-10
local SLOT = 1e-14


local _M = {}


-- offset returns how far the first turn of a peer is behind a time, in parts
-- of the way between its turns: 1 for a turn that was taken at that time. So
-- were those of the numbers up to one; the turns of some peers are at the same
-- time. Else they are at other times for each number, so that peers of equal
-- weight do not come in a row.
function _M.offset(n, weight, time, number)
    local phase = n * GOLDEN
    phase = phase - floor(phase)

    local now = time * weight - phase
    local offset = floor(now + TURN) + 1 - now

    return (offset < 1 - TURN or n <= number) and offset or 0
end


-- slot_of returns in which slot of a lap a turn of a peer is; turns count from
-- 0.
function _M.slot_of(turn, offset, weight, total)
    return floor((turn + offset) / weight * total + total * SLOT)
end


-- turn_in returns which turn of a peer is in a slot: the estimate is off by
-- less than two.
function _M.turn_in(slot, offset, weight, total)
    local turn = floor(slot / total * weight - offset) - 1
    turn = turn > 0 and turn or 0

    for k = turn, turn + 2 do
        if _M.slot_of(k, offset, weight, total) == slot then
            return k
        end
    end

    return turn + 3
end


return _M
