# Packs what record.py wrote, and the unwind tables of the images, for the test.
# usage: pack.py OUT-FOLDER RECORDING...
import base64, gzip, json, os, struct, sys

out, recordings = sys.argv[1], sys.argv[2:]
PAGE = 4096


class Image:
    """An ELF file of which only what unwinding reads is kept."""

    KEEP = {".eh_frame", ".eh_frame_hdr", ".shstrtab", ".note.gnu.build-id"}
    NAMES = {".symtab", ".strtab"}

    def __init__(self, path):
        self.path, self.data = path, open(path, "rb").read()
        h = struct.unpack_from("<HHIQQQIHHHHHH", self.data, 16)
        phoff, shoff, phsize, phnum, shsize, shnum, shstr = h[4], h[5], h[8], h[9], h[10], h[11], h[12]
        self.kept = {}
        self.keep(0, 64)
        self.keep(phoff, phsize * phnum)
        self.keep(shoff, shsize * shnum)
        self.loads = []
        for i in range(phnum):
            kind, flags, off, vaddr, _, filesz, memsz, _ = struct.unpack_from("<IIQQQQQQ", self.data, phoff + i * phsize)
            if kind == 1:
                self.loads.append((flags, off, vaddr, filesz, memsz))
        sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + i * shsize) for i in range(shnum)]
        names = sections[shstr][4]
        for s in sections:
            name = self.data[names + s[0]:].split(b"\0", 1)[0].decode()
            if name in self.KEEP or self.own and (name in self.NAMES or s[1] == 1 and s[2] & 4):
                self.keep(s[4], s[5])

    @property
    def own(self):
        return not self.path.startswith("/usr/")

    def keep(self, off, n):
        self.kept[off] = max(n, self.kept.get(off, 0))

    def call_before(self, vaddr):
        """Keeps the instruction before a return address."""
        for flags, off, start, filesz, _ in self.loads:
            if flags & 1 and start < vaddr <= start + filesz:
                self.keep(vaddr - 4 - start + off, 4)

    def hollow(self):
        b = bytearray(len(self.data))
        for off, n in self.kept.items():
            b[off:off + n] = self.data[off:off + n]
        return bytes(b)


images, cases = {}, []
for path in recordings:
    lines = [json.loads(l) for l in open(path)]
    head, rows = lines[0], lines[1:]
    case = {"Name": os.path.splitext(os.path.basename(path))[0], "Maps": [], "Samples": []}
    used = {pc for r in rows for pc in r["truth"]}
    bases = {}
    for lo, _, off, name in head["maps"]:
        if off == 0 and os.path.isfile(name) and open(name, "rb").read(20)[16:20] == b"\x03\0\xb7\0":
            bases.setdefault(name, lo)
    for name, base in bases.items():
        image = images.setdefault(name, Image(name))
        for flags, off, vaddr, filesz, memsz in image.loads:
            if not flags & 1:
                continue
            start = base + vaddr // PAGE * PAGE
            end = base + -(-(vaddr + memsz) // PAGE) * PAGE
            here = [pc for pc in used if start <= pc < end]
            if here:
                case["Maps"].append({"Start": start, "End": end, "Offset": off // PAGE * PAGE, "Image": os.path.basename(name)})
            for pc in here:
                image.call_before(pc - base)
    for at, code in head["trampolines"]:
        page = at // PAGE * PAGE
        case["Maps"].append({"Start": page, "End": page + PAGE, "Offset": 0, "Image": ""})
        case["Code"] = {"Addr": at, "Data": base64.b64encode(bytes.fromhex(code)).decode()}
    for r in rows:
        case["Samples"].append({
            "Registers": r["regs"], "Truth": r["truth"],
            "Stack": [{"Addr": a, "Data": base64.b64encode(bytes.fromhex(d)).decode()} for a, d in r["windows"]],
        })
    cases.append(case)

def write(name, data):
    with open(os.path.join(out, name), "wb") as f:
        f.write(gzip.compress(data, 9, mtime=0))

os.makedirs(out, exist_ok=True)
write("recorded.json.gz", json.dumps(cases, separators=(",", ":")).encode())
for name, image in images.items():
    if any(m["Image"] == os.path.basename(name) for c in cases for m in c["Maps"]):
        write(os.path.basename(name) + ".gz", image.hollow())
