-- Weights as registries and people write them, most of them wrong.

local cjson = require "cjson.safe"


local _M = {}


local nan = 0 / 0
local LUA = { nan, 1 / 0, -1 / 0, -1, 0.1, 65536, 2 ^ 53 + 2, 1e300,
              "nan", "NaN", "inf", "Infinity", "-inf", "1e999", "0x10",
              "abc", "", " 1", "-0.5", true, false, {}, print,
              coroutine.create(print), "1\0", -0.0, "00", "5", "0", 0 }
local JSON = { "null", "true", "false", "[]", "{}", "[1]", '{"a":1}', "-1",
               "-0", "0", "1e3", "1e-3", "1E400", "0.5", "65535", "65536",
               "18446744073709551616", '"0"', '"7"', '" 7"', '"-1"',
               '"NaN"', '"Infinity"', '"1e3"', '"\\u0000"', '"\\ud800"',
               "NaN", "Infinity", "0x10", "01" }


-- weight returns one; upto(n) returns a whole number from 1 to n.
function _M.weight(upto)
    local kind = upto(12)
    if kind <= 6 then
        return upto(100)
    end

    if kind == 7 then
        return upto(65535)
    end

    if kind == 8 then
        return "" .. upto(50)
    end

    if kind <= 10 then
        return LUA[upto(#LUA)]
    end

    -- What a JSON parser makes of a text, or the text where it is none.
    local text = JSON[upto(#JSON)]
    local list = cjson.decode("[" .. text .. "]")

    return list and list[1] or text
end


return _M
