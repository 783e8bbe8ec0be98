-- Crumbs: what a worker is about to do, left where the agent can read it even
-- while the worker never comes back. One slot a worker, in memory that the
-- master maps before it forks; so each generation of workers has its own.

local ffi = require "ffi"
local layout = require "resty.spinguard.layout"
local sys = require "resty.spinguard.sys"

local ffi_cast = ffi.cast
local ffi_copy = ffi.copy
local ffi_fill = ffi.fill
local worker_id = ngx.worker.id
local worker_pid = ngx.worker.pid


local IDLE = layout.PHASE_IDLE
local BUILD = layout.PHASE_BUILD
local PICK = layout.PHASE_PICK


local _M = {}


-- Until a worker claims its slot, and where there is no crumb file, the
-- stores go here: so the pick needs no branch.
local nowhere = ffi.new("struct spinguard_slot")
local slot = nowhere
local last
local memory


-- init maps the slots. Called by the master.
function _M.init()
    local err
    memory, err = sys.shared_memory("spinguard-crumbs", layout.CRUMB_SIZE)
    if not memory then
        return nil, err
    end

    local header = ffi_cast("struct spinguard_crumbs *", memory.addr)
    header.layout = layout.LAYOUT
    header.header_size = layout.CRUMB_HEADER
    header.slot_size = layout.CRUMB_SLOT
    header.slots = layout.CRUMB_SLOTS
    ffi_copy(header.magic, layout.CRUMB_MAGIC, 8)

    return true
end


-- claim takes the slot of this worker. A respawned worker has the id of the
-- dead one, and so its slot; the sequence goes on.
function _M.claim()
    local id = worker_id()
    if not memory or not id then
        return nil, "no crumb memory or not a worker"
    end

    if id >= layout.CRUMB_SLOTS then
        return nil, "worker " .. id .. ": only " .. layout.CRUMB_SLOTS
                    .. " crumb slots"
    end

    local base = ffi_cast("char *", memory.addr)
    local mine = ffi_cast("struct spinguard_slot *",
                          base + layout.CRUMB_HEADER + id * layout.CRUMB_SLOT)
    mine.phase = IDLE
    mine.pid = worker_pid()
    slot = mine
    last = nil

    return true
end


local function text(field, size, value)
    value = #value < size and value or value:sub(1, size - 1)
    ffi_fill(field, size)
    ffi_copy(field, value, #value)
end


-- name writes who is about to run; only when it is not the same as before.
local function name(plan)
    slot.version = plan.version
    ffi_fill(slot.digest, 16)
    ffi_copy(slot.digest, plan.digest, #plan.digest < 16 and #plan.digest
                                       or 16)
    text(slot.upstream, 64, plan.upstream)
    text(slot.picker, 24, plan.kind)
    last = plan
end


-- build and pick are called before a picker is built or run. A plan is a
-- table with upstream, version, digest and kind.
function _M.build(plan)
    name(plan)
    slot.sequence = slot.sequence + 1
    slot.phase = BUILD
end


function _M.pick(plan)
    if plan ~= last then
        name(plan)
    end

    slot.sequence = slot.sequence + 1
    slot.phase = PICK
end


function _M.leave()
    slot.phase = IDLE
end


return _M
