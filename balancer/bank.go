package balancer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// ErrLedger marks bytes that are not a ledger, or a damaged one.
var ErrLedger = errors.New("damaged")

func newHeader(sequence uint32) []byte {
	h := make([]byte, ledgerHeader)
	copy(h[ledgerMagicAt:], ledgerMagic)
	for at, value := range map[int]uint32{
		ledgerLayoutAt: Layout, ledgerSequenceAt: sequence, ledgerBankOffsetAt: bankOffset,
		ledgerBankSizeAt: bankSize, ledgerEntrySizeAt: entrySize, ledgerCapacityAt: ledgerCapacity,
	} {
		binary.LittleEndian.PutUint32(h[at:], value)
	}
	return h
}

// checkHeader returns the sequence of a ledger's header.
func checkHeader(h []byte) (uint32, error) {
	if len(h) < ledgerHeader {
		return 0, fmt.Errorf("header of %d bytes: %w", len(h), ErrLedger)
	}
	sequence := binary.LittleEndian.Uint32(h[ledgerSequenceAt:])
	if string(h[:ledgerHeader]) != string(newHeader(sequence)) {
		return 0, fmt.Errorf("header: not a ledger of layout %d: %w", Layout, ErrLedger)
	}
	return sequence, nil
}

// bankAt returns where the bank in force of a sequence begins.
func bankAt(sequence uint32) int64 {
	return bankOffset + int64(sequence%2)*bankSize
}

func encodeBank(entries []Entry, now time.Time) []byte {
	b := make([]byte, bankHeader+entrySize*len(entries))
	binary.LittleEndian.PutUint32(b[bankCountAt:], uint32(len(entries)))
	binary.LittleEndian.PutUint64(b[bankWrittenAt:], uint64(max(0, now.UnixMilli())))
	for i, e := range entries {
		e.encode(b[bankHeader+i*entrySize:])
	}
	binary.LittleEndian.PutUint32(b[bankCRCAt:], crc32.ChecksumIEEE(b[bankCountAt:]))
	return b
}

func decodeBank(b []byte) ([]Entry, error) {
	if len(b) < bankHeader {
		return nil, fmt.Errorf("bank of %d bytes: %w", len(b), ErrLedger)
	}
	count := binary.LittleEndian.Uint32(b[bankCountAt:])
	if count > ledgerCapacity || len(b) < bankHeader+int(count)*entrySize {
		return nil, fmt.Errorf("bank of %d bytes with %d entries: %w", len(b), count, ErrLedger)
	}
	b = b[:bankHeader+int(count)*entrySize]
	if sum := crc32.ChecksumIEEE(b[bankCountAt:]); sum != binary.LittleEndian.Uint32(b[bankCRCAt:]) {
		return nil, fmt.Errorf("bank with %d entries: wrong checksum: %w", count, ErrLedger)
	}
	entries := make([]Entry, 0, count)
	for i := range int(count) {
		e := decodeEntry(b[bankHeader+i*entrySize:][:entrySize])
		if e.Kind >= KindVersion && e.Kind <= KindRoute {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
