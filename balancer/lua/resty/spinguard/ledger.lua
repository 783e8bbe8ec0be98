-- The ledger: what the agent has put in quarantine, read by every worker.
--
-- The words are read with pread, not through the mapping: a load from a file
-- that somebody cuts short would kill the worker, and its successors too. The
-- mapping is only the sign by which the agent finds the file of a proxy.

local ffi = require "ffi"
local layout = require "resty.spinguard.layout"
local sys = require "resty.spinguard.sys"

local ffi_cast = ffi.cast
local ffi_copy = ffi.copy
local ffi_new = ffi.new
local ffi_string = ffi.string
local crc32 = ngx.crc32_long
local log = ngx.log
local sub = string.sub
local find = string.find
local tonumber = tonumber
local pread = sys.pread
local worker_id = ngx.worker.id


local WARN = ngx.WARN
local RETRIES = 4
local CANARY = 2  -- seconds
local PAUSE = 64  -- looks left out after a ledger that could not be read
local KINDS = {
    [layout.KIND_VERSION] = "version",
    [layout.KIND_PEER] = "peer",
    [layout.KIND_ROUTE] = "route",
}


local _M = { entries = {}, epoch = 0, errors = 0 }


local header = ffi_new("struct spinguard_ledger")
local bank = ffi_new("uint8_t[?]", layout.LEDGER_BANK_SIZE)
local path
local fd
local beacon
local inode
local seen = -1
local complaint
local pause = 0


-- complain logs a trouble once, not at every look.
local function complain(text)
    _M.errors = _M.errors + 1

    if text ~= complaint then
        complaint = text
        log(WARN, "spinguard: ", text,
            "; the last good ledger stays in force until its entries end")
    end
end


local function empty_file()
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


local function take(new, st)
    if fd then
        sys.close(fd)
    end

    if beacon then
        sys.unmap(beacon)
    end

    fd, inode, seen = new, st.inode, -1
    beacon = sys.map_read(new, layout.LEDGER_SIZE)
end


-- reopen follows the path to a file that was put there since. Without a file,
-- and with one that cannot be trusted, the one that is open stays.
function _M.reopen()
    if not path then
        return nil, "no ledger"
    end

    local new, missing = sys.open_read(path)
    if not new then
        if missing ~= path .. ": No such file or directory" then
            complain("ledger " .. missing)
        end

        return nil, "no ledger"
    end

    local st, err = sys.stat(new)
    if not st then
        sys.close(new)
        return nil, err
    end

    if not sys.trusted(st) then
        sys.close(new)
        complain(path .. ": not a regular file that only its owner, root, "
                 .. "can write")
        return nil, "not trusted"
    end

    if fd and st.inode == inode then
        sys.close(new)
        return true
    end

    take(new, st)

    return true
end


-- init is called by the master, which can create the file.
function _M.init(dir)
    path = dir .. "/ledger"

    if _M.reopen() then
        return true
    end

    local ok, err = sys.make_dir(dir)
    if ok then
        ok, err = sys.write_file(path, empty_file())
    end

    if not ok then
        return nil, "could not create the ledger: " .. err
    end

    return _M.reopen()
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


-- read_bank copies the bank in force. The writer fills the other bank and
-- then moves the sequence, so a copy is bad only if the writer came round
-- twice in the meantime; the checksum tells.
local function read_bank(sequence)
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


local function read_header()
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


-- The first 16 bytes are enough to see that nothing changed.
local function changed()
    local n = pread(fd, header, 16, 0)

    return n ~= 16 or header.sequence ~= seen
           or header.layout ~= layout.LAYOUT
end


-- poll looks whether the agent has written. It raises the epoch if what is in
-- quarantine may have changed. One short system call when nothing has.
function _M.poll()
    if pause > 0 then
        pause = pause - 1
        return
    end

    if not fd or not changed() then
        return
    end

    local sequence, entries, err

    for _ = 1, RETRIES do
        sequence, err = read_header()
        if sequence then
            entries, err = read_bank(sequence)
        end

        if entries then
            break
        end
    end

    if not entries then
        pause = PAUSE
        complain(path .. ": " .. err)
        return
    end

    complaint = nil
    seen = sequence
    _M.entries = entries
    _M.epoch = _M.epoch + 1
end


-- covers says whether an entry means a version. A digest in the ledger
-- decides alone: the number of a version starts again when the shared dict is
-- lost, and the same poison may be published anew.
local function covers(e, upstream, version, digest)
    if e.kind ~= "version" or e.upstream ~= upstream then
        return false
    end

    if e.digest ~= "" then
        return e.digest == digest
    end

    return e.version == version
end


-- holds returns the end (in seconds) of the quarantine of a version in this
-- worker, or nil. The first worker takes a version back on time, the others
-- CANARY seconds later: if it is still poison, one worker finds out.
function _M.holds(upstream, version, digest, now)
    local wait = worker_id() == 0 and 0 or CANARY
    local last

    for _, e in ipairs(_M.entries) do
        if covers(e, upstream, version, digest) then
            local stop = e.until_ms / 1000 + wait
            if stop > now and (not last or stop > last) then
                last = stop
            end
        end
    end

    return last
end


return _M
