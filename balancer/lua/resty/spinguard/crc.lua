-- CRC-32 of strings: the values of ngx.crc32_short and ngx.crc32_long. Those
-- end in a tail call of a C function, at which LuaJIT gives up if it begins a
-- trace with them; after some tries it never compiles again what calls them.
-- As parts of larger traces they are compiled, so it depends on what is called
-- first and most, and shows after a hundred thousand calls.

local ffi = require "ffi"

local C = ffi.C
local ngx = ngx
local pcall = pcall


local _M = {}


-- native returns a function of the C code of lua-nginx-module, or nil.
local function native(name)
    local ok, f = pcall(function()
        ffi.cdef("unsigned int " .. name
                 .. "(const unsigned char *src, size_t len);")

        return C[name]
    end)

    return ok and f or nil
end


local short = native("ngx_http_lua_ffi_crc32_short")
local long = native("ngx_http_lua_ffi_crc32_long")


-- short is the faster one for up to some 60 bytes.
function _M.short(text)
    local sum = short(text, #text)

    return sum
end


function _M.long(text)
    local sum = long(text, #text)

    return sum
end


if not short or not long then
    _M.short, _M.long = ngx.crc32_short, ngx.crc32_long
end


return _M
