-- What the versions changed that this worker took into use: left where the
-- agent can read it when the worker hangs, as with crumbs. Each worker has a
-- ring of slots of its own and writes one before it builds a picker, so also
-- a picker that hangs while it is built finds its change told.

local ffi = require "ffi"
local layout = require "resty.spinguard.layout"
local slots = require "resty.spinguard.slots"

local ffi_copy = ffi.copy
local text = slots.text


local SLOTS = layout.CHANGE_SLOTS


local _M = {}


local memory
local area
local at = 0


-- init maps the areas. Called by the master.
function _M.init()
    local err
    memory, err = slots.new("spinguard-changes", layout.CHANGES_SIZE,
                            "struct spinguard_changes *",
                            layout.CHANGES_MAGIC, {
                                layout = layout.LAYOUT,
                                area_size = layout.CHANGE_AREA,
                                slot_size = layout.CHANGE_SLOT,
                                areas = layout.CRUMB_SLOTS,
                            }, layout.CHANGES_HEADER, layout.CHANGE_AREA)

    return memory ~= nil, err
end


-- claim takes the area of this worker.
function _M.claim()
    area = memory and memory:claim("struct spinguard_change *")
    at = 0
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
