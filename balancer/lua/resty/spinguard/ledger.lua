-- The ledger: what the agent has put in quarantine, read by every worker.
--
-- The words are read with pread, not through the mapping: a load from a file
-- that somebody cuts short would kill the worker, and its successors too. The
-- mapping is only the sign by which the agent finds the file of a proxy.

local bank = require "resty.spinguard.bank"
local layout = require "resty.spinguard.layout"
local sys = require "resty.spinguard.sys"

local ipairs = ipairs
local log = ngx.log
local worker_id = ngx.worker.id


local WARN = ngx.WARN
local RETRIES = 4
local CANARY = 2  -- seconds
local PAUSE = 64  -- looks left out after a ledger that could not be read


local _M = { entries = {}, epoch = 0, errors = 0 }


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
        ok, err = sys.write_file(path, bank.empty())
    end

    if not ok then
        return nil, "could not create the ledger: " .. err
    end

    return _M.reopen()
end


-- poll looks whether the agent has written. It raises the epoch if what is in
-- quarantine may have changed. One short system call when nothing has.
function _M.poll()
    if pause > 0 then
        pause = pause - 1
        return
    end

    if not fd or not bank.changed(fd, seen) then
        return
    end

    local sequence, entries, err

    for _ = 1, RETRIES do
        sequence, err = bank.sequence(fd)
        if sequence then
            entries, err = bank.entries(fd, sequence)
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
