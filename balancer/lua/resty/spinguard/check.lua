-- The input check: whatever a publisher sends becomes a plain list of peers,
-- or is refused with the peer and the reason. Nothing behind this point meets
-- a weight that is not a whole number from 0 to 65,535.
--
-- A refusal is nil, message, reason; the reason is a word to count by.

local address_of = require "resty.spinguard.address"

local floor = math.floor
local null = ngx.null
local ipairs = ipairs
local pairs = pairs
local sort = table.sort
local tonumber = tonumber
local tostring = tostring
local type = type


local MAX_WEIGHT = 65535
local MAX_PEERS = 20000
local NAME_MAX = require("resty.spinguard.layout").NAME_MAX
local FIELDS = { address = true, host = true, port = true, weight = true }


local _M = {
    MAX_PEERS = MAX_PEERS,

    -- Every word that a refusal is counted by.
    REASONS = {
        "address", "all_zero", "body", "busy", "dict_full", "duplicate",
        "empty", "json", "min_ratio", "name", "peer_type", "peers_type",
        "too_big", "too_many", "unknown_field", "weight_fraction",
        "weight_infinite", "weight_nan", "weight_negative", "weight_range",
        "weight_type",
    },
}


local function show(value)
    if type(value) == "string" then
        value = #value > 40 and value:sub(1, 40) .. "..." or value
        return '"' .. value:gsub("[%c\"\128-\255]", "?") .. '"'
    end

    if value == null then
        return "null"
    end

    if type(value) == "number" and value ~= value then
        return "NaN"
    end

    return type(value) == "table" and "a table" or tostring(value)
end


-- name checks the name of an upstream.
function _M.name(name)
    if type(name) ~= "string" or name == "" then
        return nil, "upstream name: not a string", "name"
    end

    if #name > NAME_MAX or name:find("[^%w._:@-]") then
        return nil, "upstream name " .. show(name) .. ": 1 to " .. NAME_MAX
                    .. " letters, digits or ._:@- are allowed", "name"
    end

    return name
end


-- weight turns a weight into a whole number once, or says what is wrong.
function _M.weight(value)
    local number = value

    if type(value) == "string" then
        if not value:find("^%d+$") then
            return nil, "is not a whole number", "weight_type"
        end

        number = tonumber(value)
    end

    if type(number) ~= "number" then
        return nil, "is not a number", "weight_type"
    end

    if number ~= number then
        return nil, "is not a number", "weight_nan"
    end

    if number == 1 / 0 or number == -1 / 0 then
        return nil, "is not finite", "weight_infinite"
    end

    if number < 0 then
        return nil, "is negative", "weight_negative"
    end

    if number ~= floor(number) then
        return nil, "is not a whole number", "weight_fraction"
    end

    if number > MAX_WEIGHT then
        return nil, "is over " .. MAX_WEIGHT, "weight_range"
    end

    return number
end


local function label(peer, index)
    if type(peer) == "table" then
        local address = peer.address
        if type(address) ~= "string" and type(peer.host) == "string" then
            address = peer.host .. ":" .. tostring(peer.port)
        end

        if type(address) == "string" then
            return "peer " .. show(address):gsub('"', "")
        end
    end

    return "peer " .. index
end


local function check_fields(peer, who)
    local strange

    for field in pairs(peer) do
        if not FIELDS[field] then
            field = show(field)
            strange = (not strange or field < strange) and field or strange
        end
    end

    if strange then
        return nil, who .. ": unknown field " .. strange, "unknown_field"
    end

    return true
end


local function check_peer(peer, index, raw)
    if type(peer) == "string" then
        peer = { address = peer }
    end

    if type(peer) ~= "table" then
        return nil, "peer " .. index .. ": " .. show(peer)
                    .. " is neither an address nor an object", "peer_type"
    end

    local who = label(peer, index)
    local ok, err, reason = check_fields(peer, who)
    if not ok then
        return nil, err, reason
    end

    local host, port, address = address_of.endpoint(peer)
    if not host then
        return nil, who .. ": not an address with a port, such as "
                    .. "10.0.0.1:80, [::1]:80 or unix:/path", "address"
    end

    local weight = peer.weight
    if weight == nil then
        weight = 1
    end

    if not raw then
        weight, err, reason = _M.weight(weight)
        if not weight then
            return nil, who .. ": weight " .. show(peer.weight) .. " " .. err,
                   reason
        end

    elseif type(weight) ~= "number" and type(weight) ~= "string" then
        return nil, who .. ": weight " .. show(weight)
                    .. " is neither a number nor a string", "weight_type"
    end

    return { address = address, host = host, port = port, weight = weight }
end


-- as_list accepts a list of peers, or a map from address to weight.
local function as_list(peers)
    local list, count = {}, 0

    for key, value in pairs(peers) do
        count = count + 1
        if count > MAX_PEERS then
            return nil, "more than " .. MAX_PEERS .. " peers", "too_many"
        end

        if type(key) == "string" then
            list[count] = { address = key, weight = value }

        elseif type(key) ~= "number" or peers[count] == nil then
            return nil, "peers: neither a list nor a map from address to "
                        .. "weight", "peers_type"
        else
            list[count] = peers[count]
        end
    end

    return list
end


local function all_zero(list)
    for _, peer in ipairs(list) do
        if peer.weight ~= 0 then
            return false
        end
    end

    return true
end


-- peers checks a whole list and returns it sorted by address, so that the
-- same peers are the same version. With raw, weights and order of a list stay
-- as they came: for a picker that is the user's own. Forced, the list may be
-- empty.
function _M.peers(peers, raw, force)
    if type(peers) ~= "table" then
        return nil, "peers: " .. show(peers) .. " is not a list",
               "peers_type"
    end

    local list, err, reason = as_list(peers)
    if not list then
        return nil, err, reason
    end

    if #list == 0 then
        if force then
            return list
        end

        return nil, "peers: the list is empty; publish with force if that is "
                    .. "meant", "empty"
    end

    local known = {}

    for i, peer in ipairs(list) do
        local checked
        checked, err, reason = check_peer(peer, i, raw)
        if not checked then
            return nil, err, reason
        end

        local same = checked.address
        if checked.host:sub(1, 1) == "[" then
            same = address_of.plain(checked.host:sub(2, -2)) .. " "
                   .. checked.port
        end

        if known[same] then
            return nil, "peer " .. checked.address .. ": is there twice",
                   "duplicate"
        end

        known[same] = true
        list[i] = checked
    end

    if not raw and all_zero(list) then
        return nil, "peers: every weight is 0, nobody would be left",
               "all_zero"
    end

    if not raw or peers[1] == nil then
        sort(list, function(a, b) return a.address < b.address end)
    end

    return list
end


return _M
