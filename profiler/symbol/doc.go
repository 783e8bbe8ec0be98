// Package symbol opens the ELF images of other processes and names addresses
// in them.
//
// Three kinds of addresses meet here: the file offset, the virtual address
// that the ELF file speaks of (vaddr) and the address in the process. Image
// deals in vaddrs; Image.Bias leads from a vaddr to the process.
//
// A name is given only where a symbol's size covers the address. Stripped
// programs keep few symbols, and the nearest one below is nearly always wrong.
package symbol
