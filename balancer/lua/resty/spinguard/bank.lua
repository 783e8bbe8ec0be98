-- The file of the ledger: its bytes, as docs/formats.md has them. Entries lie
-- in two banks, of which the header names the one in force.

local ffi = require "ffi"
local layout = require "resty.spinguard.layout"
local pread = require("resty.spinguard.sys").pread

local crc32 = require("resty.spinguard.crc").long
local ffi_cast = ffi.cast
local ffi_copy = ffi.copy
local ffi_new = ffi.new
local ffi_string = ffi.string
local find = string.find
local sub = string.sub
local tonumber = tonumber


local KINDS = {
    [layout.KIND_VERSION] = "version",
    [layout.KIND_PEER] = "peer",
    [layout.KIND_ROUTE] = "route",
}


local _M = {}


local header = ffi_new("struct spinguard_ledger")
local bank = ffi_new("uint8_t[?]", layout.LEDGER_BANK_SIZE)


-- empty returns what a ledger begins with.
function _M.empty()
    local h = ffi_new("struct spinguard_ledger")
    ffi_copy(h.magic, layout.LEDGER_MAGIC, 8)
    h.layout = layout.LAYOUT
    h.bank_offset = layout.LEDGER_BANK_OFFSET
    h.bank_size = layout.LEDGER_BANK_SIZE
    h.entry_size = layout.LEDGER_ENTRY
    h.capacity = layout.LEDGER_CAPACITY

    local b = ffi_new("struct spinguard_bank")
    local head = ffi_string(ffi_cast("char *", b) + 4,
                            layout.LEDGER_BANK_HEADER - 4)
    b.crc = crc32(head)

    local zero = "\0"
    local first = ffi_string(b, layout.LEDGER_BANK_HEADER)
                  .. zero:rep(layout.LEDGER_BANK_SIZE
                              - layout.LEDGER_BANK_HEADER)

    return ffi_string(h, layout.LEDGER_HEADER)
           .. zero:rep(layout.LEDGER_BANK_OFFSET - layout.LEDGER_HEADER)
           .. first .. first
end


local function text(field, size)
    local s = ffi_string(field, size)
    local stop = find(s, "\0", 1, true)

    return stop and sub(s, 1, stop - 1) or s
end


local function decode(raw)
    local e = ffi_cast("struct spinguard_entry *", raw)

    return {
        kind = KINDS[e.kind],
        version = tonumber(e.version),
        until_ms = tonumber(e["until"]),
        since_ms = tonumber(e.since),
        digest = text(e.digest, 32),
        upstream = text(e.upstream, 64),
        subject = text(e.subject, 96),
        id = text(e.id, 40),
        origin = text(e.origin, 56),
        reason = text(e.reason, 64),
    }
end


-- entries reads the bank in force. The writer fills the other bank and
-- then moves the sequence, so a copy is bad only if the writer came round
-- twice in the meantime; the checksum tells.
function _M.entries(fd, sequence)
    local offset = layout.LEDGER_BANK_OFFSET
                   + sequence % 2 * layout.LEDGER_BANK_SIZE
    if pread(fd, bank, layout.LEDGER_BANK_SIZE, offset)
        ~= layout.LEDGER_BANK_SIZE
    then
        return nil, "cut short"
    end

    local b = ffi_cast("struct spinguard_bank *", bank)
    local count = b.count
    if count > layout.LEDGER_CAPACITY then
        return nil, "more entries than fit"
    end

    local size = layout.LEDGER_BANK_HEADER + count * layout.LEDGER_ENTRY
    if crc32(ffi_string(bank + 4, size - 4)) ~= b.crc then
        return nil, "wrong checksum"
    end

    local entries = {}
    for i = 0, count - 1 do
        local at = layout.LEDGER_BANK_HEADER + i * layout.LEDGER_ENTRY
        local e = decode(bank + at)
        if e.kind then
            entries[#entries + 1] = e
        end
    end

    return entries
end


-- sequence returns which bank is in force: all that is ever written raises it.
function _M.sequence(fd)
    if pread(fd, header, layout.LEDGER_HEADER, 0) ~= layout.LEDGER_HEADER
    then
        return nil, "cut short"
    end

    if header.layout ~= layout.LAYOUT
        or ffi_string(header.magic, 8) ~= layout.LEDGER_MAGIC
    then
        return nil, "not a ledger of layout " .. layout.LAYOUT
    end

    return header.sequence
end


-- changed says whether the sequence may be another than the one that was seen:
-- for that the first 16 bytes are enough.
function _M.changed(fd, seen)
    local n = pread(fd, header, 16, 0)

    return n ~= 16 or header.sequence ~= seen
           or header.layout ~= layout.LAYOUT
end


return _M
