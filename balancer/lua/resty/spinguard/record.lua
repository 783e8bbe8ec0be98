-- One version of an upstream as it lies in the shared dict, and its digest.

local cjson = require("cjson.safe").new()

local concat = table.concat
local format = string.format
local insert = table.insert
local md5 = ngx.md5
local sub = string.sub
local tonumber = tonumber
local tostring = tostring
local type = type


local MAX_LINES = 20
local MAX_BRIEF = require("resty.spinguard.layout").CHANGE_TEXT - 32


local _M = {}


-- A weight keeps its type on the way: the string "0" is not the number 0 to
-- a picker that takes weights as they came. JSON has no NaN either.
local function pack_weight(weight)
    if type(weight) == "string" then
        return "s:" .. weight
    end

    return "n:" .. format("%.17g", weight)
end


local function unpack_weight(text)
    local value = sub(text, 3)

    return sub(text, 1, 2) == "s:" and value or tonumber(value)
end


-- digest names what a version holds: 16 hexadecimal characters.
function _M.digest(peers)
    local parts = {}

    for i, peer in ipairs(peers) do
        parts[i] = peer.address .. " " .. pack_weight(peer.weight)
    end

    return sub(md5(concat(parts, "\n")), 1, 16)
end


function _M.encode(record)
    local peers = {}

    for i, peer in ipairs(record.peers) do
        peers[i] = { peer.host, peer.port, peer.address,
                     pack_weight(peer.weight) }
    end

    return cjson.encode({
        version = record.version,
        digest = record.digest,
        by = record.by,
        at = record.at,
        force = record.force,
        history = record.history,
        dropped = record.dropped,
        changed = record.changed,
        peers = peers,
    })
end


function _M.decode(data)
    local record, err = cjson.decode(data)
    if not record then
        return nil, err
    end

    for i, peer in ipairs(record.peers) do
        record.peers[i] = {
            host = peer[1],
            port = peer[2],
            address = peer[3],
            weight = unpack_weight(peer[4]),
        }
    end

    return record
end


-- show returns a weight the way a person reads it in a difference.
function _M.show(weight)
    if type(weight) == "string" then
        return '"' .. weight .. '"'
    end

    return tostring(weight)
end


-- changes tells what the new version changed, as a list of sentences such as
-- `10.0.0.7:80 weight 5 -> "0"`.
function _M.changes(old, new)
    local before, after, lines = {}, {}, {}

    for _, peer in ipairs(old and old.peers or {}) do
        before[peer.address] = peer
    end

    for _, peer in ipairs(new.peers) do
        after[peer.address] = true
        local was = before[peer.address]

        if not was then
            lines[#lines + 1] = peer.address .. " added, weight "
                                .. _M.show(peer.weight)

        elseif pack_weight(was.weight) ~= pack_weight(peer.weight) then
            lines[#lines + 1] = peer.address .. " weight "
                                .. _M.show(was.weight) .. " -> "
                                .. _M.show(peer.weight)
        end
    end

    for _, peer in ipairs(old and old.peers or {}) do
        if not after[peer.address] then
            lines[#lines + 1] = peer.address .. " removed, weight "
                                .. _M.show(peer.weight)
        end
    end

    return lines
end


-- brief returns the changes as a text of a bounded size.
function _M.brief(old, new)
    local lines = _M.changes(old, new)
    local kept, size = {}, 0

    for i, line in ipairs(lines) do
        size = size + #line + 1
        if size > MAX_BRIEF or i > MAX_LINES then
            kept[i] = "... and " .. #lines - i + 1 .. " more"
            break
        end

        kept[i] = line
    end

    if #new.peers == 0 then
        insert(kept, 1, "emptied by force")
    end

    return #kept > 0 and concat(kept, "\n") or "the order of the peers"
end


return _M
