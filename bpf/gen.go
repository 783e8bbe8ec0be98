package bpf

// The object is little-endian x86-64 only: the sampler copies x86-64 registers
// by name. Clang's -g gives the types to bpf2go and CO-RE.
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cc clang -target amd64 -cflags "-O2 -g -Wall -Werror -fdebug-compilation-dir=." -type watch -type header -type record -type counter sampler sampler.bpf.c
