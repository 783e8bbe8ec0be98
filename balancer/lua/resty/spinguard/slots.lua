-- Memory with a slot for each worker, in which the agent reads what a worker
-- did last even if that never comes back. The master maps it before it forks;
-- each generation of workers has its own.

local ffi = require "ffi"
local layout = require "resty.spinguard.layout"
local sys = require "resty.spinguard.sys"

local ffi_cast = ffi.cast
local ffi_copy = ffi.copy
local ffi_fill = ffi.fill
local sub = string.sub
local worker_id = ngx.worker.id


local _M = {}
local mt = { __index = _M }


-- new maps memory under a name, writes the fields of its header (a struct that
-- begins with the magic) and returns it, or nil and why not. Slots of a size
-- follow at an offset.
function _M.new(name, total, struct, magic, fields, offset, size)
    local memory, err = sys.shared_memory(name, total)
    if not memory then
        return nil, err
    end

    local header = ffi_cast(struct, memory.addr)
    for field, value in pairs(fields) do
        header[field] = value
    end

    ffi_copy(header.magic, magic, 8)

    return setmetatable({ memory = memory, offset = offset, size = size }, mt)
end


-- claim returns the slot of this worker as a pointer, or nil and why not. A
-- respawned worker has the id of the dead one, and so its slot.
function _M.claim(self, struct)
    local id = worker_id()
    if not id then
        return nil, "not a worker"
    end

    if id >= layout.CRUMB_SLOTS then
        return nil, "worker " .. id .. ": only " .. layout.CRUMB_SLOTS
                    .. " slots"
    end

    return ffi_cast(struct, ffi_cast("char *", self.memory.addr)
                            + self.offset + id * self.size)
end


-- text writes a string into a field, cut and padded with zero bytes, and
-- returns its length.
function _M.text(field, size, value)
    value = sub(value or "", 1, size - 1)
    ffi_fill(field, size)
    ffi_copy(field, value, #value)

    return #value
end


return _M
