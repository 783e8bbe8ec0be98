package bpf

// The object is little-endian x86-64 only: include/regs_x86.h names its
// registers. Clang's -g gives the types to bpf2go and CO-RE.
//go:generate go tool bpf2go -cc clang -target amd64 -cflags "-O2 -g -Wall -Werror -fdebug-compilation-dir=." -type watch -type header -type record -type further -type counter -type kind sampler sampler.bpf.c
