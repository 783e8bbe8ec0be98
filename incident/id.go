package incident

import (
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

const idTime = "20060102T150405.000Z"

// NewID returns an id such as "20261130T015749.123Z-0badc0": the time in UTC, so
// that ids sort by age, and three random bytes against equal times. A nil
// random gives zeros; pass crypto/rand.Reader.
func NewID(t time.Time, random io.Reader) string {
	var b [3]byte
	if random != nil {
		// A short read leaves zeros: the id is still valid, and the Store
		// refuses one that exists.
		_, _ = io.ReadFull(random, b[:])
	}
	return t.UTC().Format(idTime) + "-" + hex.EncodeToString(b[:])
}

// CheckID returns an error unless id has exactly the form that NewID gives. It
// is what stands between a request's path and the disk.
func CheckID(id string) error {
	n := len(idTime)
	if len(id) == n+7 && id[n] == '-' && isHex(id[n+1:]) {
		if _, err := time.Parse(idTime, id[:n]); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %.40q, not like 20261130T015749.123Z-0badc0", ErrBadID, id)
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
