-- Addresses of peers: IPv4, IPv6 and unix paths, checked and in one form.

local concat = table.concat
local floor = math.floor
local format = string.format
local ipairs = ipairs
local tonumber = tonumber
local type = type


local MAX_ADDRESS = 90


local _M = {}


local function ipv4(host)
    local a, b, c, d = host:match("^(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)"
                                  .. "%.(%d%d?%d?)$")

    -- A leading zero means another number to some who read addresses.
    return a and tonumber(a) < 256 and tonumber(b) < 256
           and tonumber(c) < 256 and tonumber(d) < 256
           and not ("." .. host):find("%.0%d")
end


local function ipv6(host)
    if not host:find("^%x*:[%x:.]*$") or host:find(":::", 1, true) then
        return false
    end

    local groups = 0
    for group in host:gmatch("[^:]+") do
        if #group > 4 and not ipv4(group) then
            return false
        end

        groups = groups + (#group > 4 and 2 or 1)
    end

    local first, last = host:find("::", 1, true)
    if not first then
        return groups == 8
    end

    return groups < 8 and not host:find("::", last + 1, true)
end


local function last_groups(group)
    local a, b, c, d = group:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$")

    return format("%x:%x", a * 256 + b, c * 256 + d)
end


-- plain writes an IPv6 address in one way: "::1" is "0:0:0:0:0:0:0:1".
function _M.plain(host)
    local head, tail = host:match("^(.-)::(.*)$")
    local sides = {}

    for i, side in ipairs({ head or host, tail or "" }) do
        local groups = {}
        side = side:gsub("[%d]+%.[%d.]+$", last_groups)

        for group in side:gmatch("%x+") do
            groups[#groups + 1] = format("%x", tonumber(group, 16))
        end

        sides[i] = groups
    end

    local all = sides[1]
    for _ = 1, 8 - #all - #sides[2] do
        all[#all + 1] = "0"
    end

    for _, group in ipairs(sides[2]) do
        all[#all + 1] = group
    end

    return concat(all, ":")
end


local function check_port(port)
    if type(port) == "string" and port:find("^%d+$") then
        port = tonumber(port)
    end

    if type(port) ~= "number" or port ~= floor(port) or port < 1
        or port > 65535
    then
        return nil
    end

    return port
end


-- split takes "10.0.0.1:80", "[::1]:80" or "unix:/path" apart.
local function split(address)
    if address:find("^unix:/") then
        return address, 0
    end

    local host, port = address:match("^%[([^%]]+)%]:(%d+)$")
    if not host then
        host, port = address:match("^([^:]+):(%d+)$")
    end

    return host, port
end


-- endpoint returns host, port and the address in one form. Host names are
-- refused: the balancer phase cannot resolve them.
function _M.endpoint(peer)
    local host, port = peer.host, peer.port

    if peer.address ~= nil then
        if type(peer.address) ~= "string" then
            return nil
        end

        host, port = split(peer.address)
    end

    if type(host) ~= "string" or #host > MAX_ADDRESS then
        return nil
    end

    if host:find("^unix:/") then
        if host:find("[^\33-\126]") then
            return nil
        end

        return host, 0, host
    end

    port = check_port(port)
    if not port then
        return nil
    end

    if ipv4(host) then
        return host, port, host .. ":" .. port
    end

    if ipv6(host) then
        return "[" .. host .. "]", port, "[" .. host .. "]:" .. port
    end
end


return _M
