-- Numbers that look random: hashes for the ring, and a generator that does
-- not share its state with math.random of the user. Exact in doubles, so that
-- all workers agree, JIT or not.

local bit = require "bit"

local bxor = bit.bxor
local floor = math.floor
local rshift = bit.rshift


local TWO_32 = 4294967296
local PRIME = 2147483647


local _M = {}


-- multiply modulo 2^32: the halves keep the products under 2^53.
local function multiply(a, b)
    local low = a % 65536
    local high = (a - low) / 65536

    return (low * b + high * b % 65536 * 65536) % TWO_32
end


-- hash spreads a 32-bit number over all 32 bits.
function _M.hash(x)
    x = x % TWO_32
    x = bxor(x, rshift(x, 16)) % TWO_32
    x = multiply(x, 0x85ebca6b)
    x = bxor(x, rshift(x, 13)) % TWO_32
    x = multiply(x, 0xc2b2ae35)

    return bxor(x, rshift(x, 16)) % TWO_32
end


-- generator returns a function that gives numbers from 0 up to 1.
function _M.generator(seed)
    local x = floor(seed) % (PRIME - 1) + 1

    return function()
        x = x * 16807 % PRIME

        return (x - 1) / (PRIME - 1)
    end
end


return _M
