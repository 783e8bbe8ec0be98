-- The interface of lua-resty-balancer over the bounded pickers: new, reinit,
-- set, incr, decr, delete, find, so that a user changes one require. Where
-- that library raises or loops, these return nil and what is wrong, and
-- nothing has changed.

local check = require "resty.spinguard.check"
local later = require "resty.spinguard.later"
local mix = require "resty.spinguard.mix"
local numbers = require "resty.spinguard.numbers"
local rotation = require "resty.spinguard.rotation"

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


-- take copies the nodes, checked, into self. The picker is made at the first
-- find: in the worker, where that is, and so at another point in each.
local function take(self, nodes)
    if type(nodes) ~= "table" then
        return nil, "nodes: want a table from id to weight"
    end

    local room = nkeys(nodes)
    local ids, weights, size = new_tab(room, 0), new_tab(room, 0), 0

    for id, weight in pairs(nodes) do
        local number, err = check_node(id, weight)
        if not number then
            return nil, err
        end

        size = size + 1
        if size > check.MAX_PEERS then
            return nil, "nodes: more than " .. check.MAX_PEERS
        end

        ids[size], weights[size] = id, number
    end

    self.ids, self.numbers = ids, false
    self.weights, self.picker = weights, false

    return true
end


-- begin makes the picker. The weights are its own then.
local function begin(self)
    self.picker = self.kind.over(self.ids, self.weights, start())
    self.weights = false

    return self.picker
end


-- numbered returns the numbers of the nodes. Who only picks never needs them.
local function numbered(self)
    self.numbers = self.numbers or numbers.new(self.ids)

    return self.numbers
end


local methods = {}


-- reinit replaces all nodes.
function methods.reinit(self, nodes)
    return take(self, nodes)
end


-- weight_of returns the weight of a number.
local function weight_of(self, n)
    return self.picker and self.picker:weight_of(n) or self.weights[n]
end


-- put puts the weight of a number into force.
local function put(self, n, weight)
    if self.picker then
        self.picker:put(n, weight)
    else
        self.weights[n] = weight
    end
end


-- add gives a number to a node that is not there yet. One that was another
-- node's is settled before: its points on a ring are found by its id.
local function add(self, id, weight)
    if self.numbers.live >= check.MAX_PEERS then
        return nil, "node " .. id .. ": more than " .. check.MAX_PEERS
    end

    if self.picker and self.numbers:spare() then
        self.picker:settle()
    end

    put(self, self.numbers:add(id), weight)

    return true
end


-- change puts a checked weight into force.
local function change(self, id, weight)
    local n = numbered(self):of(id)
    if not n then
        return add(self, id, weight)
    end

    if weight_of(self, n) ~= weight then
        put(self, n, weight)
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

    local n = numbered(self):of(id)
    number = number + (n and weight_of(self, n) or 0)

    if number > MAX_WEIGHT then
        return nil, "node " .. id .. ": weight would be over " .. MAX_WEIGHT
    end

    return change(self, id, number)
end


-- delete removes a node. Without nodes, find returns nil.
function methods.delete(self, id)
    local n = type(id) == "string" and numbered(self):of(id)
    if not n then
        return nil, "node " .. tostring(id) .. ": unknown"
    end

    put(self, n, 0)
    self.numbers:drop(id)

    return true
end


-- decr takes from the weight of a node (default 1). One that has none left is
-- removed.
function methods.decr(self, id, weight)
    local n = type(id) == "string" and numbered(self):of(id)
    if not n then
        return nil, "node " .. tostring(id) .. ": unknown"
    end

    local number, err = check_node(id, weight == nil and 1 or weight)
    if not number then
        return nil, err
    end

    local old = weight_of(self, n)
    if old <= number then
        return methods.delete(self, id)
    end

    return change(self, id, old - number)
end


-- find returns the id of the node to use; the ring wants a key.
function methods.find(self, key)
    local picker = self.picker or begin(self)
    local n = picker:next(key)
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
        local self = setmetatable({ kind = kind, ids = false, numbers = false,
                                    weights = false, picker = false }, mt)
        local ok, err = take(self, nodes)
        if not ok then
            return nil, err
        end

        return self
    end

    return module
end


_M.rotation = rotation
_M.hash = later


return _M
