-- The interface of lua-resty-balancer over the bounded pickers: new, reinit,
-- set, incr, decr, delete, find, so that a user changes one require. Where
-- that library raises or loops, these return nil and what is wrong, and
-- nothing has changed.

local check = require "resty.spinguard.check"
local mix = require "resty.spinguard.mix"
local numbers = require "resty.spinguard.numbers"

local among = numbers.among
local min = math.min
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


-- take returns a picker of some kind of the nodes, checked. It begins at the
-- first find: in the worker, where that is, and so at another point in each.
local function take(kind, nodes)
    if type(nodes) ~= "table" then
        return nil, "nodes: want a table from id to weight"
    end

    local room = min(nkeys(nodes), check.MAX_PEERS)
    local ids, size, seat = new_tab(room, 0), 0, kind.seat
    local self = kind.blank(ids, room)

    for id, weight in pairs(nodes) do
        local number, err = check_node(id, weight)
        if not number then
            return nil, err
        end

        size = size + 1
        if size > check.MAX_PEERS then
            return nil, "nodes: more than " .. check.MAX_PEERS
        end

        ids[size] = id
        seat(self, size, number)
    end

    return self
end


-- numbered returns the numbers of the nodes. Who only picks never needs them.
local function numbered(self)
    self.numbers = self.numbers or numbers.new(self.list, self.looks)

    return self.numbers
end


-- number_of returns the number of a node, or nil. As long as all stay, and few
-- or seldom asked for, that needs no more than the list.
local function number_of(self, id)
    if self.numbers then
        return self.numbers:of(id)
    end

    local n = among(self.list, id, self.looks)
    if n == false then
        return numbered(self):of(id)
    end

    self.looks = self.looks + 1

    return n
end


local methods = {}


-- reinit replaces all nodes.
function methods.reinit(self, nodes)
    local fresh, err = take(self.kind, nodes)
    if not fresh then
        return nil, err
    end

    for field, value in pairs(fresh) do
        self[field] = value
    end

    return true
end


-- add gives a number to a node that is not there yet. One that was another
-- node's is settled before: its points on a ring are found by its id.
local function add(self, id, weight)
    local all = numbered(self)

    if all.live >= check.MAX_PEERS then
        return nil, "node " .. id .. ": more than " .. check.MAX_PEERS
    end

    if all:spare(id) then
        self.kind.settle(self)
    end

    self.kind.put(self, all:add(id), weight)

    return true
end


-- change puts a checked weight into force.
local function change(self, id, weight)
    local n = number_of(self, id)
    if not n then
        return add(self, id, weight)
    end

    if self.kind.weight_of(self, n) ~= weight then
        self.kind.put(self, n, weight)
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

    local n = number_of(self, id)
    number = number + (n and self.kind.weight_of(self, n) or 0)

    if number > MAX_WEIGHT then
        return nil, "node " .. id .. ": weight would be over " .. MAX_WEIGHT
    end

    return change(self, id, number)
end


-- delete removes a node. Without nodes, find returns nil.
function methods.delete(self, id)
    local n = type(id) == "string" and number_of(self, id)
    if not n then
        return nil, "node " .. tostring(id) .. ": unknown"
    end

    self.kind.put(self, n, 0)
    numbered(self):drop(id)

    return true
end


-- decr takes from the weight of a node (default 1). One that has none left is
-- removed.
function methods.decr(self, id, weight)
    local n = type(id) == "string" and number_of(self, id)
    if not n then
        return nil, "node " .. tostring(id) .. ": unknown"
    end

    local number, err = check_node(id, weight == nil and 1 or weight)
    if not number then
        return nil, err
    end

    local old = self.kind.weight_of(self, n)
    if old <= number then
        return methods.delete(self, id)
    end

    return change(self, id, old - number)
end


-- module returns a module like resty.roundrobin, over one kind of picker. It
-- lacks find, which each has of its own: in a shared one the compiler would
-- favour the kind of picker that it met first.
--
-- A kind has blank(ids, room) for a picker without nodes, which keeps the list
-- of ids as list, and the fields numbers (false) and looks (0); seat, which
-- gives a new number its weight before the first find; weight_of; put, which
-- gives a number another weight, and settle, which ends what put has put off.
function _M.module(kind)
    local module = setmetatable({ kind = kind }, { __index = methods })
    local mt = { __index = module }

    -- new takes a table from id to weight. It returns nil and what is wrong
    -- with it, where lua-resty-balancer raises.
    function module.new(_, nodes)
        local self, err = take(kind, nodes)
        if not self then
            return nil, err
        end

        setmetatable(self, mt)

        return self
    end

    return module
end


_M.start = start
_M.NOBODY = "no node has a weight"


return _M
