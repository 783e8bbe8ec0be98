-- The bytes of the two files that are shared with the agent. This module is
-- the description that docs/formats.md and the Go package balancer repeat; a
-- Go test holds all three against each other.

local ffi = require "ffi"


ffi.cdef[[
struct spinguard_crumbs {
    char     magic[8];
    uint32_t layout;
    uint32_t header_size;
    uint32_t slot_size;
    uint32_t slots;
    uint32_t reserved[26];
};

struct spinguard_slot {
    uint32_t pid;
    uint32_t phase;
    uint32_t sequence;
    uint32_t reserved;
    uint64_t version;
    char     digest[16];
    char     upstream[64];
    char     picker[24];
};

struct spinguard_changes {
    char     magic[8];
    uint32_t layout;
    uint32_t area_size;
    uint32_t slot_size;
    uint32_t areas;
};

struct spinguard_change {
    uint32_t size;
    uint32_t reserved;
    uint64_t version;
    uint64_t from;
    uint64_t at;
    char     digest[16];
    char     upstream[64];
    char     by[64];
    char     text[848];
};

struct spinguard_ledger {
    char     magic[8];
    uint32_t layout;
    uint32_t sequence;
    uint32_t bank_offset;
    uint32_t bank_size;
    uint32_t entry_size;
    uint32_t capacity;
    uint32_t reserved[8];
};

struct spinguard_bank {
    uint32_t crc;
    uint32_t count;
    uint64_t written;
    uint32_t reserved[12];
};

struct spinguard_entry {
    uint32_t kind;
    uint32_t flags;
    uint64_t version;
    uint64_t until;
    uint64_t since;
    char     digest[32];
    char     upstream[64];
    char     subject[96];
    char     id[40];
    char     origin[56];
    char     reason[64];
};
]]


local _M = {
    _VERSION = "0.1.0",

    LAYOUT = 1,

    CRUMB_MAGIC = "SPINCRB1",
    CRUMB_HEADER = 128,
    CRUMB_SLOT = 128,
    CRUMB_SLOTS = 255,
    CRUMB_SIZE = 128 + 128 * 255,

    PHASE_IDLE = 0,
    PHASE_BUILD = 1,
    PHASE_PICK = 2,

    CHANGES_MAGIC = "SPINCHG1",
    CHANGES_HEADER = 4096,
    CHANGE_SLOT = 1024,
    CHANGE_SLOTS = 16,
    CHANGE_AREA = 16 * 1024,
    CHANGE_TEXT = 848,
    CHANGES_SIZE = 4096 + 255 * 16 * 1024,

    LEDGER_MAGIC = "SPINLDG1",
    LEDGER_HEADER = 64,
    LEDGER_BANK_OFFSET = 4096,
    LEDGER_BANK_HEADER = 64,
    LEDGER_BANK_SIZE = 49152,
    LEDGER_ENTRY = 384,
    LEDGER_CAPACITY = 127,
    LEDGER_SIZE = 4096 + 2 * 49152,

    KIND_VERSION = 1,
    KIND_PEER = 2,
    KIND_ROUTE = 3,

    NAME_MAX = 63,
}


local STRUCTS = {
    { "crumbs", "magic layout header_size slot_size slots" },
    { "slot", "pid phase sequence version digest upstream picker" },
    { "changes", "magic layout area_size slot_size areas" },
    { "change", "size version from at digest upstream by text" },
    { "ledger", "magic layout sequence bank_offset bank_size entry_size"
        .. " capacity" },
    { "bank", "crc count written" },
    { "entry", "kind flags version until since digest upstream subject id"
        .. " origin reason" },
}


-- describe returns one line a number: what the layout test compares.
function _M.describe()
    local lines = {}

    for _, s in ipairs(STRUCTS) do
        local ctype = ffi.typeof("struct spinguard_" .. s[1])
        lines[#lines + 1] = s[1] .. " size " .. ffi.sizeof(ctype)

        for field in s[2]:gmatch("%S+") do
            lines[#lines + 1] = s[1] .. " " .. field .. " "
                                .. ffi.offsetof(ctype, field)
        end
    end

    for name, value in pairs(_M) do
        if name:find("^%u[%u_]+$") then
            lines[#lines + 1] = "const " .. name .. " " .. tostring(value)
        end
    end

    table.sort(lines)

    return table.concat(lines, "\n") .. "\n"
end


return _M
