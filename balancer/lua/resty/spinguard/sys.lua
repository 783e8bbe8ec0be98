-- The few system calls that the library needs, through FFI. Each symbol is
-- renamed, so that it never clashes with a declaration of another library.

local ffi = require "ffi"

local C = ffi.C
local io_open = io.open
local errno = ffi.errno
local ffi_gc = ffi.gc
local ffi_new = ffi.new
local ffi_cast = ffi.cast
local ffi_string = ffi.string
local tonumber = tonumber
local bit = require "bit"


ffi.cdef[[
int spinguard_open(const char *path, int flags, unsigned int mode)
    __asm__("open");
int spinguard_close(int fd) __asm__("close");
int spinguard_mkdir(const char *path, unsigned int mode) __asm__("mkdir");
int spinguard_rename(const char *from, const char *to) __asm__("rename");
int spinguard_unlink(const char *path) __asm__("unlink");
int spinguard_fchmod(int fd, unsigned int mode) __asm__("fchmod");
int spinguard_ftruncate(int fd, int64_t length) __asm__("ftruncate");
int spinguard_fcntl(int fd, int cmd, int arg) __asm__("fcntl");
int spinguard_memfd(const char *name, unsigned int flags)
    __asm__("memfd_create");
void *spinguard_mmap(void *addr, size_t size, int prot, int flags, int fd,
    int64_t offset) __asm__("mmap");
int spinguard_munmap(void *addr, size_t size) __asm__("munmap");
int64_t spinguard_pread(int fd, void *buf, size_t size, int64_t offset)
    __asm__("pread");
int64_t spinguard_write(int fd, const void *buf, size_t size)
    __asm__("write");
int spinguard_statx(int fd, const char *path, int flags, unsigned int mask,
    void *buf) __asm__("statx");
unsigned int spinguard_geteuid(void) __asm__("geteuid");
int spinguard_getpid(void) __asm__("getpid");
int spinguard_getppid(void) __asm__("getppid");
char *spinguard_strerror(int number) __asm__("strerror");

struct spinguard_fd { int fd; };
struct spinguard_map { void *addr; size_t size; };
]]


local O_WRONLY, O_CREAT, O_EXCL = 1, 0x40, 0x80
local O_CLOEXEC, O_NONBLOCK = 0x80000, 0x800
-- The value of O_NOFOLLOW differs between the architectures.
local O_NOFOLLOW = (ffi.arch == "arm64" or ffi.arch == "arm") and 0x8000
                   or 0x20000
local PROT_READ, PROT_WRITE = 1, 2
local MAP_SHARED = 1
local MFD_CLOEXEC, MFD_ALLOW_SEALING = 1, 2
local F_ADD_SEALS = 1033
local SEALS = 1 + 2 + 4  -- seal, shrink, grow
local AT_EMPTY_PATH = 0x1000
local STATX_BASIC = 0x7ff
local STATX_SIZE = 256
local S_IFMT, S_IFREG = 0xf000, 0x8000
local EEXIST = 17


local _M = {}


local function failure(what)
    return nil, what .. ": " .. ffi_string(C.spinguard_strerror(errno()))
end


local function owned_fd(number)
    return ffi_gc(ffi_new("struct spinguard_fd", number), function(fd)
        C.spinguard_close(fd.fd)
    end)
end


local function open(path, flags, mode)
    local number = C.spinguard_open(path, flags, mode)
    if number < 0 then
        return failure(path)
    end

    return owned_fd(number)
end


function _M.pid()
    return C.spinguard_getpid()
end


-- parent returns the pid of this process's parent now: of the master, as
-- long as that lives.
function _M.parent()
    return C.spinguard_getppid()
end


-- parent_of returns the pid of the parent of a process; nil if it is gone.
function _M.parent_of(pid)
    local file = io_open("/proc/" .. pid .. "/stat", "rb")
    if not file then
        return nil
    end

    local data = file:read(1024)
    file:close()

    return data and tonumber(data:match("^.*%) %a (%d+)"))
end


-- open_read opens a regular file for reading. A symbolic link is refused.
function _M.open_read(path)
    return open(path, bit.bor(O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK), 0)
end


function _M.close(fd)
    ffi_gc(fd, nil)
    C.spinguard_close(fd.fd)
end


-- stat returns the owner, permissions, inode and size of an open file.
function _M.stat(fd)
    local buf = ffi_new("uint8_t[?]", STATX_SIZE)
    if C.spinguard_statx(fd.fd, "", AT_EMPTY_PATH, STATX_BASIC, buf) ~= 0
    then
        return failure("statx")
    end

    local mode = ffi_cast("uint16_t *", buf + 28)[0]

    return {
        uid = ffi_cast("uint32_t *", buf + 20)[0],
        mode = bit.band(mode, 0xfff),
        regular = bit.band(mode, S_IFMT) == S_IFREG,
        inode = tonumber(ffi_cast("uint64_t *", buf + 32)[0]),
        size = tonumber(ffi_cast("uint64_t *", buf + 40)[0]),
    }
