-- The interface of lua-resty-balancer over the bounded pickers: new, reinit,
-- set, incr, decr, delete, find, so that a user changes one require. Where
-- that library raises or loops, these return nil and what is wrong, and
-- nothing has changed.

local check = require "resty.spinguard.check"
local hash = require "resty.spinguard.hash"
local mix = require "resty.spinguard.mix"
local rotation = require "resty.spinguard.rotation"

local pairs = pairs
local setmetatable = setmetatable
local sort = table.sort
local tostring = tostring
local type = type


local MAX_WEIGHT = 65535
local MAX_ID = 255


local _M = {}


local random = mix.generator(ngx.worker.pid() * 7919 + ngx.now() * 1000)


local function check_node(id, weight)
    if type(id) ~= "string" or id == "" or #id > MAX_ID then
        return nil, "node " .. tostring(id) .. ": want a string of 1 to "
                    .. MAX_ID .. " bytes"
    end

    local number, err = check.weight(weight)
    if not number then
        return nil, "node " .. id .. ": weight " .. tostring(weight) .. " "
                    .. err
    end

    return number
end


-- take copies the nodes, checked, as peers sorted by id.
local function take(nodes)
    if type(nodes) ~= "table" then
        return nil, "nodes: want a table from id to weight"
    end

    local peers = {}

    for id, weight in pairs(nodes) do
        local number, err = check_node(id, weight)
        if not number then
            return nil, err
        end

        peers[#peers + 1] = { address = id, weight = number }
        if #peers > check.MAX_PEERS then
            return nil, "nodes: more than " .. check.MAX_PEERS
        end
    end

    sort(peers, function(a, b) return a.address < b.address end)

    return peers
end


local function rebuild(self)
    local peers = {}

    for _, peer in pairs(self.nodes) do
        peers[#peers + 1] = peer
    end

    sort(peers, function(a, b) return a.address < b.address end)

    for n, peer in ipairs(peers) do
        peer.n = n
    end

    self.peers = peers
    self.picker = self.kind.new(peers, random())
    self.stale = false
end


local methods = {}


-- reinit replaces all nodes.
function methods.reinit(self, nodes)
    local peers, err = take(nodes)
    if not peers then
        return nil, err
    end

    self.nodes = {}
    for _, peer in ipairs(peers) do
        self.nodes[peer.address] = peer
    end

    rebuild(self)

    return true
end


-- change puts a checked weight into force. Rotations change in place; a ring
-- is built anew at the next find.
local function change(self, id, weight)
    local peer = self.nodes[id]
    local fresh = not peer

    if fresh then
        peer = { address = id, weight = 0, n = #self.peers + 1 }
        self.nodes[id] = peer
    end

    if peer.weight == weight and not fresh then
        return true
    end

    peer.weight = weight

    if self.kind == rotation and not self.stale then
        if fresh then
            self.peers[peer.n] = peer
        end

        self.picker:set(peer.n, weight, fresh and peer or nil)
    else
        self.stale = true
    end

    return true
end


-- set gives a node its weight (default 1); a new one is added.
function methods.set(self, id, weight)
    local number, err = check_node(id, weight == nil and 1 or weight)
    if not number then
        return nil, err
    end

    return change(self, id, number)
end


-- incr adds to the weight of a node (default 1); a new one begins at 0.
function methods.incr(self, id, weight)
    local number, err = check_node(id, weight == nil and 1 or weight)
    if not number then
        return nil, err
    end

    local peer = self.nodes[id]
    number = number + (peer and peer.weight or 0)

    if number > MAX_WEIGHT then
        return nil, "node " .. id .. ": weight would be over " .. MAX_WEIGHT
    end

    return change(self, id, number)
end


-- delete removes a node. Without nodes, find returns nil.
function methods.delete(self, id)
    local peer = self.nodes[id]
    if not peer then
        return nil, "node " .. tostring(id) .. ": unknown"
    end

    change(self, id, 0)
    self.nodes[id] = nil
    self.dead = self.dead + 1

    if self.dead > #self.peers / 2 + 16 then
        self.dead = 0
        self.stale = true
    end

    return true
end


-- decr takes from the weight of a node (default 1). One that has none left is
-- removed.
function methods.decr(self, id, weight)
    local peer = self.nodes[id]
    if not peer then
        return nil, "node " .. tostring(id) .. ": unknown"
    end

    local number, err = check_node(id, weight == nil and 1 or weight)
    if not number then
        return nil, err
    end

    if peer.weight <= number then
        return methods.delete(self, id)
    end

    return change(self, id, peer.weight - number)
end


local function found(peer)
    if not peer then
        return nil, "no node has a weight"
    end

    return peer.address
end


-- find returns the id of the node to use; the ring wants a key.
function methods.find(self, key)
    if self.stale then
        rebuild(self)
    end

    return found(self.picker:find(key))
end


-- module returns a module like resty.roundrobin, over one kind of picker.
function _M.module(kind)
    local module = setmetatable({}, { __index = methods })
    local mt = { __index = module }

    -- new takes a table from id to weight. It returns nil and what is wrong
    -- with it, where lua-resty-balancer raises.
    function module.new(_, nodes)
        local self = setmetatable({ kind = kind, nodes = {}, peers = {},
                                    dead = 0 }, mt)
        local ok, err = self:reinit(nodes)
        if not ok then
            return nil, err
        end

        return self
    end

    return module
end


_M.rotation = rotation
_M.hash = hash


return _M
