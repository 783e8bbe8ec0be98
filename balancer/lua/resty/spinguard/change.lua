-- What the versions changed that this worker took into use: left where the
-- agent can read it when the worker hangs, as with crumbs. Each worker has a
-- ring of slots of its own and writes one before it builds a picker, so also
-- a picker that hangs while it is built finds its change told.

local ffi = require "ffi"
local layout = require "resty.spinguard.layout"
local sys = require "resty.spinguard.sys"

local ffi_cast = ffi.cast
local ffi_copy = ffi.copy
local ffi_fill = ffi.fill
local sub = string.sub
local worker_id = ngx.worker.id


local SLOTS = layout.CHANGE_SLOTS


local _M = {}


local memory
local area
local at = 0


-- init maps the slots. Called by the master.
function _M.init()
    local err
    memory, err = sys.shared_memory("spinguard-changes", layout.CHANGES_SIZE)
    if not memory then
        return nil, err
    end

    local header = ffi_cast("struct spinguard_changes *", memory.addr)
    header.layout = layout.LAYOUT
    header.area_size = layout.CHANGE_AREA
    header.slot_size = layout.CHANGE_SLOT
    header.areas = layout.CRUMB_SLOTS
    ffi_copy(header.magic, layout.CHANGES_MAGIC, 8)

    return true
end


-- claim takes the area of this worker.
function _M.claim()
    local id = worker_id()
    if not memory or not id or id >= layout.CRUMB_SLOTS then
        return
    end

    local base = ffi_cast("char *", memory.addr) + layout.CHANGES_HEADER
    area = ffi_cast("struct spinguard_change *",
                    base + id * layout.CHANGE_AREA)
    at = 0
end


local function text(field, size, value)
    value = sub(value or "", 1, size - 1)
    ffi_fill(field, size)
    ffi_copy(field, value, #value)

    return #value
end


-- tell writes what a version changed. The size of the text is stored last.
function _M.tell(name, version)
    if not area or not version.changed then
        return
    end

    local slot = area[at]
    at = (at + 1) % SLOTS

    slot.size = 0
    slot.version = version.version
    slot.from = version.changed.from
    slot.at = version.at
    text(slot.upstream, 64, name)
    text(slot.by, 64, version.by)
    ffi_copy(slot.digest, version.digest, 16)
    slot.size = text(slot.text, layout.CHANGE_TEXT, version.changed.text)
end


return _M