end


-- trusted says whether only root or the user of this process can have
-- written the file.
function _M.trusted(st)
    return st.regular and bit.band(st.mode, 0x12) == 0
           and (st.uid == 0 or st.uid == C.spinguard_geteuid())
end


-- pread fills buf from the offset and returns the number of bytes.
function _M.pread(fd, buf, size, offset)
    return tonumber(C.spinguard_pread(fd.fd, buf, size, offset))
end


-- make_dir creates a directory and its parents.
function _M.make_dir(path)
    local at = ""

    for part in path:gmatch("[^/]+") do
        at = at .. "/" .. part
        if C.spinguard_mkdir(at, 0x1ed) ~= 0 and errno() ~= EEXIST then
            return failure(at)
        end
    end

    return true
end


-- write_file puts the file there whole or not at all, mode 0644.
function _M.write_file(path, data)
    local tmp = path .. ".new." .. _M.pid()
    C.spinguard_unlink(tmp)

    local fd, err = open(tmp, bit.bor(O_WRONLY, O_CREAT, O_EXCL, O_CLOEXEC,
                                      O_NOFOLLOW), 0x1a4)
    if not fd then
        return nil, err
    end

    local wrote = tonumber(C.spinguard_write(fd.fd, data, #data))
    C.spinguard_fchmod(fd.fd, 0x1a4)
    _M.close(fd)

    if wrote ~= #data or C.spinguard_rename(tmp, path) ~= 0 then
        local nothing, reason = failure(path)
        C.spinguard_unlink(tmp)
        return nothing, reason
    end

    return true
end


local function map(fd, size, prot)
    local addr = C.spinguard_mmap(nil, size, prot, MAP_SHARED, fd.fd, 0)
    if addr == ffi_cast("void *", -1) then
        return failure("mmap")
    end

    return ffi_gc(ffi_new("struct spinguard_map", addr, size), function(m)
        C.spinguard_munmap(m.addr, m.size)
    end)
end


function _M.map_read(fd, size)
    return map(fd, size, PROT_READ)
end


function _M.unmap(m)
    ffi_gc(m, nil)
    C.spinguard_munmap(m.addr, m.size)
end


local function memory_file(name, size)
    local number = C.spinguard_memfd(name, MFD_CLOEXEC + MFD_ALLOW_SEALING)
    if number < 0 then
        return failure("memfd_create")
    end

    local fd = owned_fd(number)
    C.spinguard_fchmod(fd.fd, 0x180)

    if C.spinguard_ftruncate(fd.fd, size) ~= 0
        or C.spinguard_fcntl(fd.fd, F_ADD_SEALS, SEALS) < 0
    then
        local _, err = failure("memory file " .. name)
        _M.close(fd)
        return nil, err
    end

    return fd
end


-- shared_memory maps fresh zeroed memory that children inherit. It is a
-- sealed memory file: nobody can cut it, so a store into it never faults.
function _M.shared_memory(name, size)
    local fd, err = memory_file(name, size)
    if not fd then
        return nil, err
    end

    local m
    m, err = map(fd, size, PROT_READ + PROT_WRITE)
    _M.close(fd)

    return m, err
end


-- mapped returns where this process has mapped a memory file.
local function mapped(name, size)
    local file = io_open("/proc/self/maps", "rb")
    if not file then
        return nil
    end

    local found

    for line in file:lines() do
        local from, to, path = line:match("^(%x+)%-(%x+) rw%-s .-/memfd:(.*)$")
        if path == name .. " (deleted)"
            and tonumber(to, 16) - tonumber(from, 16) == size
        then
            found = tonumber(from, 16)
        end
    end

    file:close()

    return found
end


-- kept_memory is shared_memory that outlives a reload: the master finds it
-- again among its own mappings. So it is never unmapped; there is one for
-- each name and size. The size is a multiple of a page.
function _M.kept_memory(name, size)
    local at = mapped(name, size)
    if at then
        return { addr = ffi_cast("void *", at), size = size }
    end

    local fd, err = memory_file(name, size)
    if not fd then
        return nil, err
    end

    local addr = C.spinguard_mmap(nil, size, PROT_READ + PROT_WRITE,
                                  MAP_SHARED, fd.fd, 0)
    if addr == ffi_cast("void *", -1) then
        err = select(2, failure("mmap"))
        _M.close(fd)
        return nil, err
    end

    _M.close(fd)

    return { addr = addr, size = size }
end


return _M
