-- The interface of lua-resty-balancer over the bounded pickers: new, reinit,
-- set, incr, decr, delete, find, so that a user changes one require. Where
-- that library raises or loops, these return nil and what is wrong, and
-- nothing has changed.

local check = require "resty.spinguard.check"
local hash = require "resty.spinguard.hash"
local mix = require "resty.spinguard.mix"
local rotation = require "resty.spinguard.rotation"

local ipairs = ipairs
local ngx_now = ngx.now
local pairs = pairs
local setmetatable = setmetatable
local sort = table.sort
local tostring = tostring
local type = type
local worker_pid = ngx.worker.pid


local MAX_WEIGHT = 65535
local MAX_ID = 255
local MOVED = 4     -- and an eighth: so many changes are taken over one by one


local _M = {}


local random, seeded


-- start returns where a picker begins: elsewhere in each worker, also if it
-- was made before the workers were.
local function start()
    local pid = worker_pid()

    if seeded ~= pid then
        random, seeded = mix.generator(pid * 7919 + ngx_now() * 1000), pid
    end

    return random()
end


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


-- take copies the nodes, checked, and returns how many.
local function take(nodes)
    if type(nodes) ~= "table" then
        return nil, "nodes: want a table from id to weight"
    end

    local peers, size = {}, 0

    for id, weight in pairs(nodes) do
        local number, err = check_node(id, weight)
        if not number then
            return nil, err
        end

        peers[id] = { address = id, weight = number, n = 0 }
        size = size + 1
        if size > check.MAX_PEERS then
            return nil, "nodes: more than " .. check.MAX_PEERS
        end
    end

    return peers, size
end


local function rebuild(self)
    local ids, peers = {}, {}

    for id in pairs(self.nodes) do
        ids[#ids + 1] = id
    end

    sort(ids)

    for n, id in ipairs(ids) do
        local peer = self.nodes[id]
        peer.n = n
        peers[n] = peer
    end

    self.peers = peers
    self.picker = self.kind.new(peers, start())
    self.dead, self.stale = 0, false
end


-- refresh brings the picker up to date: at the first find after a change, so
-- that many changes cost as much as one.
local function refresh(self)
    local moved = self.moved
    local few = not self.stale and #moved <= MOVED + #self.peers / 8
    local done = few and self.picker:change(moved)

    for i = #moved, 1, -1 do
        self.peers[moved[i]].moved = nil
        moved[i] = nil
    end

    if not done then
        rebuild(self)
    end
end


local methods = {}


-- reinit replaces all nodes.
function methods.reinit(self, nodes)
    local peers, size = take(nodes)
    if not peers then
        return nil, size
    end

    self.nodes, self.size = peers, size
    self.moved = {}
    self.stale = true

    return true
end


-- add makes a node that is not there yet, without a weight.
local function add(self, id)
    if self.size >= check.MAX_PEERS then
        return nil, "node " .. id .. ": more than " .. check.MAX_PEERS
    end

    local peer = { address = id, weight = 0, n = #self.peers + 1 }
    self.nodes[id] = peer
    self.size = self.size + 1

    if not self.stale then
        self.peers[peer.n] = peer
    end

    return peer
end


-- change puts a checked weight into force.
local function change(self, id, weight)
    local peer, err = self.nodes[id]

    if not peer then
        peer, err = add(self, id)
        if not peer then
            return nil, err
        end

    elseif peer.weight == weight then
        return true
    end

    peer.weight = weight

    if not peer.moved and not self.stale then
        peer.moved = true
        self.moved[#self.moved + 1] = peer.n
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
    self.size = self.size - 1
    self.dead = self.dead + 1

    if self.dead > #self.peers / 2 + 16 then
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
    if self.stale or self.moved[1] then
        refresh(self)
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
                                    moved = {}, dead = 0 }, mt)
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
