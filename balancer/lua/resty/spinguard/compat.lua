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
local pcall = pcall
local setmetatable = setmetatable
local tostring = tostring
local type = type
local worker_pid = ngx.worker.pid


local has_new, new_tab = pcall(require, "table.new")
local has_nkeys, nkeys = pcall(require, "table.nkeys")
if not has_new then
    new_tab = function() return {} end
end
if not has_nkeys then
    nkeys = function() return 0 end
end


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


-- take copies the nodes, checked, into self and gives them numbers.
local function take(self, nodes)
    if type(nodes) ~= "table" then
        return nil, "nodes: want a table from id to weight"
    end

    local room = nkeys(nodes)
    local index, ids, weights = new_tab(0, room), new_tab(room, 0),
                                new_tab(room, 0)
    local size = 0

    for id, weight in pairs(nodes) do
        local number, err = check_node(id, weight)
        if not number then
            return nil, err
        end

        size = size + 1
        if size > check.MAX_PEERS then
            return nil, "nodes: more than " .. check.MAX_PEERS
        end

        index[id], ids[size], weights[size] = size, id, number
    end

    self.index, self.ids, self.weight = index, ids, weights
    self.size, self.dead = size, 0
    self.moved, self.value = {}, {}
    self.stale, self.fresh = true, false

    return true
end


-- settle puts what has changed into the weights: for a new picker.
local function settle(self)
    for n, weight in pairs(self.value) do
        self.weight[n] = weight
    end

    self.moved, self.value = {}, {}
    self.stale, self.fresh = true, false
end


-- compact gives new numbers, without those of nodes that were deleted.
local function compact(self)
    local ids, weights, size = {}, {}, 0

    for n, id in ipairs(self.ids) do
        if self.index[id] == n then
            size = size + 1
            ids[size], weights[size] = id, self.weight[n]
        end
    end

    for n, id in ipairs(ids) do
        self.index[id] = n
    end

    self.ids, self.weight, self.dead = ids, weights, 0
end


-- refresh brings the picker up to date: at the first find after a change, so
-- that many changes cost as much as one.
local function refresh(self)
    local moved, value = self.moved, self.value
    local few = not self.stale and #moved <= MOVED + #self.ids / 8

    if few and self.picker:change(moved, value) then
        for i = #moved, 1, -1 do
            value[moved[i]] = nil
            moved[i] = nil
        end
    else
        if moved[1] then
            settle(self)
        end

        if self.dead > 0 then
            compact(self)
        end

        self.picker = self.kind.over(self.ids, self.weight, start())
        self.stale = false
    end

    self.fresh = true
end


local methods = {}


-- reinit replaces all nodes.
function methods.reinit(self, nodes)
    return take(self, nodes)
end


-- weight_of returns the weight of a node, 0 if there is none.
local function weight_of(self, id)
    local n = self.index[id]

    return n and (self.value[n] or self.weight[n]) or 0
end


-- add gives a number to a node that is not there yet.
local function add(self, id)
    if self.size >= check.MAX_PEERS then
        return nil, "node " .. id .. ": more than " .. check.MAX_PEERS
    end

    local n = #self.ids + 1
    self.index[id], self.ids[n], self.weight[n] = n, id, 0
    self.size = self.size + 1

    return n
end


-- change puts a checked weight into force.
local function change(self, id, weight)
    local n, err = self.index[id]

    if not n then
        n, err = add(self, id)
        if not n then
            return nil, err
        end
    end

    local value = self.value
    local now = value[n] or self.weight[n]
    if now == weight then
        return true
    end

    if value[n] == nil then
        self.moved[#self.moved + 1] = n
    end

    value[n] = weight
    self.fresh = false

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

    number = number + weight_of(self, id)

    if number > MAX_WEIGHT then
        return nil, "node " .. id .. ": weight would be over " .. MAX_WEIGHT
    end

    return change(self, id, number)
end


-- delete removes a node. Without nodes, find returns nil.
function methods.delete(self, id)
    if not self.index[id] then
        return nil, "node " .. tostring(id) .. ": unknown"
    end

    change(self, id, 0)
    self.index[id] = nil
    self.size = self.size - 1
    self.dead = self.dead + 1

    if self.dead > #self.ids / 2 + 16 then
        settle(self)
        compact(self)
    end

    return true
end


-- decr takes from the weight of a node (default 1). One that has none left is
-- removed.
function methods.decr(self, id, weight)
    if not self.index[id] then
        return nil, "node " .. tostring(id) .. ": unknown"
    end

    local number, err = check_node(id, weight == nil and 1 or weight)
    if not number then
        return nil, err
    end

    local old = weight_of(self, id)
    if old <= number then
        return methods.delete(self, id)
    end

    return change(self, id, old - number)
end


-- find returns the id of the node to use; the ring wants a key.
function methods.find(self, key)
    if not self.fresh then
        refresh(self)
    end

    local n = self.picker:next(key)
    if not n then
        return nil, "no node has a weight"
    end

    return self.ids[n]
end


-- module returns a module like resty.roundrobin, over one kind of picker.
function _M.module(kind)
    local module = setmetatable({}, { __index = methods })
    local mt = { __index = module }

    -- new takes a table from id to weight. It returns nil and what is wrong
    -- with it, where lua-resty-balancer raises.
    function module.new(_, nodes)
        local self = setmetatable({ kind = kind }, mt)
        local ok, err = take(self, nodes)
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
