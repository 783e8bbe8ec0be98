-- Crumbs: what a worker is about to do, left where the agent can read it even
-- while the worker never comes back. One slot a worker, in memory that the
-- master maps before it forks; so each generation of workers has its own.

local ffi = require "ffi"
local layout = require "resty.spinguard.layout"
local slots = require "resty.spinguard.slots"

local ffi_copy = ffi.copy
local ffi_fill = ffi.fill
local text = slots.text
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
    memory, err = slots.new("spinguard-crumbs", layout.CRUMB_SIZE,
                            "struct spinguard_crumbs *", layout.CRUMB_MAGIC, {
                                layout = layout.LAYOUT,
                                header_size = layout.CRUMB_HEADER,
                                slot_size = layout.CRUMB_SLOT,
                                slots = layout.CRUMB_SLOTS,
                            }, layout.CRUMB_HEADER, layout.CRUMB_SLOT)

    return memory ~= nil, err
end


-- claim takes the slot of this worker; the sequence goes on.
function _M.claim()
    if not memory then
        return nil, "no crumb memory"
    end

    local mine, err = memory:claim("struct spinguard_slot *")
    if not mine then
        return nil, err
    end

    mine.phase = IDLE
    mine.pid = worker_pid()
    slot = mine
    last = nil

    return true
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
