package drill

import (
	"sync"

	"golang.org/x/sys/unix"
)

// machine returns the hardware name of the kernel, such as "x86_64".
var machine = sync.OnceValue(func() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
})
