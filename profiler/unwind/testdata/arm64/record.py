# Runs inside gdb-multiarch, see record.sh. Steps an arm64 program under
# qemu-aarch64 one instruction at a time and writes, as JSON lines, its
# registers, its stack, and the return addresses that its own calls and returns
# leave: the truth, which needs no unwinder.
import json
import os
import struct

import gdb

port, qemu, out, program, limit = (os.environ[k] for k in ("PORT", "QEMU_PID", "OUT", "PROGRAM", "LIMIT"))
for command in ("set pagination off", "set confirm off", "set architecture aarch64", "set sysroot /nowhere",
                "file " + program, "target remote localhost:" + port, "handle SIGUSR1 nostop noprint pass"):
    gdb.execute(command)
memory = gdb.selected_inferior().read_memory

NAMES = ["x%d" % i for i in range(31)] + ["sp", "pc"]
SYSCALL = 0xD4000001
CODE = (1 << 48) - 1  # the other bits may be a signature
TRAMPOLINE = 0xD2801168  # mov x8, #139: rt_sigreturn
SAVED_PC = 128 + 176 + 8 + 32 * 8  # in the frame that the kernel makes for a handler
BELOW = 512  # bytes of the stack kept above the first frame


def reg(name):
    return int(gdb.selected_frame().read_register(name)) & (1 << 64) - 1


def word(addr, form="<Q"):
    return struct.unpack(form, memory(addr, struct.calcsize(form)).tobytes())[0]


def is_call(i):
    return i & 0xFC000000 == 0x94000000 or i & 0xFFFFFC1F == 0xD63F0000 or i & 0xFEFFF800 == 0xD63F0800


def is_return(i):
    return i & 0xFFFFFC1F == 0xD65F0000 or i in (0xD65F0BFF, 0xD65F0FFF)


def mappings():
    for line in open("/proc/%s/maps" % qemu):
        f = line.split()
        lo, hi = (int(x, 16) for x in f[0].split("-"))
        yield lo, hi, int(f[2], 16), f[5] if len(f) > 5 else ""


# ld.so has run by the program's first instruction.
entry = int(gdb.execute("info files", to_string=True).split("Entry point: ")[1].split()[0], 16)
gdb.execute("tbreak *%#x" % entry)
gdb.execute("continue")
main, handler = (int(gdb.parse_and_eval("(unsigned long)&" + f)) for f in ("main", "handler"))
gdb.execute("break *%#x" % handler)  # else gdb steps over all of it
top = reg("sp")
maps = list(mappings())
own = [m for m in maps if m[3] == program]
libm = [m for m in maps if "libm.so" in m[3]]

stack = []  # return addresses, outermost first
seen, rows, steps, others, recording = {}, [], 0, 0, False
interrupted, end = 0, top + BELOW  # stack pointer when a signal came; end of the stack in use


def windows(sp):
    got = [(sp, min(end, sp + 8192))]
    if interrupted:
        got.append((interrupted, top + BELOW))
    return [(lo, memory(lo, hi - lo).tobytes().hex()) for lo, hi in got]


while len(rows) < int(limit) and steps < 3000:
    pc, sp = reg("pc"), reg("sp")
    recording = recording or pc == main
    if any(m[0] <= pc < m[1] for m in libm):
        break
    mine = any(m[0] <= pc < m[1] for m in own)
    key = (pc, len(stack))
    # Of libraries every instruction that the program called, and a few of what is below.
    near = mine or stack and any(m[0] <= stack[-1] < m[1] for m in own)
    others += not near
    if recording and (near or others % 12 == 0) and seen.get(key, 0) < (2 if mine else 1):
        seen[key] = seen.get(key, 0) + 1
        rows.append({"regs": [reg(n) for n in NAMES], "windows": windows(sp), "truth": [pc] + stack[::-1]})
    insn = word(pc, "<I")
    gdb.execute("stepi", to_string=True)
    steps += 1
    now = reg("pc")
    if insn == SYSCALL and handler <= now <= handler + 4:  # qemu takes the next instruction along
        interrupted = sp
        end = reg("sp") + 4096
        stack += [word(reg("sp") + SAVED_PC), reg("x30") & CODE]
    elif insn == SYSCALL and now not in (pc + 4, pc + 8):  # again, and it was a return
        assert stack.pop() == now
    elif is_call(insn):
        stack.append(pc + 4)
    elif is_return(insn):
        want = stack.pop()
        assert now == want, "returned to %#x, not to %#x" % (now, want)

codes = {a for r in rows for a in r["truth"][1:] if word(a, "<I") == TRAMPOLINE}
with open(out, "w") as f:
    f.write(json.dumps({"maps": maps, "trampolines": [(a, memory(a, 8).tobytes().hex()) for a in sorted(codes)]}) + "\n")
    for r in rows:
        f.write(json.dumps(r) + "\n")
print("%s: %d instructions, %d kept" % (out, steps, len(rows)))
gdb.execute("kill")
